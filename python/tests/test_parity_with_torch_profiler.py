"""What torch.profiler says about a program and what hotspan says about the trace torch wrote of it are the same."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import hotspan
from table_text import columns, differences

pytest.importorskip("torch")
pytest.importorskip("torchvision")

import torch

from torch_programs import PROGRAMS, TIMES, Recording, record

FULL = {"record_shapes": True, "profile_memory": True}
# torch counts these; hotspan counts more (attention, backward convolutions), so others are compared by their absence.
OPERATORS_WITH_TORCH_FLOPS = {
    "aten::conv2d",
    "aten::mm",
    "aten::addmm",
    "aten::bmm",
    "aten::baddbmm",
    "aten::mul",
    "aten::add",
}

EXACT = (
    "count",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
)


@pytest.fixture(scope="module", params=sorted(PROGRAMS))
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record(request.param, tmp_path_factory.mktemp("traces"), **FULL)


@pytest.fixture(scope="module")
def trace(recording: Recording) -> hotspan.Trace:
    return hotspan.open(recording.path)


@pytest.fixture(scope="module", params=sorted(PROGRAMS))
def any_recording_with_stack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Recording:
    return record(request.param, tmp_path_factory.mktemp("traces"), with_stack=True, **FULL)


@pytest.fixture(scope="module")
def recording_with_stack(any_recording_with_stack: Recording) -> Recording:
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 14):
        pytest.skip("until 2.13 torch left Python functions out of the tree: docs/torch-differences.md")
    return any_recording_with_stack


def identity(row: Any) -> tuple[Any, ...]:
    return (row.key, row.is_user_annotation, row.overload_name, str(row.input_shapes or ""), tuple(row.stack))


def assert_same_rows(ours: hotspan.EventList, theirs: Any) -> None:
    """The same rows in the same order, with the same numbers."""
    assert [identity(row) for row in ours] == [identity(row) for row in theirs]
    for our, their in zip(ours, theirs, strict=True):
        for name in EXACT:
            assert getattr(our, name) == getattr(their, name), (our.key, name)
        for name in TIMES:
            # A nanosecond per call for what rounding to printed microseconds may cost.
            expected = pytest.approx(getattr(their, name), rel=1e-9, abs=0.001 * their.count)
            assert getattr(our, name) == expected, (our.key, name)
        assert our.cpu_time == pytest.approx(their.cpu_time, rel=1e-9, abs=0.001)
        assert our.device_time == pytest.approx(their.device_time, rel=1e-9, abs=0.001)
        assert our.is_async == their.is_async


@pytest.mark.parametrize("by_shape", [False, True], ids=["by_name", "by_shape"])
def test_rows_equal_torch(recording: Recording, trace: hotspan.Trace, by_shape: bool) -> None:
    ours = trace.key_averages(group_by_input_shape=by_shape)
    theirs = recording.averages(group_by_input_shape=by_shape)
    assert len(theirs) > 10
    assert_same_rows(ours, theirs)


def test_overloads_equal_torch(recording: Recording, trace: hotspan.Trace) -> None:
    assert_same_rows(
        trace.key_averages(group_by_overload_name=True), recording.averages(group_by_overload_name=True)
    )


@pytest.mark.parametrize("depth", [0, 1, 5])
def test_rows_with_stacks_equal_torch(recording_with_stack: Recording, depth: int) -> None:
    trace = hotspan.open(recording_with_stack.path)
    theirs = recording_with_stack.averages(group_by_stack_n=depth)
    assert any(row.stack for row in theirs) == (depth > 0)
    assert_same_rows(trace.key_averages(group_by_stack_n=depth), theirs)


def test_operators_of_recordings_with_stacks_equal_torch(any_recording_with_stack: Recording) -> None:
    """What every version of torch agrees about: calls of operators, their whole time and memory."""
    trace = hotspan.open(any_recording_with_stack.path)
    ours = {row.key: row for row in trace.key_averages() if row.key.startswith("aten::")}
    theirs = {row.key: row for row in any_recording_with_stack.averages() if row.key.startswith("aten::")}
    assert list(ours) == list(theirs)
    for key, row in theirs.items():
        assert ours[key].count == row.count
        assert ours[key].cpu_memory_usage == row.cpu_memory_usage
        assert ours[key].cpu_time_total == pytest.approx(row.cpu_time_total, abs=0.001 * row.count)


def test_shapes_and_stacks_together_equal_torch(recording_with_stack: Recording) -> None:
    trace = hotspan.open(recording_with_stack.path)
    grouping = {"group_by_input_shape": True, "group_by_stack_n": 3}
    assert_same_rows(trace.key_averages(**grouping), recording_with_stack.averages(**grouping))


def test_the_total_equals_torch(recording: Recording, trace: hotspan.Trace) -> None:
    ours, theirs = trace.key_averages().total_average(), recording.averages().total_average()
    assert ours.key == theirs.key == "Total"
    assert ours.count == theirs.count
    assert ours.self_cpu_time_total == pytest.approx(theirs.self_cpu_time_total, rel=1e-9)
    assert ours.cpu_time_total == pytest.approx(theirs.cpu_time_total, rel=1e-9)


@pytest.mark.parametrize("program", sorted(PROGRAMS))
@pytest.mark.parametrize("by_shape", [False, True], ids=["by_name", "by_shape"])
def test_flops_of_torchs_operators_equal_torch(program: str, by_shape: bool, tmp_path: Path) -> None:
    recording = record(program, tmp_path, with_flops=True)
    ours = hotspan.open(recording.path).key_averages(group_by_input_shape=by_shape)
    theirs = recording.averages(group_by_input_shape=by_shape)
    assert sum(row.flops for row in theirs) > 0
    assert [(row.key, str(row.input_shapes or "")) for row in ours] == [
        (row.key, str(row.input_shapes or "")) for row in theirs
    ]
    for our, their in zip(ours, theirs, strict=True):
        if our.key in OPERATORS_WITH_TORCH_FLOPS:
            assert our.flops == their.flops, (our.key, our.input_shapes)
        else:
            assert their.flops == 0


TABLES = {
    "default": {},
    "sorted by self time": {"sort_by": "self_cpu_time_total", "row_limit": 10},
    "sorted by total time": {"sort_by": "cpu_time_total", "row_limit": 3},
    "sorted by average": {"sort_by": "cpu_time"},
    "sorted by calls": {"sort_by": "count", "row_limit": 7},
    "sorted by memory": {"sort_by": "self_cpu_memory_usage", "row_limit": -1},
    "sorted by name": {"sort_by": "key"},
    "sorted by a device that is not there": {"sort_by": "cuda_time_total", "row_limit": 5},
    "with a header": {"header": "A title of its own", "row_limit": 4},
    "top level only": {"top_level_events_only": True},
    "top level with a header": {"top_level_events_only": True, "header": "Both"},
    "in seconds": {"time_unit": "s"},
    "in milliseconds": {"time_unit": "ms"},
    "in microseconds": {"time_unit": "us"},
    "narrow names": {"max_name_column_width": 20},
    "names as wide as they are": {"max_name_column_width": None},
    "no rows": {"row_limit": 0},
}


@pytest.mark.parametrize("options", TABLES.values(), ids=TABLES)
def test_tables_look_like_torchs(recording: Recording, trace: hotspan.Trace, options: dict[str, Any]) -> None:
    ours, theirs = trace.key_averages().table(**options), recording.exact_averages().table(**options)
    assert differences(ours, theirs) == []


@pytest.mark.parametrize("width", [80, 30, 200, None])
def test_tables_with_shapes_look_like_torchs(
    recording: Recording, trace: hotspan.Trace, width: int | None
) -> None:
    options: dict[str, Any] = {"sort_by": "cpu_time_total", "max_shapes_column_width": width}
    ours = trace.key_averages(group_by_input_shape=True).table(**options)
    theirs = recording.exact_averages(group_by_input_shape=True).table(**options)
    assert differences(ours, theirs) == []


@pytest.mark.parametrize("width", [75, 20, None])
def test_tables_with_stacks_look_like_torchs(recording_with_stack: Recording, width: int | None) -> None:
    options: dict[str, Any] = {
        "sort_by": "self_cpu_time_total",
        "max_src_column_width": width,
        "row_limit": 20,
    }
    ours = hotspan.open(recording_with_stack.path).key_averages(group_by_stack_n=4).table(**options)
    theirs = recording_with_stack.exact_averages(group_by_stack_n=4).table(**options)
    assert differences(ours, theirs) == []


def test_tables_with_flops_look_like_torchs(tmp_path: Path) -> None:
    """A forward pass has no operator that only hotspan counts, so that the whole table is the same."""
    recording = record("resnet18_forward", tmp_path, with_flops=True, **FULL)
    for grouping in ({}, {"group_by_input_shape": True}):
        ours = hotspan.open(recording.path).key_averages(**grouping).table(sort_by="flops", row_limit=15)
        theirs = recording.exact_averages(**grouping).table(sort_by="flops", row_limit=15)
        assert "FLOPs" in theirs
        assert differences(ours, theirs) == []


def test_stack_and_flops_stand_in_their_own_columns(tmp_path: Path) -> None:
    """torch prints these two under each other's title; hotspan does not."""
    recording = record("resnet18_forward", tmp_path, with_stack=True, with_flops=True, **FULL)
    text = hotspan.open(recording.path).key_averages(group_by_stack_n=2).table(sort_by="flops", row_limit=5)
    lines = text.split("\n")
    spans = columns(lines[0])
    titles = [lines[1][start:end].strip() for start, end in spans]
    flops = next(index for index, title in enumerate(titles) if title.endswith("FLOPs"))
    source = titles.index("Source Location")
    first = [lines[3][start:end].strip() for start, end in spans]
    assert float(first[flops]) > 0
    assert first[source] == "" or not first[source].replace(".", "").isdigit()


