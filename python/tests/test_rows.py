"""Rows and units: names say what a number counts, rows are typed and frozen, and old names still work."""

from __future__ import annotations

import inspect
import pickle
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hotspan
from conftest import complete
from hotspan import advice, diff, rows, sampling
from test_cli_device import EVENTS

#: What a name must say when it is about time or size.
ABOUT_TIME = ("time", "duration", "start", "begin", "total", "min", "max", "length", "weight", "at", "change")


@pytest.fixture
def trace(write_trace: Callable[..., Path]) -> hotspan.Trace:
    return hotspan.open(write_trace(EVENTS))


def tables(trace: hotspan.Trace) -> Iterator[tuple[str, list[hotspan.Row]]]:
    yield from trace.gpu().items()
    yield from trace.step_breakdown().items()
    yield "copies", trace.copies()
    yield "streams", trace.streams()
    yield "gaps", trace.idle()


def named_tuples() -> list[type]:
    return [
        kind
        for module in (rows, advice, diff, sampling)
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if kind.__module__ == module.__name__ and hasattr(kind, "_fields")
    ]


def test_the_fields_of_rows_say_their_unit() -> None:
    kinds = named_tuples()
    assert len(kinds) >= 12
    fields = [(kind.__name__, field) for kind in kinds for field in kind._fields]  # type: ignore[attr-defined]
    silent = [field for field in fields if field[1].split("_")[-1] in ABOUT_TIME]
    # The row that adds the others up.
    assert silent == [("Diff", "total")]
    assert all(kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}(") for kind in kinds)


def test_the_columns_of_tables_say_their_unit(trace: hotspan.Trace) -> None:
    seen = dict(tables(trace))
    assert {"devices", "host", "time", "copies", "streams", "gaps"} <= set(seen)
    for name, found in seen.items():
        for row in found:
            for column, value in row._asdict().items():
                assert column.split("_")[-1] not in ABOUT_TIME, (name, column)
                if column.endswith(("_ns", "bytes")) and column != "megabytes":
                    assert value is None or type(value) is int, (name, column, value)


def test_a_row_is_frozen_and_shows_itself(trace: hotspan.Trace) -> None:
    row = trace.step_breakdown()["devices"][0]
    parts = (row.compute_ns, row.communication_ns, row.copy_ns, row.idle_ns)
    assert sum(parts) == row.time_ns
    assert row._asdict()["time_ns"] == row.time_ns
    assert repr(row).startswith("Row(step='")
    assert f"time_ns={row.time_ns}" in repr(row)
    assert "time_ns" in dir(row)
    again = pickle.loads(pickle.dumps(row))
    assert (again, hash(again)) == (row, hash(row))
    assert row != row._asdict()
    with pytest.raises(AttributeError, match="cannot be changed"):
        row.time_ns = 3
    with pytest.raises(AttributeError, match="it has step, device, begin_ns, time_ns"):
        _ = row.tiem_ns


def test_a_column_named_like_a_keyword_is_an_attribute(trace: hotspan.Trace) -> None:
    names = set(trace.copies()[0]._asdict())
    assert {"from_", "to", "bytes", "total_ns", "rate"} <= names


def old_names(trace: hotspan.Trace) -> Iterator[tuple[Callable[[], Any], Any]]:
    row = trace.step_breakdown()["devices"][0]
    yield lambda: row["time"], row.time_ns
    yield lambda: row["step"], row.step
    copy = trace.copies()[0]
    yield lambda: copy["from"], copy.from_
    yield lambda: copy["bytes"], copy.bytes
    kernel = trace.kernels()[0]
    yield lambda: kernel.total, kernel.total_ns / 1000
    yield lambda: kernel.min, kernel.min_ns / 1000
    yield lambda: kernel.max, kernel.max_ns / 1000
    event = trace.events()[0]
    yield lambda: event.start_us, event.start_ns / 1000
    yield lambda: event.duration_us, event.duration_ns / 1000
    categories = rows.MemoryByCategory([1, 2], {})
    yield lambda: categories.times, [1, 2]


def test_old_names_work_and_warn_where_they_are_used(trace: hotspan.Trace) -> None:
    for use, expected in old_names(trace):
        with pytest.warns(DeprecationWarning, match="is deprecated: use ") as warned:
            assert use() == expected
        assert [warning.filename for warning in warned] == [__file__]
    with pytest.raises(KeyError):
        _ = trace.copies()[0]["no such column"]


def test_new_names_do_not_warn(trace: hotspan.Trace) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        repr(trace.events()[0])
        dir(hotspan)
        assert [kernel._asdict()["total_ns"] for kernel in trace.kernels()]


def test_times_agree_with_the_file(write_trace: Callable[..., Path]) -> None:
    step = complete("ProfilerStep#3", 5, 7.5, cat="user_annotation")
    trace = hotspan.open(write_trace([complete("aten::mm", 1, 2), step]))
    assert trace.steps == [(3, 4000, 7500)]
    assert trace.wall_time_ns == 11_500
    assert [(event.start_ns, event.duration_ns) for event in trace.events()] == [(0, 2000), (4000, 7500)]
