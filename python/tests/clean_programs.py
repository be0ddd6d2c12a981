"""Programs as a careful person writes them: the advice has nothing to say about them that it is sure of."""

from __future__ import annotations

PROGRAMS: dict[str, str] = {
    "channels-last inference of a ResNet-18": """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(after), nn.BatchNorm2d(after)])
        self.short = nn.Identity()
        if before != after:
            self.short = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        y = torch.relu(self.norms[0](self.first(x)))
        return torch.relu(self.norms[1](self.second(y)) + self.short(x))

sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1)]
sizes += [(128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
model = nn.Sequential(
    nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
    *[Block(*size) for size in sizes], nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10),
).eval().to(memory_format=torch.channels_last)
pictures = torch.randn(4, 3, 96, 96).contiguous(memory_format=torch.channels_last)
with torch.inference_mode():
    for _ in range(25):
        model(pictures)
""",
    "training of a transformer with workers": """
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(*parts.unbind(), is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(self.norms[1](x))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(256, 192)
        self.layers = nn.Sequential(*[Layer(192, 6) for _ in range(3)])
        self.head = nn.Linear(192, 256)

    def forward(self, tokens):
        return self.head(self.layers(self.embed(tokens)))

if __name__ == "__main__":
    torch.manual_seed(0)
    data = TensorDataset(torch.randint(0, 256, (160, 129)))
    loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=1, persistent_workers=True, prefetch_factor=4)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for (tokens,) in loader:
        optimizer.zero_grad()
        logits = model(tokens[:, :-1])
        functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimizer.step()
""",
    "NumPy": """
import numpy as np

generator = np.random.default_rng(0)
data = generator.random((600, 600))
for _ in range(40):
    values, vectors = np.linalg.eigh(data[:120, :120] + data[:120, :120].T)
    data = np.tanh(data @ data / 300)
""",
    "fitting in plain loops": """
import numpy as np

generator = np.random.default_rng(0)
points = generator.normal(size=(4000, 16)) + generator.integers(0, 4, size=(4000, 1)) * 3.0
centres = points[:4].copy()
for _ in range(60):
    distances = ((points[:, None] - centres) ** 2).sum(-1)
    nearest = distances.argmin(1)
    for place in range(4):
        mine = points[nearest == place]
        if len(mine):
            centres[place] = mine.mean(0)
weights = np.zeros(16)
for _ in range(200):
    weights -= 0.01 * points.T @ (points @ weights - nearest) / len(points)
""",
    "generation of tokens": """
import torch
from torch import nn
from torch.nn import functional

class Layer(nn.Module):
    def __init__(self, width, heads, longest):
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        wide, narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.feed = nn.Sequential(nn.LayerNorm(width), wide, nn.GELU(), narrow)
        self.register_buffer("keys", torch.zeros(4, heads, longest, width // heads))
        self.register_buffer("values", torch.zeros(4, heads, longest, width // heads))

    def forward(self, x, place):
        query, key, value = self.qkv(self.norm(x)).view(4, 1, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        self.keys[:, :, place : place + 1], self.values[:, :, place : place + 1] = key, value
        before = self.keys[:, :, : place + 1], self.values[:, :, : place + 1]
        seen = functional.scaled_dot_product_attention(query, *before)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.feed(x)

torch.manual_seed(0)
width, longest = 768, 48
embed, head = nn.Embedding(8192, width), nn.Linear(width, 8192, bias=False)
layers = nn.ModuleList([Layer(width, 12, longest) for _ in range(4)]).eval()
tokens = torch.zeros(4, longest, dtype=torch.long)
with torch.inference_mode():
    for place in range(longest - 1):
        x = embed(tokens[:, place : place + 1])
        for layer in layers:
            x = layer(x, place)
        tokens[:, place + 1] = head(x[:, -1]).argmax(-1)
print(tokens.sum().item())
""",
}
