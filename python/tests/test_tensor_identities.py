"""Which tensor is which: the numbers that torch gives, and torch's own analysis of memory on our recording."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
import torch.profiler
from torch import nn
from torch._C import _profiler as torch_types
from torch.profiler import ProfilerActivity, _utils

import hotspan.profiler

MODULES = [torch.profiler, hotspan.profiler]


@pytest.fixture(autouse=True)
def _no_help_from_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTSPAN_COLLECTOR", "native")


def views_and_storages() -> None:
    x = torch.ones(4, 3)
    (x.view(12) * 2).add_(x.view(1, 12).sum())
    x.resize_(128, 129)
    torch.relu(x)
    y = torch.ones(1)
    for _ in range(3):
        y.set_(torch.ones(1).untyped_storage())
        y.view_as(y)
    torch.cat([y, y.sin(), torch.ones(2)])


def training(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()


def a_training() -> Callable[[], None]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
    return lambda: training(model, optimizer)


def recorded(module: Any, program: Callable[[], None]) -> Any:
    gc.collect()
    options = {"record_shapes": True, "profile_memory": True, "with_stack": True}
    with module.profile(activities=[ProfilerActivity.CPU], **options) as prof:
        program()
    return prof


def numbers(prof: Any) -> list[Any]:
    """All that has a number, in order of time: operators by their inputs, allocations by their tensor."""
    roots = prof.profiler.kineto_results.experimental_event_tree()
    found: list[Any] = []
    for event in sorted(_utils.traverse_dfs(roots), key=lambda event: event.start_time_ns):
        fields = event.extra_fields
        if isinstance(fields, torch_types._ExtraFields_TorchOp):
            found.append((event.name, [number(one) for one in fields.inputs]))
        elif isinstance(fields, torch_types._ExtraFields_Allocation):
            found.append((fields.alloc_size, fields.id, fields.allocation_id, str(fields.device)))
    return found


def number(given: Any) -> Any:
    if isinstance(given, list):
        return [number(one) for one in given]
    if isinstance(given, torch_types._TensorMetadata):
        return given.id, given.allocation_id, given.dtype, given.layout, given.sizes, given.strides
    return given


def test_tensors_have_torchs_numbers() -> None:
    theirs, ours = (numbers(recorded(module, views_and_storages)) for module in MODULES)
    assert any(isinstance(entry[0], int) for entry in ours)
    assert ours == theirs


def test_of_a_training_every_operator_has_torchs_tensors() -> None:
    theirs, ours = (numbers(recorded(module, a_training())) for module in MODULES)
    assert [entry for entry in ours if isinstance(entry[0], str)] == [
        entry for entry in theirs if isinstance(entry[0], str)
    ]


def test_modules_and_optimizers_tell_their_parameters() -> None:
    def told(module: Any) -> Any:
        prof = recorded(module, a_training())
        found = []
        for event in _utils.traverse_dfs(prof.profiler.kineto_results.experimental_event_tree()):
            fields = event.extra_fields
            if getattr(fields, "module", None) is not None:
                tensors = [(name, number(one)[2:]) for name, one, _gradient in fields.module.parameters]
                found.append((event.name, fields.module.cls_name, tensors))
            elif getattr(fields, "optimizer", None) is not None:
                states = [
                    [(name, number(one)[2:]) for name, one in states]
                    for _one, _gradient, states in fields.optimizer.parameters
                ]
                found.append(("optimizer", len(fields.optimizer.parameters), states))
        return found

    theirs, ours = (told(module) for module in MODULES)
    assert any(entry[0] == "optimizer" for entry in ours)
    assert ours == theirs


def test_torchs_analysis_of_memory_comes_to_the_same() -> None:
    def categories(module: Any) -> Any:
        timeline = recorded(module, a_training())._memory_profile().timeline
        return sorted((action.name, size) for _time, action, _key, size in timeline)

    theirs, ours = (categories(module) for module in MODULES)
    assert ours
    assert ours == theirs


@pytest.mark.parametrize("shapes", [False, True])
def test_without_memory_inputs_have_shapes_and_types_as_far_as_recorded(shapes: bool) -> None:
    def told(module: Any) -> Any:
        with module.profile(activities=[ProfilerActivity.CPU], record_shapes=shapes) as prof:
            torch.ones(2, 3).add(1.5).to(torch.float64).view(6)
        tree = prof.profiler.kineto_results.experimental_event_tree()
        # Torch numbers them here, too, and takes a tensor for one whose address it got.
        inputs = [(event.name, event.extra_fields.inputs) for event in _utils.traverse_dfs(tree)]
        return [
            (name, [one if kind_is_plain(one) else number(one)[2:] for one in given])
            for name, given in inputs
        ]

    theirs, ours = (told(module) for module in MODULES)
    assert any(given for _name, given in ours) == shapes
    assert ours == theirs


def kind_is_plain(given: Any) -> bool:
    return not isinstance(given, torch_types._TensorMetadata)


def test_the_tree_is_the_same_every_time() -> None:
    prof = recorded(hotspan.profiler, views_and_storages)
    first, second = (prof.profiler.kineto_results.experimental_event_tree() for _ in range(2))
    assert first[0] is second[0]


class Allocated(ctypes.Structure):
    """glibc's ``mallinfo2``."""

    _fields_ = [("before", ctypes.c_size_t * 7), ("used", ctypes.c_size_t), ("after", ctypes.c_size_t * 2)]


def test_nothing_is_held_when_recording_has_ended() -> None:
    """While it records, the shells of tensors are kept, so that no address comes twice; then they go."""
    count = 2_000

    def window() -> None:
        recorded(hotspan.profiler, lambda: [torch.ones(1).neg() for _ in range(count)] and None)
        gc.collect()

    allocated = ctypes.CDLL(None).mallinfo2
    allocated.restype = Allocated
    for _ in range(3):
        window()
    before = allocated().used
    windows = 10
    for _ in range(windows):
        window()
    # A shell is more than 100 bytes.
    assert allocated().used - before < windows * count * 100 / 4
