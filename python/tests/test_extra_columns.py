"""Columns torch does not have: the distribution of calls, the share of wall time, FLOP/s."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hotspan


def product(start: float, duration: float, name: str = "aten::mm") -> dict[str, Any]:
    """A product of a 2x3 and a 3x4 matrix: 48 operations."""
    args = {"Input Dims": [[2, 3], [3, 4]], "Concrete Inputs": ["", ""], "Input type": ["float", "float"]}
    event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1}
    return {**event, "ts": start, "dur": duration, "args": args}


def test_extra_columns_say_what_can_be_worked_out_by_hand(write_trace: Callable[..., Path]) -> None:
    trace = hotspan.open(
        write_trace([product(0, 1), product(2, 2), product(5, 3), product(10, 10)], with_flops=1)
    )
    (row,) = trace.key_averages()
    assert (row.min_time, row.p50_time, row.max_time) == (1, 2, 10)
    assert row.flops == 4 * 48
    assert row.flops_per_second == pytest.approx(4 * 48 / 16e-6)
    table = trace.key_averages().table(extra_columns=["distribution", "wall", "flop_rate"])
    titles, _, values = table.splitlines()[1:4]
    assert titles.split()[-1] == "GFLOP/s"
    found = values.split()
    assert found[-1] == "0.012"
    assert "80.00%" in found, "16 of 20 microseconds"
    assert "GFLOP/s" not in trace.key_averages().table()


def test_without_operations_there_is_no_rate(write_trace: Callable[..., Path]) -> None:
    trace = hotspan.open(write_trace([product(0, 1, name="aten::relu")]))
    (row,) = trace.key_averages()
    assert row.flops_per_second is None
    assert "GFLOP/s" not in trace.key_averages().table(extra_columns=["flop_rate"])


def test_an_unknown_extra_column_names_the_known_ones(write_trace: Callable[..., Path]) -> None:
    trace = hotspan.open(write_trace([product(0, 1)]))
    with pytest.raises(ValueError, match="'distribution', 'wall', 'flop_rate'"):
        trace.key_averages().table(extra_columns=["speed"])
