"""Collectives on the CPU: the same events with the same arguments as torch.profiler records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
import torch.profiler
from torch import distributed

from hotspan.profiler import ProfilerActivity, profile

# What numbers events, or only hotspan writes.
OTHERS = {"External id", "Record function id", "Ev Idx", "Sequence number", "Async"}


@pytest.fixture
def process_group(tmp_path: Path) -> Iterator[None]:
    if not distributed.is_available() or not distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.mark.usefixtures("process_group")
def test_collectives_as_torch_records_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTSPAN_COLLECTOR", "native")
    found: list[Any] = []
    for kind in (profile, torch.profiler.profile):
        with kind(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
            tensor = torch.ones(8)
            distributed.all_reduce(tensor)
            distributed.broadcast(tensor, 0)
            distributed.all_gather([torch.ones(8)], tensor)
            distributed.barrier()
        path = tmp_path / "trace.json"
        prof.export_chrome_trace(str(path))
        trace = json.loads(path.read_text())
        events = [
            (
                event["ts"],
                event["name"],
                event["cat"],
                {k: v for k, v in event["args"].items() if k not in OTHERS},
            )
            for event in trace["traceEvents"]
            if event["ph"] == "X" and event["name"].startswith(("c10d::", "gloo:"))
        ]
        events.sort(key=lambda event: event[0])
        found.append(([event[1:] for event in events], trace["distributedInfo"]))
    assert [name for name, *_ in found[0][0]].count("c10d::allreduce_") == 1
    assert found[0] == found[1]


@pytest.mark.usefixtures("process_group")
def test_asynchronous_collectives_have_a_total_and_no_self_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTSPAN_COLLECTOR", "native")
    for kind in (profile, torch.profiler.profile):
        with kind(activities=[ProfilerActivity.CPU]) as prof:
            work = distributed.all_reduce(torch.ones(8), async_op=True)
            torch.mm(torch.ones(64, 64), torch.ones(64, 64))
            work.wait()
        (row,) = [row for row in prof.key_averages() if row.key == "gloo:all_reduce"]
        (event,) = [event for event in prof.events() if event.name == "gloo:all_reduce"]
        told = (row.is_async, row.self_cpu_time_total, event.is_async, event.cpu_children, event.cpu_parent)
        assert told == (True, 0, True, [], None), kind
        assert row.cpu_time_total > 0
