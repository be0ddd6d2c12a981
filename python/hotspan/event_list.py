"""The list that ``key_averages()`` returns: torch's ``EventList``, with its table."""

from __future__ import annotations

from collections.abc import Sequence

from hotspan._core import Average, KeyAverages


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
