"""Comparisons of two traces. The numbers come from Rust; here they get their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from hotspan import _core

if TYPE_CHECKING:
    from hotspan.trace import Trace


class Side(NamedTuple):
    """One side's part of a row: time of the median step and calls of a step, or all where there are no steps."""

    time_ns: int
    calls: float


class DiffRow(NamedTuple):
    """One operator, function, line … ``verdict`` is change, noise, unknown, new or gone."""

    name: str
    before: Side | None
    after: Side | None
    change_ns: int
    change_percent: float | None
    verdict: str


class StepCounts(NamedTuple):
    """How many steps of each trace were compared."""

    before: int
    after: int


class Diff(NamedTuple):
    """Two sides; rows with the largest change first.

    ``machine_percent`` is by how much all rows together became slower, which is taken for the machine.
    """

    total: DiffRow
    rows: list[DiffRow]
    steps: StepCounts | None
    measure: str
    machine_percent: float


_Row = tuple[str, tuple[int, float] | None, tuple[int, float] | None, int, float | None, str]


def diff(before: Sequence[_core.Trace], after: Sequence[_core.Trace], by: str) -> Diff:
    """Compare the recordings of two sides."""
    if not before or not after:
        raise ValueError("each side needs a recording")
    total, rows, steps, measure, machine = before[0].diff(list(before[1:]), list(after), by)
    compared = None if steps is None else StepCounts(*steps)
    return Diff(_named(total), [_named(row) for row in rows], compared, measure, machine)


def compare(before: Sequence[Trace], after: Sequence[Trace], by: str = "op") -> Diff:
    """Compare several recordings of a program with several of another.

    On a busy machine, small changes can be told from noise with three recordings a side.
    """
    return diff([trace._core for trace in before], [trace._core for trace in after], by)


def _named(row: _Row) -> DiffRow:
    name, before, after, change, percent, verdict = row
    sides = [None if side is None else Side(*side) for side in (before, after)]
    return DiffRow(name, sides[0], sides[1], change, percent, verdict)
