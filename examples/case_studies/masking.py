"""Case study: a module that looks for elements with NumPy, and with torch.

    python examples/case_studies/masking.py [--fixed] [STEPS]

The time is in `np.argwhere`, which no table of torch operators shows. The advice names it: `numpy-round-trip`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from torch import nn
from torch.profiler import record_function

STEPS = 4


class Masking(nn.Module):
    """Some layers, then the places where a mask exceeds what they say."""

    def __init__(self, fixed: bool) -> None:
        super().__init__()
        self.fixed = fixed
        sizes = [64, 32, 32, 8]
        layers = [(nn.Linear(size, following), nn.ReLU()) for size, following in pairwise(sizes)]
        self.linear = nn.Sequential(*(layer for pair in layers for layer in pair))

    def forward(self, inputs: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Find the places."""
        with record_function("LABEL1: linear pass"):
            out = self.linear(inputs)
        with record_function("LABEL2: masking"):
            threshold = out.sum(dim=1).mean()
            if self.fixed:
                return (mask > threshold).nonzero()
            array = mask.cpu().numpy()
            places = np.argwhere(array > threshold.item())
            return torch.from_numpy(places).to(mask.device)


def main(fixed: bool, end_of_step: Callable[[], object] = lambda: None, steps: int = STEPS) -> None:
    """Look for places, a few times."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Masking(fixed).to(device)
    inputs, mask = torch.rand(2048, 64, device=device), torch.rand(96, 96, 96, device=device)
    with torch.inference_mode():
        for _ in range(steps):
            model(inputs, mask)
            end_of_step()


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    main("--fixed" in sys.argv, steps=numbers[0] if numbers else STEPS)
