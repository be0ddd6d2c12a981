"""Programs that are recorded once by torch.profiler and once by hotspan.profiler: what both see must be the same."""

from __future__ import annotations

import threading
from collections.abc import Callable

import torch
from torch import nn
from torch.profiler import record_function
from torch.utils.data import DataLoader, TensorDataset

Program = Callable[[], None]


def resnet18_forward() -> Program:
    """A forward pass."""
    import torchvision

    model, pictures = torchvision.models.resnet18().eval(), torch.randn(2, 3, 64, 64)

    def run() -> None:
        with torch.inference_mode(), record_function("forward"):
            model(pictures)

    return run


def resnet50_forward() -> Program:
    """A deeper one, in training mode: batch statistics are written."""
    import torchvision

    model, pictures = torchvision.models.resnet50(), torch.randn(2, 3, 32, 32)

    def run() -> None:
        model(pictures)

    return run


def training_step() -> Program:
    """Forward, backward, optimizer, twice. The optimizer does the same every time, unlike Adam, which counts."""
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 14 * 14, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    inputs, labels = torch.randn(4, 3, 16, 16), torch.randint(0, 10, (4,))

    def run() -> None:
        for _ in range(2):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
        # Releases of what an earlier recording saw allocated are reported, others are not: leave nothing to release.
        optimizer.zero_grad()

    return run


def transformer_encoder() -> Program:
    """Two encoder layers, forward and backward."""
    layer = nn.TransformerEncoderLayer(d_model=32, nhead=4, dim_feedforward=64, batch_first=True, dropout=0.0)
    model, inputs = nn.TransformerEncoder(layer, 2), torch.randn(2, 12, 32)
    return lambda: model(inputs).square().mean().backward()


def lstm() -> Program:
    """Two LSTM layers, forward and backward."""
    model, inputs = nn.LSTM(8, 16, num_layers=2), torch.randn(5, 2, 8)
    return lambda: model(inputs)[0].sum().backward()


def dataloader() -> Program:
    """Batches from two worker processes."""
    dataset = TensorDataset(torch.arange(48.0).reshape(12, 4))

    def run() -> None:
        for (batch,) in DataLoader(dataset, batch_size=3, num_workers=2):
            batch.mul_(2)

    return run


def compiled() -> Program:
    """A compiled function; what it compiles to is seen as one operator or as several."""
    torch._dynamo.reset()
    function = torch.compile(lambda x, y: (x * y).relu() + torch.mm(x, y), backend="aot_eager")
    x, y = torch.randn(8, 8), torch.randn(8, 8)

    def run() -> None:
        function(x, y)

    return run


def threads() -> Program:
    """Operators on plain threads, which torch.profiler does not see."""
    tensor = torch.ones(16, 16)

    def run() -> None:
        def work() -> None:
            for _ in range(10):
                torch.mm(tensor, tensor)

        workers = [threading.Thread(target=work) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    return run


PROGRAMS: dict[str, Callable[[], Program]] = {
    "resnet18_forward": resnet18_forward,
    "resnet50_forward": resnet50_forward,
    "training_step": training_step,
    "transformer_encoder": transformer_encoder,
    "lstm": lstm,
    "dataloader": dataloader,
    "compiled": compiled,
}