def test_extra_columns_are_opt_in(trace: hotspan.Trace) -> None:
    averages = trace.key_averages()
    plain = averages.table(sort_by="cpu_time_total")
    wide = averages.table(sort_by="cpu_time_total", extra_columns=("distribution", "wall"))
    assert len(wide.split("\n")) == len(plain.split("\n"))
    added = len(columns(wide.split("\n")[0])) - len(columns(plain.split("\n")[0]))
    assert added == 5
    for row in averages:
        assert row.min_time <= row.p50_time <= row.p99_time <= row.max_time


def test_an_unknown_sort_key_lists_the_valid_ones(trace: hotspan.Trace) -> None:
    with pytest.raises(ValueError) as refused:
        trace.key_averages().table(sort_by="cpu_tme_total")
    message = str(refused.value)
    assert "cpu_tme_total" in message
    for valid in ("cpu_time_total", "self_cpu_time_total", "count", "flops"):
        assert valid in message


def test_python_functions_are_rows_only_on_request(recording_with_stack: Recording) -> None:
    trace = hotspan.open(recording_with_stack.path)
    plain = trace.key_averages()
    with_python = trace.key_averages(include_python_functions=True)
    assert len(with_python) > len(plain)
    events = recording_with_stack.profiler.events()
    if "include_python_functions" not in inspect.signature(events.key_averages).parameters:
        pytest.skip("torch before 2.14 cannot choose")
    theirs = events.key_averages(include_python_functions=True)
    assert sorted(row.key for row in with_python) == sorted(row.key for row in theirs)


def test_steps_are_one_row(tmp_path: Path) -> None:
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule

    path = tmp_path / "steps.json"
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=3, repeat=1),
        on_trace_ready=lambda recorded: recorded.export_chrome_trace(str(path)),
    ) as profiler:
        for _ in range(4):
            torch.add(torch.ones(3), 1)
            profiler.step()
        theirs = profiler.key_averages()
    ours = hotspan.open(path).key_averages()
    assert [row.count for row in ours if row.key == "ProfilerStep*"] == [3]
    assert_same_rows(ours, theirs)
