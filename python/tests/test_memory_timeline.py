"""Memory over time: what was held, when it was most, and by whom."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hotspan
from conftest import complete


def memory(time: float, amount: int, address: int, **fields: Any) -> dict[str, Any]:
    args = {"Bytes": amount, "Addr": address, "Device Type": 0, "Device Id": -1, **fields}
    return {
        "ph": "i",
        "cat": "cpu_instant_event",
        "s": "t",
        "name": "[memory]",
        "pid": 1,
        "tid": 1,
        "ts": time,
        "args": args,
    }


def test_the_peak_and_who_held_it(write_trace: Callable[..., Path]) -> None:
    events = [
        complete("aten::linear", 0, 10),
        complete("aten::empty", 1, 2),
        memory(2, 100, 0xA00),
        complete("aten::relu", 20, 10),
        memory(21, 50, 0xB00),
        memory(25, -100, 0xA00),
        memory(40, 30, 0xC00),
        complete("aten::linear", 50, 10),
        memory(51, 100, 0xA00),
        memory(60, -100, 0xA00),
        memory(55, 7, 0xD00, **{"Device Type": 1, "Device Id": 0}),
    ]
    cpu, cuda = hotspan.open(write_trace(events)).memory_timeline()
    assert (cpu.device_type, cpu.device_index) == (0, -1)
    assert [held for _, held in cpu.held] == [100, 150, 50, 80, 180, 80]
    assert cpu.peak_bytes == 180
    assert cpu.peak_ns == dict(map(reversed, cpu.held))[180]
    assert [holder[:3] for holder in cpu.holders] == [
        ("aten::linear", 100, 1),
        ("aten::relu", 50, 1),
        ("", 30, 1),
    ]
    assert (cuda.device_type, cuda.peak_bytes) == (1, 7)


def test_a_trace_without_memory(write_trace: Callable[..., Path]) -> None:
    assert hotspan.open(write_trace([complete("aten::add", 0, 1)])).memory_timeline() == []


def test_a_recording() -> None:
    pytest.importorskip("torch")
    import torch

    from hotspan.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        kept = torch.ones(1000)
        torch.ones(5000).neg()
        del kept
    (cpu,) = prof.trace.memory_timeline()
    assert cpu.peak_bytes == 4 * (1000 + 5000 + 5000)
    assert cpu.held[-1][1] == 0
    assert {holder.operator: holder.bytes for holder in cpu.holders} == {
        "aten::ones": 24_000,
        "aten::neg": 20_000,
    }


def test_the_stack_of_who_held_it() -> None:
    pytest.importorskip("torch")
    import torch

    from hotspan.profiler import ProfilerActivity, profile

    def allocate_a_lot() -> object:
        return torch.ones(100_000)

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, with_stack=True) as prof:
        kept = allocate_a_lot()
    del kept
    (cpu,) = prof.trace.memory_timeline()
    (holder,) = [holder for holder in cpu.holders if holder.bytes == 400_000]
    assert holder.operator == "aten::ones"
    assert any("allocate_a_lot" in entry for entry in holder.stack), holder.stack
