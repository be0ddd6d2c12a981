"""Records a small training loop with torch.profiler, as any script would, and writes the trace for hotspan to open.

Usage: python examples/record_with_torch.py [trace.json.gz]

Nothing here is of hotspan: what it opens is what torch writes.
"""

import sys
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule


def small_network() -> nn.Module:
    """A convolutional network that takes a second or two on a CPU."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(512, 10),
    )


def main() -> None:
    """Trains for six steps and keeps the last three."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "trace.json.gz")
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device == "cuda" else [])
    model = small_network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_function = nn.CrossEntropyLoss()

    with profile(
        activities=activities,
        schedule=schedule(wait=1, warmup=2, active=3, repeat=1),
        on_trace_ready=lambda recorded: recorded.export_chrome_trace(str(path)),
        record_shapes=True,
        profile_memory=True,
        with_flops=True,
    ) as profiler:
        for _step in range(6):
            with record_function("load batch"):
                images = torch.randn(16, 3, 64, 64, device=device)
                labels = torch.randint(0, 10, (16,), device=device)
            with record_function("forward"):
                loss = loss_function(model(images), labels)
            with record_function("backward"):
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()

    print(
        f"recorded 3 steps on {device} with torch {torch.__version__}: {path}, {path.stat().st_size:,} bytes"
    )


if __name__ == "__main__":
    main()
