"""Programs for the advice tests: for each rule one that should be told something, and the same one mended."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset

from hotspan.profiler import profile, record_function, schedule
from hotspan.trace import Trace

Step = Callable[[], object]


#: How often other programs took the processor away during the last recording.
_disturbances = 0


def _switches() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def undisturbed(make: Callable[[], Trace], attempts: int = 12) -> tuple[Trace, bool]:
    """A recording during which no other program took the processor, or the least disturbed of several; and which it is.

    Rules judge shares of time: whoever loses the processor in the middle of a short operator has a long one.
    """
    found: dict[int, Trace] = {}
    for _ in range(attempts):
        trace = make()
        found.setdefault(_disturbances, trace)
        if _disturbances == 0:
            break
    return found[min(found)], 0 in found


def record(step: Step, steps: int = 3, warm_up: bool = True) -> Trace:
    """Record some steps, with all that rules may need."""
    global _disturbances
    if warm_up:
        step()
    before = _switches()
    with profile(
        schedule=schedule(wait=0, warmup=1, active=steps, repeat=1), record_shapes=True, profile_memory=True
    ) as profiler:
        for number in range(steps + 1):
            if warm_up or number > 0:
                step()
            profiler.step()
    _disturbances = _switches() - before
    return profiler.trace


def convolutions(dtype: torch.dtype) -> Step:
    """A small convolutional network."""
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.ReLU()).to(dtype)
    pictures = torch.randn(4, 3, 64, 64, dtype=dtype)

    def step() -> None:
        with torch.inference_mode():
            model(pictures)

    return step


def masking(with_numpy: bool) -> Step:
    """Find the places of large elements."""
    mask = torch.rand(64, 64, 64)

    def step() -> torch.Tensor:
        with record_function("masking"):
            if with_numpy:
                return torch.from_numpy(np.argwhere(mask.cpu().numpy() > 0.5))
            return (mask > 0.5).nonzero()

    return step


def reading(one_by_one: bool) -> Step:
    """Read numbers out of a tensor."""
    values = torch.rand(64)

    def step() -> list[float]:
        return [value.item() for value in values.unbind()] if one_by_one else values.tolist()

    return step


class SlowFiles(Dataset[torch.Tensor]):
    """Samples that take long to come, as from a disk."""

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.002)
        return torch.full((48, 48), float(index))


def loading(slow: bool) -> Step:
    """Take a batch from a DataLoader and use it."""
    weights = torch.randn(256, 256)
    dataset: Dataset[Any] = SlowFiles() if slow else TensorDataset(torch.randn(64, 48, 48))
    batches = iter(DataLoader(dataset, batch_size=4))

    def step() -> None:
        next(batches)
        for _ in range(1 if slow else 20):
            weights @ weights

    return step


class Pictures(Dataset[torch.Tensor]):
    """PIL pictures that become tensors whenever they are asked for."""

    def __init__(self) -> None:
        from PIL import Image
        from torchvision import transforms

        noise = np.random.default_rng(0).integers(0, 255, (32, 32, 32, 3), dtype=np.uint8)
        self.pictures = [Image.fromarray(picture) for picture in noise]
        self.transform = transforms.Compose(
            [transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.5,) * 3)]
        )

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.transform(self.pictures[index % 32])


def transforming(one_by_one: bool) -> Step:
    """Load batches of pictures."""
    pictures: Dataset[Any] = Pictures() if one_by_one else TensorDataset(torch.randn(1000, 3, 32, 32))
    batches = iter(DataLoader(pictures, batch_size=16))
    return lambda: next(batches)


def uneven(first_is_slow: bool) -> Step:
    """Take longer the first time."""
    durations = iter([0.1 if first_is_slow else 0.01])

    def step() -> torch.Tensor:
        time.sleep(next(durations, 0.01))
        return torch.ones(4).sum()

    return step


def attention(fused: bool) -> Step:
    """Attend."""
    query, key, value = torch.randn(3, 2, 4, 64, 32).unbind()

    def step() -> torch.Tensor:
        if fused:
            return functional.scaled_dot_product_attention(query, key, value)
        scores = query @ key.transpose(-2, -1) / 32**0.5
        return scores.softmax(dim=-1) @ value

    return step


def optimizing(**options: bool) -> Step:
    """Update many small parameters."""
    parameters = [nn.Parameter(torch.randn(64, 64)) for _ in range(16)]
    optimizer = torch.optim.Adam(parameters, **options)
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    return optimizer.step


def forgetting(set_to_none: bool) -> Step:
    """Forget gradients."""
    parameters = [nn.Parameter(torch.randn(256, 256)) for _ in range(8)]
    optimizer = torch.optim.SGD(parameters)

    def step() -> None:
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        optimizer.zero_grad(set_to_none=set_to_none)

    return step


def adding(small: bool) -> Step:
    """Add numbers, one by one or all at once."""
    one, many = torch.ones(4), torch.ones(512, 512)

    def step() -> torch.Tensor:
        total = one
        for _ in range(1500 if small else 0):
            total = total + one
        return total if small else many @ many

    return step


def converting(each_time: bool) -> Step:
    """Multiply, in one type or another."""
    data = torch.randn(512, 512, dtype=torch.float64 if each_time else torch.float32)

    def step() -> torch.Tensor:
        return data.float().sum()

    return step


def ordering(copy: bool) -> Step:
    """Sum up what lies in another order."""
    data = torch.randn(1024, 1024)

    def step() -> torch.Tensor:
        return data.t().contiguous().sum() if copy else data.t().sum()

    return step


def evaluating(with_graph: bool) -> Step:
    """Evaluate a model."""
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(8)]).eval()
    inputs = torch.randn(8, 64)

    def step() -> None:
        with torch.inference_mode(not with_graph):
            model(inputs)

    return step


def normalising(bias: bool) -> Step:
    """Train with a normalisation after a convolution."""
    model = nn.Sequential(nn.Conv2d(64, 64, 7, bias=bias), nn.BatchNorm2d(64))
    pictures = torch.randn(4, 64, 32, 32)

    def step() -> None:
        model(pictures).sum().backward()

    return step


def indexing(one_by_one: bool) -> Step:
    """Add up rows."""
    rows = torch.randn(64, 16)

    def step() -> torch.Tensor:
        if not one_by_one:
            return rows.exp().sum(dim=0)
        total = torch.zeros(16)
        for index in range(len(rows)):
            total = total + rows[index].exp()
        return total

    return step


def keeping(graph: bool) -> Step:
    """Keep the losses of all steps."""
    layer, inputs, losses = nn.Linear(256, 256), torch.randn(64, 256), []

    def step() -> None:
        loss = layer(inputs).square().mean()
        loss.backward()
        layer.zero_grad()
        losses.append(layer(inputs).square() if graph else loss.detach())

    return step


def multiplying() -> Step:
    """Multiply matrices that are worth more than one thread."""
    matrix = torch.randn(700, 700)
    return lambda: matrix @ matrix


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch compute with this many threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def with_threads(count: int) -> Trace:
    """Record a program that computes with this many threads."""
    with threads(count):
        return record(multiplying())


def clean_training() -> Step:
    """A training loop that is as it should be."""
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    inputs, labels = torch.randn(128, 256), torch.randint(0, 10, (128,))

    def step() -> None:
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    return step


class Pair(NamedTuple):
    """What a rule should find, and what it should not."""

    wrong: Callable[[], Trace]
    right: Callable[[], Trace]


PAIRS: dict[str, Pair] = {
    "fp64-slow-path": Pair(
        lambda: record(convolutions(torch.float64)), lambda: record(convolutions(torch.float32))
    ),
    "numpy-round-trip": Pair(lambda: record(masking(True)), lambda: record(masking(False))),
    "scalar-read": Pair(lambda: record(reading(True)), lambda: record(reading(False))),
    "data-loading-bound": Pair(lambda: record(loading(True)), lambda: record(loading(False))),
    "per-sample-transforms": Pair(lambda: record(transforming(True)), lambda: record(transforming(False))),
    "warm-up-in-window": Pair(
        lambda: record(uneven(True), steps=6, warm_up=False), lambda: record(uneven(True), steps=6)
    ),
    "eager-attention": Pair(lambda: record(attention(False)), lambda: record(attention(True))),
    "for-loop-optimizer": Pair(
        lambda: record(optimizing(foreach=False)), lambda: record(optimizing(fused=True))
    ),
    "zero-grad-fills": Pair(lambda: record(forgetting(False)), lambda: record(forgetting(True))),
    "many-tiny-ops": Pair(lambda: record(adding(True)), lambda: record(adding(False))),
    "dtype-casts": Pair(lambda: record(converting(True)), lambda: record(converting(False))),
    "contiguous-copies": Pair(lambda: record(ordering(True)), lambda: record(ordering(False))),
    "autograd-in-evaluation": Pair(lambda: record(evaluating(True)), lambda: record(evaluating(False))),
    "conv-bias-before-norm": Pair(lambda: record(normalising(True)), lambda: record(normalising(False))),
    "for-loop-indexing": Pair(lambda: record(indexing(True)), lambda: record(indexing(False))),
    "one-thread": Pair(lambda: with_threads(1), lambda: with_threads(cores())),
    "thread-oversubscription": Pair(lambda: with_threads(cores() * 2), lambda: with_threads(cores())),
    "memory-growth": Pair(lambda: record(keeping(True), steps=7), lambda: record(keeping(False), steps=7)),
}
