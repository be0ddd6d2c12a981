"""``@hotspan.lines.profile``: marks functions whose lines are recorded. The report is printed when the program ends.

Under ``python -m hotspan.lines`` the same decorator feeds the profiler of that run, which prints instead.
"""

from __future__ import annotations

import atexit
import os
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotspan.lines._profiler import LineProfiler

_OFF = {"0", "off", "no", "false"}


class ExplicitProfiler:
    """The object behind ``hotspan.lines.profile``. ``LINE_PROFILE=0`` in the environment switches it off."""

    def __init__(self) -> None:
        self._profiler: LineProfiler | None = None
        self._owner = 0
        self.enabled = os.environ.get("LINE_PROFILE", "1").lower() not in _OFF

    def use(self, profiler: LineProfiler) -> None:
        """Feed a profiler that someone else prints."""
        self._profiler = profiler

    def _own(self) -> LineProfiler:
        if self._profiler is None:
            from hotspan.lines._profiler import RunningProfiler

            self._profiler = RunningProfiler()
            self._owner = os.getpid()
            atexit.register(self._show)
        return self._profiler

    def __call__(self, thing: Any) -> Any:
        return self._own()(thing) if self.enabled else thing

    def enable(self) -> None:
        """Record what is decorated from here on."""
        self.enabled = True

    def disable(self) -> None:
        """Leave what is decorated from here on alone."""
        self.enabled = False

    def print_stats(self, stream: IO[str] | None = None, **options: Any) -> None:
        """Print line_profiler's report of what was recorded so far."""
        self._own().print_stats(stream, **options)

    def dump_stats(self, filename: str | os.PathLike[str]) -> None:
        """Write line_profiler's file."""
        self._own().dump_stats(filename)

    def _show(self) -> None:
        # A forked child inherits the exit handler, not the task.
        if self._profiler is not None and os.getpid() == self._owner:
            self._profiler.print_stats(output_unit=1e-6)


profile = ExplicitProfiler()
