"""Programs that use a GPU as people do: each returns a function that does one step, always with the same kernels."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

Step = Callable[[], object]


class Bottleneck(nn.Module):
    """A block of ResNet-50."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Add the body to the shortcut."""
        return torch.relu(self.body(images) + self.shortcut(images))


def resnet50_model() -> nn.Module:
    """ResNet-50 in plain torch: torchvision may not be installed."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    inputs = 64
    for width, blocks, first_stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, width, first_stride if block == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def resnet50(batch: int = 32) -> Step:
    """A training step with SGD."""
    model = resnet50_model().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=False)
    images, labels = (
        torch.randn(batch, 3, 224, 224).pin_memory(),
        torch.randint(0, 1000, (batch,)).pin_memory(),
    )

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        outputs = model(images.cuda(non_blocking=True))
        nn.functional.cross_entropy(outputs, labels.cuda(non_blocking=True)).backward()
        optimizer.step()

    return step


def transformer() -> Step:
    """Two transformer blocks in bfloat16, forward and backward, with AdamW."""
    layer = nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0.0, batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).cuda().to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randn(8, 512, 1024, device="cuda", dtype=torch.bfloat16)

    def step() -> None:
        optimizer.zero_grad()
        model(tokens).float().pow(2).mean().backward()
        optimizer.step()

    return step


def dlrm() -> Step:
    """Embedding bags, their interactions, and two small networks around."""
    tables = nn.ModuleList(nn.EmbeddingBag(100_000, 64, mode="sum") for _ in range(8)).cuda()
    bottom = nn.Sequential(nn.Linear(13, 256), nn.ReLU(), nn.Linear(256, 64)).cuda()
    top = nn.Sequential(nn.Linear(64 + 36, 256), nn.ReLU(), nn.Linear(256, 1)).cuda()
    parameters = [*tables.parameters(), *bottom.parameters(), *top.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    dense, target = torch.randn(2048, 13), torch.rand(2048, 1, device="cuda")
    generator = torch.Generator().manual_seed(0)
    indices = [torch.randint(0, 100_000, (2048 * 4,), generator=generator).cuda() for _ in range(8)]
    offsets = torch.arange(0, 2048 * 4, 4, device="cuda")
    rows, columns = torch.triu_indices(9, 9, 1, device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        features = bottom(dense.cuda())
        bags = [table(index, offsets) for table, index in zip(tables, indices, strict=True)]
        stacked = torch.stack([features, *bags], dim=1)
        pairs = torch.bmm(stacked, stacked.transpose(1, 2))[:, rows, columns]
        output = torch.sigmoid(top(torch.cat([features, pairs], dim=1)))
        nn.functional.binary_cross_entropy(output, target).backward()
        optimizer.step()

    return step


def streams() -> Step:
    """Copies and products on four streams that wait for each other."""
    others = [torch.cuda.Stream() for _ in range(4)]
    host = [torch.randn(512, 512).pin_memory() for _ in others]
    weight = torch.randn(512, 512, device="cuda")

    def step() -> None:
        ready = torch.cuda.Event()
        ready.record()
        results = []
        for stream, source in zip(others, host, strict=True):
            with torch.cuda.stream(stream):
                stream.wait_event(ready)
                moved = source.to("cuda", non_blocking=True)
                with torch.profiler.record_function("product"):
                    results.append(torch.relu(moved @ weight) + 1)
        for stream in others:
            torch.cuda.current_stream().wait_stream(stream)
        torch.stack(results).sum().item()

    return step


def graph() -> Step:
    """A captured graph of twelve products, replayed."""
    weight = torch.randn(256, 256, device="cuda")
    source = torch.randn(256, 256, device="cuda")

    def body() -> torch.Tensor:
        value = source
        for _ in range(12):
            value = torch.tanh(value @ weight)
        return value.sum()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        body()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        body()

    def step() -> None:
        with torch.profiler.record_function("replay"):
            captured.replay()

    return step


def compiled() -> Step:
    """A small network through torch.compile: Triton kernels, launched through the driver."""
    model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.LayerNorm(2048), nn.Linear(2048, 512)).cuda()
    fast = torch.compile(model)
    inputs = torch.randn(256, 512, device="cuda")

    def step() -> None:
        model.zero_grad()
        fast(inputs).pow(2).mean().backward()

    return step


def tiny() -> Step:
    """The smallest operator there is, a thousand times."""
    number = torch.ones(1, device="cuda")

    def step() -> None:
        for _ in range(1000):
            number + 1

    return step


PROGRAMS: dict[str, Callable[[], Step]] = {
    "resnet50": resnet50,
    "transformer": transformer,
    "dlrm": dlrm,
    "streams": streams,
    "graph": graph,
    "compiled": compiled,
}
