"""Traces: opening them, and what can be asked of them. The numbers come from Rust; here they get their names."""

from __future__ import annotations

import os

from hotspan import _core
from hotspan._core import Events, KeyAverages, Spans
from hotspan.event_list import EventList, FunctionEventList
from hotspan.rows import (
    CategoryTotal,
    Device,
    Kernel,
    MemoryByCategory,
    MemoryHeld,
    MemoryHolder,
    MemoryTimeline,
    Row,
    Step,
    rows_of,
)

# What only some methods need is imported there: most programs that open a trace use few of them.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from hotspan.advice import Advice
    from hotspan.diff import Diff


class Trace:
    """Everything a profiler recorded. Made by :func:`open`."""

    def __init__(self, core: _core.Trace) -> None:
        self._core = core

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        *,
        group_by_module: bool = False,
        group_by_thread: bool = False,
        group_by_device: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        """Sum up all events by name, and by whatever else is asked for, as ``torch.profiler`` does."""
        return EventList(
            self._core.key_averages(
                group_by_input_shape,
                group_by_stack_n,
                group_by_overload_name,
                group_by_module,
                group_by_thread,
                group_by_device,
                include_python_functions,
                False,
                [],
            )
        )

    def advise(self, *, only: Iterable[str] = (), ignore: Iterable[str] = ()) -> Advice:
        """Return what to change about the program, most gain first; ``docs/advice.md`` explains the rules."""
        from hotspan.advice import advise

        return advise(self._core, only, ignore)

    def diff(self, after: Trace, by: str = "op") -> Diff:
        """Compare this trace with a later one, by op, function, line, kernel, shape or module."""
        from hotspan.diff import diff

        return diff([self._core], [after._core], by)

    def report(
        self, name: str, *, sort: str | None = None, limit: int | None = None, wide: bool = False
    ) -> dict[str, list[Row]]:
        """Return the tables of a report that the dashboard or ``hotspan stats`` shows; times in nanoseconds.

        ``sort`` is a column, largest first; ``limit`` is the most rows of a table, 0 for all; ``wide`` adds columns.
        An unknown ``name`` or ``sort`` raises a ``ValueError`` that lists the valid ones.
        """
        tables = _core.report_tables(self._core, name, sort, limit, wide)
        return {table: rows_of(rows) for table, rows in tables}

    def kernels(self) -> list[Kernel]:
        """Return device work by name, most time first."""
        return [Kernel(*row) for row in self._core.kernels()]

    def copies(self) -> list[Row]:
        """Return copies and fills by kind and memory, most time first; rates in GB/s."""
        return self.report("copies")["copies"]

    def streams(self) -> list[Row]:
        """Return what each stream of each device did."""
        return self.report("streams")["streams"]

    def step_breakdown(self) -> dict[str, list[Row]]:
        """Return where each step's nanoseconds go, on ``devices`` and on the ``host``; the parts add up exactly."""
        return self.report("steps")

    def idle(self) -> list[Row]:
        """Return every gap of every device with its main cause, longest first."""
        return rows_of(_core.idle_gaps(self._core))

    def gpu(self, limit: int = 0) -> dict[str, list[Row]]:
        """Return what ``hotspan gpu`` prints: tables by name, ``limit`` rows of each; empty without device work."""
        return self.report("gpu", limit=limit)

    def memory_timeline(self) -> list[MemoryTimeline]:
        """Return each device's memory over time, its peak, and who held it. Needs ``profile_memory=True``."""
        return [
            MemoryTimeline(
                kind,
                index,
                [MemoryHeld(*point) for point in held],
                peak,
                time,
                [MemoryHolder(*holder) for holder in holders],
                dict(by_category),
                process,
            )
            for kind, index, held, peak, time, holders, by_category, process in self._core.memory_timeline()
        ]

    def memory_by_category(self, points: int = 1_000_000) -> list[MemoryByCategory]:
        """Return each device's memory by category over time, devices as in :meth:`memory_timeline`.

        Fewer ``points`` keep the most that was held in each stretch of time: enough for a picture.
        """
        return [
            MemoryByCategory(times, dict(lines)) for times, lines in self._core.memory_by_category(points)
        ]

    def export_memory_timeline(self, path: str | os.PathLike[str], device: str | None = None) -> None:
        """Write memory over time by category: ``.html``, ``.json``, ``.json.gz`` or ``.raw.json.gz``."""
        self._core.export_memory_timeline(os.fspath(path), None if device is None else _device(device))

    def events(self) -> Events:
        """Return all spans, in file order; each is made when it is asked for."""
        return self._core.events()

    def function_events(self) -> FunctionEventList:
        """Return all events in torch's sense, in order of time, with torch's attributes: ``prof.events()``."""
        return function_events([self])

    @property
    def spans(self) -> Spans:
        """All spans as an Arrow table: ``pyarrow.table(trace.spans)`` copies nothing."""
        return self._core.span_table([])

    def span_table(self, args: list[str] | tuple[str, ...] = ()) -> Spans:
        """Return all spans as an Arrow table, with a column for each of these args (``"correlation"`` …)."""
        return self._core.span_table(list(args))

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a Chrome trace in Kineto's schema, compressed when the name ends in ``.gz`` or ``.zst``."""
        self._core.export_chrome_trace(os.fspath(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.hotspan`` file."""
        self._core.save(os.fspath(path))

    @property
    def metadata(self) -> dict[str, Any]:
        """What the trace says about itself."""
        import json

        return {key: json.loads(value) for key, value in self._core.metadata}

    @property
    def losses(self) -> dict[str, int]:
        """What is missing or was repaired, and how often; empty for a trace that is whole."""
        return {name: count for name, count, _ in self._core.losses}

    @property
    def categories(self) -> dict[str, CategoryTotal]:
        """Spans by category, as the file spells them."""
        return {name: CategoryTotal(count, total) for name, count, total in self._core.categories}

    @property
    def counts(self) -> dict[str, int]:
        """How many events of each kind there are."""
        instants, counters, flows = self._core.other_counts
        return {"spans": self._core.span_count, "instants": instants, "counters": counters, "flows": flows}

    @property
    def steps(self) -> list[Step]:
        """The steps of the program in order of time."""
        return [Step(*step) for step in self._core.steps]

    @property
    def devices(self) -> list[Device]:
        """The devices the trace describes."""
        return [Device(*device) for device in self._core.devices]

    @property
    def rank(self) -> int | None:
        """The rank in a distributed job."""
        return self._core.rank

    @property
    def world_size(self) -> int | None:
        """How many ranks there are."""
        return self._core.world_size

    @property
    def format(self) -> str:
        """The format it was read from."""
        return self._core.format

    @property
    def wall_time_ns(self) -> int:
        """Nanoseconds from the first beginning to the last end of a span."""
        return self._core.wall_time_ns

    @property
    def unix_start_ns(self) -> int | None:
        """Unix time in nanoseconds at the start of the trace, where it is known."""
        return self._core.unix_start_ns

    @property
    def nbytes(self) -> int:
        """Bytes of memory the trace holds."""
        return self._core.nbytes

    def _repr_html_(self) -> str:
        """The report, for a cell of a notebook."""
        return _core.report_html(self._core)

    def __repr__(self) -> str:
        return (
            f"<hotspan.Trace {self.format}, {self._core.span_count} spans, {self.wall_time_ns / 1e6:.3f} ms>"
        )


def function_events(traces: list[Trace], torch_types: bool = False) -> FunctionEventList:
    """The events of several traces, one trace after the other."""
    first, *others = [trace._core for trace in traces]

    def averages(event: bool, shapes: bool, stack_depth: int, overload: bool, python: bool) -> KeyAverages:
        return first.key_averages(shapes, stack_depth, overload, False, False, False, python, event, others)

    events = [core.function_events() for core in (first, *others)]
    return FunctionEventList(events, averages, traces[0].export_chrome_trace, torch_types)


# torch's numbers for the devices whose memory it reports.
_DEVICE_TYPES = {"cpu": 0, "cuda": 1, "xpu": 12, "mps": 13, "hpu": 15, "mtia": 19, "privateuseone": 20}


def _device(name: str) -> tuple[int, int]:
    kind, _, index = name.partition(":")
    if kind not in _DEVICE_TYPES or not (index.isdecimal() or name == kind):
        raise ValueError(f"unknown device {name!r}; devices are named like 'cpu' and 'cuda:0'")
    return _DEVICE_TYPES[kind], -1 if kind == "cpu" else int(index or 0)


def open(path: str | os.PathLike[str]) -> Trace:
    """Open a trace of any known format and size: Kineto or Chrome JSON (plain, gzip, zstd) or ``.hotspan``."""
    return Trace(_core.open(os.fspath(path)))
