"""Small torch programs, recorded by torch.profiler itself: what hotspan must say about them is what torch says."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile, record_function

TIMES = ("cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total")


@dataclass(frozen=True)
class Recording:
    """A profile as torch holds it, and the trace torch wrote of it."""

    profiler: profile
    path: Path

    def averages(self, **grouping: Any) -> Any:
        """torch's own table of the recording."""
        return self.profiler.key_averages(**grouping)

    def exact_averages(self, **grouping: Any) -> Any:
        """The same with times that are whole nanoseconds, as torch recorded them.

        torch adds up binary fractions of microseconds; what that leaves over decides how it sorts rows of equal time.
        """
        averages = self.averages(**grouping)
        for row in averages:
            for name in TIMES:
                setattr(row, name, round(getattr(row, name), 3))
        return averages


def resnet18_forward() -> Callable[[], None]:
    """A forward pass of ResNet-18 on two small pictures."""
    import torchvision

    model = torchvision.models.resnet18().eval()
    pictures = torch.randn(2, 3, 64, 64)

    def run() -> None:
        with torch.inference_mode(), record_function("forward"):
            model(pictures)

    return run


def mlp_training() -> Callable[[], None]:
    """Two training steps of a small multilayer perceptron: forward, backward, SGD."""
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    inputs, labels = torch.randn(16, 64), torch.randint(0, 10, (16,))

    def run() -> None:
        for _ in range(2):
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    return run


def transformer_training() -> Callable[[], None]:
    """A training step of a transformer encoder block."""
    model = nn.TransformerEncoderLayer(d_model=32, nhead=4, dim_feedforward=64, batch_first=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.randn(2, 12, 32)

    def run() -> None:
        with record_function("forward"):
            loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()

    return run


PROGRAMS: dict[str, Callable[[], Callable[[], None]]] = {
    "resnet18_forward": resnet18_forward,
    "mlp_training": mlp_training,
    "transformer_training": transformer_training,
}


def record(program: str, folder: Path | None = None, **options: Any) -> Recording:
    """Runs a program once unseen and once recorded, and has torch write the trace."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    run = PROGRAMS[program]()
    run()
    if options.get("with_stack"):
        # Without it torch gives its events no stack at all.
        options["experimental_config"] = _ExperimentalConfig(verbose=True)
    with profile(activities=[ProfilerActivity.CPU], **options) as profiler:
        run()
    folder = folder or Path(tempfile.mkdtemp())
    path = folder / f"{program}.pt.trace.json.gz"
    profiler.export_chrome_trace(str(path))
    return Recording(profiler, path)
