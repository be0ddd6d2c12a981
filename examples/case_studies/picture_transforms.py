"""Case study: pictures that become tensors one by one in the DataLoader, and once before the loop.

    python examples/case_studies/picture_transforms.py [--fixed] [STEPS]

The loop waits for PIL and `ToTensor`. The advice names it: `data-loading-bound` and `per-sample-transforms`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torchvision import transforms

BATCH = 32
STEPS = 5
SIZE = 32


class Pictures(Dataset[tuple[torch.Tensor, int]]):
    """PIL pictures, transformed whenever they are asked for."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        noise = np.random.default_rng(0).integers(0, 255, (BATCH, 16 * SIZE, 16 * SIZE, 3), dtype=np.uint8)
        self.pictures = [Image.fromarray(picture) for picture in noise]
        steps = [transforms.Resize(SIZE), transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.5] * 3)]
        self.transform = transforms.Compose(steps)

    def __len__(self) -> int:
        return BATCH * self.steps

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.transform(self.pictures[index % BATCH]), index % 10


def main(fixed: bool, end_of_step: Callable[[], object] = lambda: None, steps: int = STEPS) -> None:
    """Train a small network for a few steps."""
    pictures: Dataset[Any] = Pictures(steps)
    if fixed:
        samples = [pictures[index] for index in range(BATCH * steps)]
        inputs, labels = torch.stack([picture for picture, _ in samples]), [label for _, label in samples]
        pictures = TensorDataset(inputs, torch.tensor(labels))
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for batch, labels in DataLoader(pictures, batch_size=BATCH):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch), labels).backward()
        optimizer.step()
        end_of_step()


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    main("--fixed" in sys.argv, steps=numbers[0] if numbers else STEPS)
