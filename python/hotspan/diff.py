"""Comparisons of two traces. The numbers come from Rust; here they get their names."""

from __future__ import annotations

from typing import NamedTuple

from hotspan import _core


class Side(NamedTuple):
    """One trace's part of a row: the time of a middle step and its calls, or all of them where there are no steps."""

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
    """Two traces side by side; rows with the largest change first."""

    total: DiffRow
    rows: list[DiffRow]
    steps: StepCounts | None
    measure: str


_Row = tuple[str, tuple[int, float] | None, tuple[int, float] | None, int, float | None, str]


def diff(before: _core.Trace, after: _core.Trace, by: str) -> Diff:
    """Compare two traces."""
    total, rows, steps, measure = before.diff(after, by)
    compared = None if steps is None else StepCounts(*steps)
    return Diff(_named(total), [_named(row) for row in rows], compared, measure)


def _named(row: _Row) -> DiffRow:
    name, before, after, change, percent, verdict = row
    sides = [None if side is None else Side(*side) for side in (before, after)]
    return DiffRow(name, sides[0], sides[1], change, percent, verdict)
