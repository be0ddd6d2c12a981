"""Case study: a ResNet in double precision on the CPU, and in float32.

    python examples/case_studies/double_precision.py [--fixed]

In double precision the convolutions fall off oneDNN's fast path. The advice names it: `fp64-slow-path`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
import torchvision

STEPS = 4


def main(fixed: bool, end_of_step: Callable[[], object] = lambda: None) -> None:
    """Classify some pictures, a few times."""
    dtype = torch.float32 if fixed else torch.float64
    model = torchvision.models.resnet18().to(dtype).eval()
    pictures = torch.randn(2, 3, 32, 32, dtype=dtype)
    with torch.inference_mode():
        for _ in range(STEPS):
            model(pictures)
            end_of_step()


if __name__ == "__main__":
    main("--fixed" in sys.argv)
