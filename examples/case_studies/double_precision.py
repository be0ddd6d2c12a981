"""Case study: a ResNet in double precision on the CPU, and in float32.

    python examples/case_studies/double_precision.py [--fixed] [STEPS]

In double precision the convolutions fall off oneDNN's fast path. The advice names it: `fp64-slow-path`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
import torchvision

STEPS = 4


def main(fixed: bool, end_of_step: Callable[[], object] = lambda: None, steps: int = STEPS) -> None:
    """Classify some pictures, a few times."""
    dtype = torch.float32 if fixed else torch.float64
    model = torchvision.models.resnet18().to(dtype).eval()
    pictures = torch.randn(4, 3, 64, 64, dtype=dtype)
    with torch.inference_mode():
        for _ in range(steps):
            model(pictures)
            end_of_step()


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    main("--fixed" in sys.argv, steps=numbers[0] if numbers else STEPS)
