"""``%memit`` and ``%mprun`` for IPython: ``%load_ext hotspan.memory``."""

from __future__ import annotations

import builtins
import gc
import importlib
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotspan.memory._profiler import MemoryProfiler, show_results
from hotspan.memory._usage import memory_usage

if TYPE_CHECKING:
    Magics: Any = object

    def line_cell_magic(function: Any) -> Any:
        """Stands for IPython's decorator."""

    def magics_class(cls: Any) -> Any:
        """Stands for IPython's decorator."""
elif "IPython" in sys.modules:
    from IPython.core.magic import Magics, line_cell_magic, magics_class
else:
    # Nobody else loads the extension, and importing IPython takes long. The names can still be imported.
    Magics = object

    def line_cell_magic(function: Any) -> Any:
        """Leave a function as it is."""
        return function

    def magics_class(cls: Any) -> Any:
        """Leave a class as it is."""
        return cls


class MemitResult:
    """What ``%memit -o`` returns: memory in MiB, and how it was measured."""

    def __init__(
        self,
        mem_usage: list[float],
        baseline: float,
        repeat: int,
        timeout: float | None,
        interval: float,
        include_children: bool,
    ) -> None:
        self.mem_usage = mem_usage
        self.baseline = baseline
        self.repeat = repeat
        self.timeout = timeout
        self.interval = interval
        self.include_children = include_children

    def __str__(self) -> str:
        peak = max(self.mem_usage)
        return f"peak memory: {peak:.2f} MiB, increment: {peak - self.baseline:.2f} MiB"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        del cycle
        printer.text(f"<MemitResult : {self}>")


@magics_class
class MemoryProfilerMagics(Magics):  # type: ignore[misc]
    """The magics, with memory_profiler's options."""

    @line_cell_magic
    def memit(self, line: str = "", cell: str | None = None) -> MemitResult | None:
        """Measure the peak memory of a statement; as a cell magic, of the cell, with the line as its preparation.

        ``-r N`` repeats, ``-t SECONDS`` is accepted, ``-i SECONDS`` is the time between samples, ``-c`` adds children,
        ``-o`` returns the result, ``-q`` prints nothing.
        """
        options, statement = self.parse_options(line, "r:t:i:coq", posix=False, strict=False)
        namespace = self.shell.user_ns
        if cell is not None:
            exec(statement, namespace)
            statement = cell
        repeat = max(1, int(options.get("r", 1)))
        interval = float(options.get("i", 0.1))
        timeout = float(options["t"]) if "t" in options else None
        children = "c" in options
        gc.collect()
        baseline = memory_usage(include_children=children)[0]
        peaks = [
            memory_usage((exec, (statement, namespace)), interval, max_usage=True, include_children=children)
            for _ in range(repeat)
        ]
        result = MemitResult(peaks, baseline, repeat, timeout, interval, children)
        if "q" not in options:
            print(result)
        return result if "o" in options else None

    @line_cell_magic
    def mprun(self, parameter_s: str = "", cell: str | None = None) -> MemoryProfiler | None:
        """Execute a statement and show memory by line of the functions named with ``-f``.

        ``-r`` returns the profiler, ``-T FILE`` writes the tables to a file, ``-c`` adds the memory of children.
        """
        from IPython.core.error import UsageError  # type: ignore[import-not-found,unused-ignore]
        from IPython.core.page import page  # type: ignore[import-not-found,unused-ignore]

        options, statement = self.parse_options(parameter_s, "rf:T:c", list_all=True)
        if cell is not None:
            statement += "\n" + cell
        profiler = MemoryProfiler(include_children="c" in options)
        for name in options.get("f", []):
            try:
                function = eval(name, self.shell.user_global_ns, self.shell.user_ns)
            except Exception as error:
                raise UsageError(f"there is no function {name!r}: {type(error).__name__}: {error}") from None
            profiler.add_function(function)
        stopped = self._run(profiler, statement)
        text = io.StringIO()
        show_results(profiler, text)
        page(text.getvalue().rstrip())
        if stopped:
            print(stopped)
        for file in options.get("T", [])[-1:]:
            Path(file).write_text(text.getvalue(), encoding="utf-8")
            print(f"wrote {file}")
        return profiler if "r" in options else None

    def _run(self, profiler: MemoryProfiler, statement: str) -> str:
        """Run a statement with ``profile`` as a builtin; what stopped it is the answer."""
        missing = object()
        earlier = getattr(builtins, "profile", missing)
        builtins.profile = profiler  # type: ignore[attr-defined]
        try:
            profiler.runctx(statement, self.shell.user_global_ns, self.shell.user_ns)
        except (SystemExit, KeyboardInterrupt) as error:
            return f"the statement was stopped by {type(error).__name__}"
        finally:
            if earlier is missing:
                del builtins.profile  # type: ignore[attr-defined]
            else:
                builtins.profile = earlier  # type: ignore[attr-defined]
        return ""

    @classmethod
    def register_magics(cls, ip: Any) -> None:
        """Add the magics to a shell."""
        ip.register_magics(cls)


def load_ipython_extension(ip: Any) -> None:
    """Add ``%memit`` and ``%mprun`` to a shell: what ``%load_ext hotspan.memory`` calls."""
    magics = MemoryProfilerMagics
    if magics.__bases__ == (object,):
        # This was imported before IPython was.
        magics = importlib.reload(sys.modules[__name__]).MemoryProfilerMagics
    magics.register_magics(ip)
