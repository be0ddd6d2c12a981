"""Hooks on modules: the backward pass belongs to the modules of the forward pass, and compiled models stay whole."""

from __future__ import annotations

import warnings

import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch._dynamo.utils import counters

from hotspan.profiler import ProfilerActivity, profile

CPU = [ProfilerActivity.CPU]


@pytest.fixture(autouse=True)
def own_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTSPAN_COLLECTOR", "native")


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.second(self.first(inputs).sin())
        return out


def test_backward_operators_belong_to_the_modules_of_their_forward() -> None:
    model = Pair()
    with profile(activities=CPU, with_modules=True, record_shapes=True) as prof:
        for _ in range(2):
            model(torch.ones(3, 4)).sum().backward()
    rows = {(row.key, row.module): row.count for row in prof.key_averages(group_by_module=True)}
    assert rows["AddmmBackward0", "nn.Module: Pair.first"] == 2
    assert rows["AddmmBackward0", "nn.Module: Pair.second"] == 2
    assert rows["SinBackward0", "nn.Module: Pair"] == 2
    # The gradient of the weights, and in the second layer that of the inputs.
    assert rows["aten::mm", "nn.Module: Pair.first"] == 2
    assert rows["aten::mm", "nn.Module: Pair.second"] == 4
    # The sum was not taken inside a module.
    assert rows["SumBackward0", None] == 2


@pytest.mark.parametrize("compiled_before", [True, False])
def test_a_compiled_model_is_not_broken_up(compiled_before: bool) -> None:
    torch._dynamo.reset()
    counters.clear()
    model = Pair()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    inputs = torch.ones(3, 4)
    expected = model(inputs)
    if compiled_before:
        compiled(inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        before = list(warnings.filters)
        with profile(activities=CPU, with_modules=True, profile_memory=True) as prof:
            for _ in range(2):
                result = compiled(inputs)
        assert list(warnings.filters) == before
    assert torch.equal(result, expected)
    assert not counters["graph_break"]
    assert counters["stats"]["unique_graphs"] == 1
    modules = [event.name for event in prof.events() if event.name.startswith("nn.Module: Pair")]
    assert modules == ["nn.Module: Pair"] * 2
    (cpu,) = prof.trace.memory_timeline()
    assert cpu.peak_by_category["parameter"] == 4 * (4 * 8 + 8 + 8 * 2 + 2)
