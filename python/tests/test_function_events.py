"""``events()``: every event with torch's attributes, compared one by one with torch's list of the same recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
import torch.profiler
from torch.autograd import DeviceType

import hotspan
from hotspan.profiler import ProfilerActivity, autograd_profile, profile, record_function, schedule
from profiled_programs import training_step
from table_text import differences

CPU = [ProfilerActivity.CPU]
Pair = tuple[Any, list[Any]]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """The events of one recording: hotspan's and torch's."""
    program = training_step()
    program()
    with torch.profiler.profile(
        activities=CPU, record_shapes=True, profile_memory=True, with_flops=True
    ) as theirs:
        program()
    path = tmp_path_factory.mktemp("events") / "trace.json"
    theirs.export_chrome_trace(str(path))
    return hotspan.open(path).function_events(), theirs.events()


def test_the_same_events_in_the_same_order(both: Pair) -> None:
    ours, theirs = both
    assert [event.name for event in ours] == [event.name for event in theirs]
    assert len(ours) == len(theirs) > 100
    assert ours[-1].name == ours[len(ours) - 1].name
    assert [event.name for event in ours[:3]] == [event.name for event in theirs[:3]]
    with pytest.raises(IndexError):
        ours[len(ours)]


@pytest.mark.parametrize(
    "attribute",
    [
        "key",
        "trace_name",
        "count",
        "input_shapes",
        "structured_input_shapes",
        "structured_input_strides",
        "input_dtypes",
        "sequence_nr",
        "scope",
        "cpu_memory_usage",
        "self_cpu_memory_usage",
        "device_memory_usage",
        "flops",
        "is_async",
        "is_remote",
        "is_legacy",
        "is_user_annotation",
        "node_id",
        "device_type",
        "device_index",
        "kernels",
        "stack",
    ],
)
def test_attributes(both: Pair, attribute: str) -> None:
    ours, theirs = both
    if not hasattr(theirs[0], attribute):
        pytest.skip("newer than this torch")
    for our, their in zip(ours, theirs, strict=True):
        value, expected = getattr(our, attribute), getattr(their, attribute)
        # torch has None for what memory events do not have, and 0 FLOPs for the backward of convolutions.
        if their.name == "[memory]" or (attribute == "flops" and not expected):
            continue
        assert value == expected, our


@pytest.mark.parametrize(
    "attribute",
    ["cpu_time", "cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total"],
)
def test_times(both: Pair, attribute: str) -> None:
    for our, their in zip(*both, strict=True):
        assert getattr(our, attribute) == pytest.approx(getattr(their, attribute), abs=2e-3), our
        assert our.time_range.elapsed_us() == pytest.approx(their.time_range.elapsed_us(), abs=2e-3)
    our, their = both[0][5], both[1][5]
    assert our.cpu_time_str == their.cpu_time_str


def test_the_tree(both: Pair) -> None:
    for our, their in zip(*both, strict=True):
        assert [child.name for child in our.cpu_children] == [child.name for child in their.cpu_children]
        parents = our.cpu_parent, their.cpu_parent
        assert (parents[0] and parents[0].name) == (parents[1] and parents[1].name)
        assert all(child.cpu_parent == our for child in our.cpu_children)
    assert len(set(both[0])) == len(both[0])


@pytest.mark.parametrize("memory", [False, True])
def test_the_table_of_events(memory: bool, tmp_path: Path) -> None:
    with torch.profiler.profile(activities=CPU, record_shapes=True, profile_memory=memory) as recorded:
        training_step()()
    recorded.export_chrome_trace(str(tmp_path / "trace.json"))
    ours, theirs = hotspan.open(tmp_path / "trace.json").function_events(), recorded.events()
    for options in ({}, {"sort_by": "cpu_time_total", "row_limit": 20}, {"top_level_events_only": True}):
        assert differences(ours.table(**options), theirs.table(**options)) == []


def test_kernels() -> None:
    path = Path(__file__).parents[2] / "crates/hotspan-analyze/tests/it/golden/step.trace.json"
    trace = hotspan.open(path)
    events = trace.function_events()
    launched = [kernel for event in events for kernel in event.kernels]
    assert launched
    rows = {row.key: row for row in trace.key_averages()}
    for name in {event.name for event in events}:
        same = [event for event in events if event.name == name]
        row = rows.get(name)
        if row is None or len({event.is_user_annotation for event in same}) > 1:
            continue
        if row.count == len(same):
            assert sum(e.self_device_time_total for e in same) == pytest.approx(row.self_device_time_total)
            assert sum(e.self_cpu_time_total for e in same) == pytest.approx(row.self_cpu_time_total)
    assert {event.device_type for event in events} == {DeviceType.CPU, DeviceType.CUDA}


def test_events_of_a_recording() -> None:
    with profile(activities=CPU, record_shapes=True) as prof, record_function("outer"):
        torch.ones(2, 3).neg()
    outer = next(event for event in prof.events() if event.name == "outer")
    assert [child.name for child in outer.cpu_children] == ["aten::ones", "aten::neg"]
    assert outer.cpu_children[1].input_shapes == [[2, 3]]
    assert outer.self_cpu_time_total < outer.cpu_time_total == pytest.approx(outer.duration_ns / 1e3)
    assert outer.is_user_annotation
    assert outer.scope == 7
    assert outer.thread > 0
    assert prof.events().key_averages().self_cpu_time_total == prof.key_averages().self_cpu_time_total


@pytest.mark.parametrize("accumulate", [False, True])
def test_events_of_several_cycles(accumulate: bool) -> None:
    counts = []
    for kind in (profile, torch.profiler.profile):
        with kind(
            activities=CPU,
            schedule=schedule(wait=0, warmup=1, active=1, repeat=3),
            acc_events=accumulate,
            on_trace_ready=lambda prof: prof.events(),
        ) as prof:
            for number in range(6):
                for _ in range(number):
                    torch.ones(2).neg()
                prof.step()
        rows = {row.key: row for row in prof.key_averages()}
        events = [event.name for event in prof.events()]
        assert rows["aten::neg"].count == events.count("aten::neg")
        counts.append((events.count("aten::neg"), events.count("ProfilerStep*")))
    assert counts[0] == counts[1] == ((9, 3) if accumulate else (5, 1))
    if accumulate:
        ours = kind_of_rows(accumulate)
        assert ours.min_time <= ours.p50_time <= ours.p99_time <= ours.max_time


def kind_of_rows(accumulate: bool) -> Any:
    """The row of an operator that took part in two cycles."""
    with profile(
        activities=CPU, schedule=schedule(wait=0, warmup=1, active=1, repeat=2), acc_events=accumulate
    ) as prof:
        for _ in range(4):
            torch.ones(2).neg()
            prof.step()
    (row,) = [row for row in prof.key_averages() if row.key == "aten::neg"]
    times = [event.cpu_time for event in prof.events() if event.name == "aten::neg"]
    assert (row.min_time, row.max_time, row.count) == (min(times), max(times), 2)
    return row


def test_the_older_table_has_a_row_for_each_event() -> None:
    with autograd_profile() as prof:
        for _ in range(3):
            torch.ones(2).neg()
    assert prof.table().count("aten::neg ") == 3
    assert prof.key_averages().table().count("aten::neg ") == 1
    assert str(prof.function_events) == prof.table() == str(prof)
