"""A small but complete training program: a convolutional network, a DataLoader with a worker, an evaluation.

    hotspan run examples/train.py

The pictures are made up, so that nothing is downloaded: bright squares, and the class is the place of the square.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EPOCHS = 2
PICTURES = 640
SIZE = 32


class Squares(Dataset[tuple[torch.Tensor, int]]):
    """Noise with a bright square in one of four corners, made when asked for."""

    def __len__(self) -> int:
        return PICTURES

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        corner = index % 4
        row, column = (corner // 2) * 16, (corner % 2) * 16
        picture = torch.randn(3, SIZE, SIZE, generator=torch.Generator().manual_seed(index))
        picture[:, row : row + 16, column : column + 16] += 1.0
        return picture, corner


def network() -> nn.Module:
    """Two convolutions and a linear layer."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(64 * 16, 4),
    )


def train(model: nn.Module, loader: DataLoader[tuple[torch.Tensor, int]]) -> None:
    """Train for some epochs, with the loss read in every step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        total = 0.0
        for pictures, corners in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(pictures), corners)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.3f}")


def evaluate(model: nn.Module, loader: DataLoader[tuple[torch.Tensor, int]]) -> None:
    """Say how many corners the model finds."""
    model.eval()
    with torch.inference_mode():
        right = sum(int((model(pictures).argmax(1) == corners).sum()) for pictures, corners in loader)
    print(f"accuracy: {right / PICTURES:.0%}")


if __name__ == "__main__":
    torch.manual_seed(0)
    squares = Squares()
    model = network()
    train(model, DataLoader(squares, batch_size=32, shuffle=True, num_workers=1))
    evaluate(model, DataLoader(squares, batch_size=128))
