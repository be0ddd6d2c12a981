"""The lists that ``key_averages()`` and ``events()`` return: torch's ``EventList``, with its table."""

from __future__ import annotations

import functools
import html
import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, SupportsIndex, overload

from hotspan._core import Average, FunctionEvent, FunctionEvents, KeyAverages

#: What `export_stacks` can sum up.
STACK_METRICS = (
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
)


class EventList(list[Average]):
    """Rows of an operator table, in order of their first event."""

    def __init__(self, averages: KeyAverages, torch_types: bool = False) -> None:
        super().__init__(averages.rows(torch_types))
        self._averages = averages
        # Whether devices are torch's: for those who came from torch.profiler.
        self._torch_types = torch_types

    def _repr_html_(self) -> str:
        """The table, for a cell of a notebook."""
        return f'<pre style="overflow-x: auto; white-space: pre">{html.escape(self.table())}</pre>'

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
        extra_columns: Sequence[str] = (),
    ) -> str:
        """Return the table as text, as ``torch.profiler`` prints it.

        ``extra_columns`` adds what torch does not have: ``"distribution"`` (min, p50, p99, max of single calls),
        ``"wall"`` (share of the wall-clock time) and ``"flop_rate"`` (FLOP/s). An unknown ``sort_by`` raises a
        ``ValueError`` that lists the keys.
        """
        return self._averages.table(
            sort_by,
            row_limit,
            max_src_column_width,
            max_name_column_width,
            max_shapes_column_width,
            header,
            top_level_events_only,
            time_unit,
            list(extra_columns),
        )

    def total_average(self) -> Average:
        """Return all rows added up."""
        return self._averages.total_average(self._torch_types)

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of CPU time of all rows, each moment of a thread once."""
        return self._averages.self_cpu_time_total

    def supported_export_stacks_metrics(self) -> list[str]:
        """Return what ``export_stacks`` can sum up."""
        return list(STACK_METRICS)

    def export_stacks(self, path: str | os.PathLike[str], metric: str) -> None:
        """Write stacks and their microseconds, one stack a line; rows have stacks when they are grouped by them."""
        write_stacks(path, metric, self)

    def __str__(self) -> str:
        return self.table()


def write_stacks(path: str | os.PathLike[str], metric: str, rows: Iterable[Average | FunctionEvent]) -> None:
    """Write stacks and their microseconds, one stack a line, for flame graphs."""
    if metric not in STACK_METRICS:
        raise ValueError(f"unknown metric {metric!r}; valid ones: {', '.join(map(repr, STACK_METRICS))}")
    attribute = "self_cpu_time_total" if metric == STACK_METRICS[0] else "self_device_time_total"
    unsafe = str.maketrans(" ;\t\n", "____")
    sums: dict[str, float] = {}
    for row in rows:
        if row.stack:
            stack = ";".join(entry.translate(unsafe) for entry in reversed(row.stack))
            sums[stack] = sums.get(stack, 0.0) + getattr(row, attribute)
    lines = [f"{stack} {int(value)}\n" for stack, value in sums.items() if int(value) > 0]
    # Not above: every program that is recorded would pay for it.
    from pathlib import Path

    Path(path).write_text("".join(lines))


class FunctionEventList(list[FunctionEvent]):
    """Single events, in order of time. A list, whose events are made when somebody wants more than one of them."""

    def __init__(
        self,
        windows: Sequence[FunctionEvents],
        averages: Callable[[bool, bool, int, bool, bool], KeyAverages],
        export: Callable[[str | os.PathLike[str]], None],
        torch_types: bool = False,
    ) -> None:
        super().__init__()
        self._torch_types = torch_types
        self._windows: Sequence[FunctionEvents] | None = windows
        self._sum_up = averages
        self._export = export

    def _fill(self) -> None:
        windows, self._windows = self._windows, None
        for window in windows or ():
            super().extend(window)

    def fill(self, most_seconds: float) -> None:
        """Make the events now, and leave out those that take longer than this; say so in torch's log."""
        until = time.monotonic() + most_seconds
        events = itertools.takewhile(lambda _: time.monotonic() < until, iter(self))
        made = list(events)
        if len(made) < len(self):
            import logging

            logging.getLogger("torch.autograd.profiler").warning(
                "making events timed out after %.3f seconds, returning partial results with %d events",
                most_seconds,
                len(made),
            )
        self._windows = None
        self[:] = made

    def __len__(self) -> int:
        return super().__len__() if self._windows is None else sum(len(window) for window in self._windows)

    def __iter__(self) -> Iterator[FunctionEvent]:
        if self._windows is None:
            return super().__iter__()
        return (event for window in self._windows for event in window)

    @overload
    def __getitem__(self, index: SupportsIndex) -> FunctionEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[FunctionEvent]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> FunctionEvent | list[FunctionEvent]:
        if self._windows is None:
            return super().__getitem__(index)
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        position = index.__index__()
        position += len(self) if position < 0 else 0
        for window in self._windows:
            if 0 <= position < len(window):
                return window[position]
            position -= len(window)
        raise IndexError("event index out of range")

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        """Sum up the events by name, and by whatever else is asked for."""
        averages = self._sum_up(
            False, group_by_input_shapes, group_by_stack_n, group_by_overload_name, include_python_functions
        )
        return EventList(averages, self._torch_types)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the trace that the events are of, in Kineto's schema."""
        self._export(path)

    def supported_export_stacks_metrics(self) -> list[str]:
        """Return what ``export_stacks`` can sum up."""
        return list(STACK_METRICS)

    def export_stacks(self, path: str | os.PathLike[str], metric: str) -> None:
        """Write stacks and their microseconds, one stack a line, for flame graphs. Needs ``with_stack=True``."""
        write_stacks(path, metric, self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """Return a table with a row for each event, as ``torch.profiler`` prints it."""
        return self._sum_up(True, True, _WHOLE_STACK, True, False).table(
            sort_by,
            row_limit,
            max_src_column_width,
            max_name_column_width,
            max_shapes_column_width,
            header,
            top_level_events_only,
            time_unit,
            [],
        )

    def total_average(self) -> Average:
        """Return all events added up."""
        return self.key_averages().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of CPU time of all events, each moment of a thread once."""
        return self.key_averages().self_cpu_time_total

    def __str__(self) -> str:
        return self.table()


# Deeper than any stack.
_WHOLE_STACK = 1_000_000


def _filled(name: str) -> Any:
    """A method of lists that finds all events there."""
    method = getattr(list, name)

    @functools.wraps(method)
    def call(self: FunctionEventList, *arguments: Any, **options: Any) -> Any:
        self._fill()
        return method(self, *arguments, **options)

    return call


_METHODS_OF_LISTS = (
    *(
        "__add__",
        "__contains__",
        "__delitem__",
        "__eq__",
        "__ge__",
        "__gt__",
        "__iadd__",
        "__imul__",
        "__le__",
    ),
    *(
        "__lt__",
        "__mul__",
        "__ne__",
        "__repr__",
        "__reversed__",
        "__rmul__",
        "__setitem__",
        "append",
        "clear",
    ),
    *("copy", "count", "extend", "index", "insert", "pop", "remove", "reverse", "sort"),
)
for _name in _METHODS_OF_LISTS:
    setattr(FunctionEventList, _name, _filled(_name))
