"""Labels around two parts of a model, and the source line of each operator: which part is slow, and where."""

import itertools

import numpy as np
import torch

import hotspan.profiler.autograd as profiler


class Thresholded(torch.nn.Module):
    """Linear layers, and a mask that is compared with their mean."""

    def __init__(self, in_features: int, out_features: int, hidden_sizes: list[int]) -> None:
        super().__init__()
        sizes = [in_features, *hidden_sizes, out_features]
        layers: list[torch.nn.Module] = []
        for before, after in itertools.pairwise(sizes):
            layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
        self.linear = torch.nn.Sequential(*layers)

    def forward(self, inputs: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The output, and where the mask is above its mean; the second by a detour over NumPy."""
        with profiler.record_function("LABEL1: linear pass"):
            out = self.linear(inputs)
        with profiler.record_function("LABEL2: masking"):
            threshold = out.sum(axis=1).mean().item()
            above = np.argwhere(mask.cpu().numpy() > threshold)
            above = torch.from_numpy(above)
        return out, above


class ThresholdedInTorch(Thresholded):
    """The same without the detour."""

    def forward(
        self, inputs: torch.Tensor, mask: torch.Tensor
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        """The output, and where the mask is above its mean."""
        with profiler.record_function("LABEL1: linear pass"):
            out = self.linear(inputs)
        with profiler.record_function("LABEL2: masking"):
            threshold = out.sum(axis=1).mean()
            above = (mask > threshold).nonzero(as_tuple=True)
        return out, above


inputs = torch.rand(64, 512)
mask = torch.rand((32, 32, 32))
for kind in (Thresholded, ThresholdedInTorch):
    model = kind(512, 8, [32, 32, 32])
    model(inputs, mask)  # warm-up
    with profiler.profile(with_stack=True) as prof:
        model(inputs, mask)
    print(prof.key_averages(group_by_stack_n=1).table(sort_by="self_cpu_time_total", row_limit=5))
