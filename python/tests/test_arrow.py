"""The spans as Arrow tables: pyarrow, polars and DuckDB read them, and none of them needs a copy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import hotspan
from conftest import complete

EVENTS = [
    complete("aten::mm", 100, 20.5, args={"External id": 7, "Input type": ["float", "float"]}),
    complete("aten::add", 130.25, 5, tid=2),
    complete("gemm", 140, 9.125, cat="kernel", pid=0, tid=7, args={"stream": 7, "External id": 7}),
]


@pytest.fixture
def trace(write_trace: Callable[..., Path]) -> hotspan.Trace:
    return hotspan.open(write_trace(EVENTS, baseTimeNanoseconds=1_700_000_000_000_000_000))


def test_spans_know_their_number(trace: hotspan.Trace) -> None:
    assert len(trace.spans) == 3


def test_pyarrow_reads_the_columns(trace: hotspan.Trace) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(trace.spans)
    assert table.column_names == ["name", "category", "start_ns", "duration_ns", "process", "thread"]
    assert table["name"].to_pylist() == ["aten::mm", "aten::add", "gemm"]
    assert table["category"].to_pylist() == ["cpu_op", "cpu_op", "kernel"]
    starts = table["start_ns"].to_pylist()
    assert [start - starts[0] for start in starts] == [0, 30_250, 40_000]
    assert table["duration_ns"].to_pylist() == [20_500, 5_000, 9_125]


def test_no_column_is_copied_on_the_way_out(trace: hotspan.Trace) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    first, second = pyarrow.table(trace.spans), pyarrow.table(trace.spans)
    for name in ("name", "category", "start_ns", "duration_ns"):
        for one, other in zip(first[name].chunks, second[name].chunks, strict=True):
            ones = [buffer.address for buffer in one.buffers() if buffer]
            assert ones == [buffer.address for buffer in other.buffers() if buffer]
            assert ones, name


def test_the_table_outlives_the_trace(write_trace: Callable[..., Path]) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    trace = hotspan.open(write_trace(EVENTS))
    table = pyarrow.table(trace.spans)
    del trace
    assert table["duration_ns"].to_pylist() == [20_500, 5_000, 9_125]


def test_arguments_become_columns_on_request(trace: hotspan.Trace) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(trace.span_table(args=["External id", "stream", "no such argument"]))
    assert table.column_names[-3:] == ["External id", "stream", "no such argument"]
    assert table["External id"].to_pylist() == [7, None, 7]
    assert table["stream"].to_pylist() == [None, None, 7]
    assert table["no such argument"].to_pylist() == [None, None, None]


def test_polars_reads_the_spans(trace: hotspan.Trace) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(trace.spans)
    assert frame.height == 3
    by_category = frame.group_by("category").agg(polars.col("duration_ns").sum()).sort("category")
    assert by_category["duration_ns"].to_list() == [25_500, 9_125]


def test_duckdb_reads_the_spans(trace: hotspan.Trace) -> None:
    duckdb = pytest.importorskip("duckdb")
    spans = trace.spans
    connection = duckdb.connect()
    connection.register("spans", spans)
    answer = connection.sql("select category, sum(duration_ns)::bigint from spans group by 1 order by 1")
    assert [(str(category), total) for category, total in answer.fetchall()] == [
        ("cpu_op", 25_500),
        ("kernel", 9_125),
    ]


def test_a_trace_without_spans_is_a_table_without_rows(write_trace: Callable[..., Path]) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    trace = hotspan.open(write_trace([]))
    assert len(trace.spans) == 0
    table = pyarrow.table(trace.spans)
    assert table.num_rows == 0
    assert "duration_ns" in table.column_names


def test_events_are_rows_with_their_arguments(trace: hotspan.Trace) -> None:
    events = trace.events()
    assert len(events) == 3
    first = events[0]
    assert (first.name, first.category) == ("aten::mm", "cpu_op")
    assert first.duration_ns == 20_500
    assert first.args["External id"] == 7
    assert first.args["Input type"] == ["float", "float"]
    assert events[1].start_ns - first.start_ns == 30_250
    assert events[-1].name == "gemm"
    assert [event.name for event in events] == ["aten::mm", "aten::add", "gemm"]
