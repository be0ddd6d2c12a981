"""``LineStats``: what was recorded of lines, as line_profiler has it; read from files and written to them."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, TypeVar

from hotspan import _core

#: The unit of what hotspan records, in seconds.
NANOSECOND = 1e-9
_UNIT_KEY = "hotspan.line_unit"


class LineFunction(NamedTuple):
    """A function whose lines were recorded."""

    file: str
    first_line: int
    name: str


class LineTiming(NamedTuple):
    """How often a line was executed, and for how long in all: nanoseconds in what hotspan recorded."""

    line: int
    hits: int
    time_ns: int


#: Lines by function; functions are (file, first line, name), lines are (line, hits, time).
Timings = Mapping[Any, Iterable[Any]]


class StatsLike(Protocol):
    """Anything with timings and their unit."""

    timings: Any
    unit: float


_Self = TypeVar("_Self", bound="LineStats")


class PlainLineStats:
    """Timings, and their unit in seconds."""

    def __init__(self, timings: Any, unit: float) -> None:
        self.timings = timings
        self.unit = unit


class LineStats(PlainLineStats):
    """Lines by function. Statistics can be added to each other, printed, written and read."""

    timings: dict[LineFunction, list[LineTiming]]

    def __init__(self, timings: Any, unit: float) -> None:
        super().__init__(timings, unit)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.timings}, {self.unit:.2G})"

    def __eq__(self, other: object) -> bool:
        if not (hasattr(other, "timings") and hasattr(other, "unit")):
            return NotImplemented
        return bool(self.timings == other.timings and self.unit == other.unit)

    # It can change, so it has no hash.
    __hash__ = None  # type: ignore[assignment]

    def __add__(self: _Self, other: StatsLike) -> _Self:
        return type(self)(*_sum([self, other]))

    def __iadd__(self: _Self, other: StatsLike) -> _Self:
        self.timings, self.unit = _sum([self, other])
        return self

    def print(
        self,
        stream: IO[str] | None = None,
        output_unit: float | None = None,
        stripzeros: bool = False,
        details: bool = True,
        summarize: bool = False,
        sort: bool = False,
        rich: bool = False,
        *,
        config: str | os.PathLike[str] | bool | None = None,
    ) -> None:
        """Print line_profiler's report. ``rich`` is accepted and changes nothing."""
        from hotspan.lines._report import show_text

        show_text(
            self.timings,
            self.unit,
            output_unit,
            stream,
            stripzeros,
            details,
            summarize,
            sort,
            rich,
            config=config,
        )

    def to_file(self, filename: str | os.PathLike[str]) -> None:
        """Write line_profiler's file, which it and hotspan read."""
        Path(filename).write_bytes(_pickled(self))

    @classmethod
    def from_files(
        cls: type[_Self], file: str | os.PathLike[str], /, *files: str | os.PathLike[str]
    ) -> _Self:
        """Read ``.lprof`` or ``.hotspan`` files and add them up. Nothing in them is executed."""
        return cls.from_stats_objects(*(_read(path) for path in (file, *files)))

    @classmethod
    def from_stats_objects(cls: type[_Self], stats: StatsLike, /, *more_stats: StatsLike) -> _Self:
        """Return the sum of statistics, in the largest of their units."""
        return cls(*_sum([stats, *more_stats]))


load_stats = LineStats.from_files


def stats_of(core: _core.Trace, unit: float = NANOSECOND) -> LineStats:
    """Return the lines of a trace."""
    nanoseconds = unit / NANOSECOND
    timings = {
        LineFunction(file, first, name): [
            LineTiming(line, hits, time if unit == NANOSECOND else round(time / nanoseconds))
            for line, hits, time, _, _ in lines
        ]
        for file, first, name, lines in _core.line_rows(core)
    }
    return LineStats(timings, unit)


def _read(path: str | os.PathLike[str]) -> LineStats:
    core = _core.open(os.fspath(path))
    return stats_of(core, float(dict(core.metadata).get(_UNIT_KEY, NANOSECOND)))


def _sum(given: list[Any]) -> tuple[Any, float]:
    if len(given) == 1:
        return {key: list(rows) for key, rows in given[0].timings.items()}, given[0].unit
    unit = max(stats.unit for stats in given)
    sums: dict[Any, dict[int, tuple[int, float]]] = {}
    # Small times first, so that they are not lost beside the large ones.
    for stats in sorted(given, key=lambda stats: float(stats.unit)):
        for key, rows in stats.timings.items():
            lines = sums.setdefault(key, {})
            for line, hits, time in rows:
                hits_before, time_before = lines.get(line, (0, 0.0))
                lines[line] = (hits_before + hits, time_before + time * (stats.unit / unit))
    added = {
        key: [LineTiming(line, hits, round(time)) for line, (hits, time) in sorted(lines.items())]
        for key, lines in sums.items()
    }
    return added, unit


def _pickled(stats: PlainLineStats) -> bytes:
    """A pickle of line_profiler's class, which need not be here: its name, and what is in the object."""
    timings = {tuple(key): [tuple(row) for row in rows] for key, rows in stats.timings.items()}
    state = pickle.dumps({"timings": timings, "unit": stats.unit}, 2)
    # The state without its header and its end; "made without arguments" before it, "with this state" after it.
    made = b"\x80\x02cline_profiler._line_profiler\nLineStats\n)\x81"
    return made + state[2:-1] + b"b."
