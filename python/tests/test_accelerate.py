"""hotspan inside Hugging Face Accelerate, both ways of handing it over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hotspan

pytest.importorskip("torch")
pytest.importorskip("accelerate")

import torch
from accelerate import Accelerator
from accelerate.utils import ProfileKwargs as TheirKwargs

import hotspan.profiler
from hotspan.integrations.accelerate import ProfileKwargs


@pytest.fixture(params=["kwargs_handlers", "argument"])
def profiled(request: pytest.FixtureRequest) -> Any:
    """Opens a profile in one of the two ways."""

    def begin(**options: Any) -> Any:
        handler = ProfileKwargs(**options)
        if request.param == "argument":
            return Accelerator(cpu=True).profile(handler)
        return Accelerator(cpu=True, kwargs_handlers=[handler]).profile()

    return begin


def test_it_is_accelerates_own_class_to_accelerate() -> None:
    handler = ProfileKwargs(activities=["cpu"])
    assert handler.__class__ is TheirKwargs
    assert isinstance(handler, TheirKwargs)
    assert isinstance(handler, ProfileKwargs)
    assert handler.to_kwargs() == {"activities": ["cpu"]}


def test_the_profile_is_hotspans(profiled: Any) -> None:
    with profiled(activities=["cpu"], record_shapes=True, profile_memory=True, with_flops=True) as prof:
        torch.mm(torch.ones(2, 3), torch.ones(3, 4))
    assert isinstance(prof, hotspan.profiler.profile)
    (row,) = [row for row in prof.key_averages(group_by_input_shape=True) if row.key == "aten::mm"]
    assert row.input_shapes == [[2, 3], [3, 4]]
    assert row.flops == 48
    assert row.cpu_memory_usage == 32


def test_cycles_and_the_handler(profiled: Any) -> None:
    seen = []
    option = {"wait": 1, "warmup": 1, "active": 1, "repeat": 2, "skip_first": 1}
    with profiled(
        activities=["cpu"], schedule_option=option, on_trace_ready=lambda prof: seen.append(prof.step_num)
    ) as prof:
        for _ in range(8):
            torch.ones(2).neg()
            prof.step()
    assert seen == [4, 7]


def test_the_trace_lands_where_accelerate_puts_it(profiled: Any, tmp_path: Path) -> None:
    with profiled(activities=["cpu"], output_trace_dir=str(tmp_path / "traces")):
        torch.ones(2).neg()
    trace = hotspan.open(tmp_path / "traces" / "profile_0.json")
    assert "aten::neg" in [row.key for row in trace.key_averages()]


def test_unknown_activities_are_named() -> None:
    with pytest.raises(ValueError, match="unknown activity 'tpu'"):
        ProfileKwargs(activities=["tpu"]).build()
