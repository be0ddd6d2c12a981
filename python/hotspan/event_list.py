"""The lists that ``key_averages()`` and ``events()`` return: torch's ``EventList``, with its table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from hotspan._core import Average, FunctionEvent, FunctionEvents, KeyAverages


class EventList(list[Average]):
    """Rows of an operator table, in order of their first event."""

    def __init__(self, averages: KeyAverages) -> None:
        super().__init__(averages.rows())
        self._averages = averages

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
        return self._averages.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of CPU time of all rows, each moment of a thread once."""
        return self._averages.self_cpu_time_total

    def __str__(self) -> str:
        return self.table()


class FunctionEventList(Sequence[FunctionEvent]):
    """Single events, in order of time; each is made when it is asked for."""

    def __init__(
        self, windows: Sequence[FunctionEvents], averages: Callable[[bool, bool, int, bool], KeyAverages]
    ) -> None:
        self._windows = windows
        self._sum_up = averages

    def __len__(self) -> int:
        return sum(len(window) for window in self._windows)

    @overload
    def __getitem__(self, index: int) -> FunctionEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[FunctionEvent]: ...
    def __getitem__(self, index: int | slice) -> FunctionEvent | list[FunctionEvent]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        position = index + len(self) if index < 0 else index
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
    ) -> EventList:
        """Sum up the events by name, and by whatever else is asked for."""
        return EventList(self._sum_up(False, group_by_input_shapes, group_by_stack_n, group_by_overload_name))

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
        return self._sum_up(True, True, _WHOLE_STACK, True).table(
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
