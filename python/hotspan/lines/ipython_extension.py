"""``LineProfilerMagics``: ``%lprun`` and ``%%lprun_all`` for IPython and Jupyter, with line_profiler's options."""

from __future__ import annotations

import ast
import builtins
import contextlib
import linecache
import time
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from textwrap import dedent
from types import CodeType
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.core.page import page
from IPython.utils.ipstruct import Struct

from hotspan._code import codes_of_script
from hotspan.lines._profiler import LineProfiler

__all__ = ("LineProfilerMagics",)

_CELL = "<lprof_cell>"


@magics_class
class LineProfilerMagics(Magics):  # type: ignore[misc]
    """Magics that record lines."""

    @line_magic  # type: ignore[untyped-decorator, unused-ignore]
    def lprun(self, parameter_s: str = "") -> LineProfiler | None:
        """Run a statement and show the lines of chosen functions.

        ``%lprun -f FUNCTION [-f ...] [-m MODULE] STATEMENT``: ``-f`` and ``-m`` choose functions and all functions of
        modules. ``-D FILE`` writes line_profiler's file, ``-T FILE`` the text. ``-r`` returns the profiler, ``-z`` (and
        ``-s``) leaves out functions that never ran, ``-u UNIT`` is the unit of the times in seconds.
        """
        options, statement = self._options(parameter_s, "rszf:m:D:T:u:")
        space, local = self.shell.user_global_ns, self.shell.user_ns
        profiler = LineProfiler(*(self._function(name, space, local) for name in options.f))
        for name in options.m:
            try:
                profiler.add_module(__import__(name, fromlist=[""]))
            except Exception as error:
                raise UsageError(f"cannot find module {name}: {type(error).__name__}: {error}") from error
        with _as_builtin(profiler):
            return self._run(profiler, options, lambda: profiler.runctx(statement, space, local))

    @cell_magic  # type: ignore[untyped-decorator, unused-ignore]
    def lprun_all(self, parameter_s: str = "", cell: str = "") -> LineProfiler | None:
        """Run a cell and show its lines, and those of all functions in it.

        ``-p`` shows the lines of the cell itself alone, ``-t`` stores the seconds it took in ``_total_time_taken``;
        ``-D``, ``-T``, ``-r``, ``-z`` and ``-u`` are those of ``%lprun``.
        """
        options, _ = self._options(parameter_s, "rzptD:T:u:")
        text = dedent(cell).strip("\n") or "..."
        code = _cell_code(text)
        profiler = LineProfiler()
        profiler.add_code(code)
        if "p" not in options:
            for inner in codes_of_script(code):
                profiler.add_code(inner)
        # The source lies in no file; a report looks for it here.
        linecache.cache[_CELL] = (len(text), None, text.splitlines(True), _CELL)
        with _as_builtin(profiler):
            shell = self.shell
            shown = self._run(profiler, options, lambda: _execute(profiler, code, shell.user_ns))
        if "t" in options:
            self.shell.user_ns["_total_time_taken"] = options.seconds
        return shown

    def _options(self, text: str, letters: str) -> tuple[Any, str]:
        # A quote in the statement is no quote of the shell.
        escaped = text.replace('"', r"\"").replace("'", r"\'")
        options, rest = self.parse_options(escaped, letters, list_all=True)
        options.merge(Struct(D=[""], T=[""], f=[], m=[], u=None))
        return options, rest.replace(r"\"", '"').replace(r"\'", "'")

    @staticmethod
    def _function(name: str, space: dict[str, Any], local: dict[str, Any]) -> Any:
        try:
            return eval(name, space, local)
        except Exception as error:
            raise UsageError(f"cannot find function {name}: {type(error).__name__}: {error}") from error

    def _run(self, profiler: LineProfiler, options: Any, run: Callable[[], object]) -> LineProfiler | None:
        unit = _unit(options.u)
        message = ""
        start = time.perf_counter()
        try:
            run()
        except SystemExit:
            message = "*** SystemExit exception caught in code being profiled."
        except KeyboardInterrupt:
            message = "*** KeyboardInterrupt exception caught in code being profiled."
        options.seconds = time.perf_counter() - start
        stream = StringIO()
        profiler.print_stats(stream, output_unit=unit, stripzeros="z" in options or "s" in options)
        text = stream.getvalue()
        page(text)
        print(message, end="\n" if message else "")
        if options.D[0]:
            profiler.dump_stats(options.D[0])
            print(f"\n*** Profile stats pickled to file {options.D[0]!r}. {message}")
        if options.T[0]:
            Path(options.T[0]).write_text(text, encoding="utf-8")
            print(f"\n*** Profile printout saved to text file {options.T[0]!r}. {message}")
        return profiler if "r" in options else None


def _unit(given: list[str] | None) -> float | None:
    if given is None:
        return None
    try:
        return float(given[0])
    except ValueError:
        raise TypeError(f"the unit of times must be a number of seconds, not {given[0]!r}") from None


def _cell_code(text: str) -> CodeType:
    code = compile(ast.parse(text, _CELL), _CELL, "exec", dont_inherit=True)
    name: dict[str, Any] = {"co_qualname": _CELL} if hasattr(code, "co_qualname") else {}
    return code.replace(co_name=_CELL, **name)


def _execute(profiler: LineProfiler, code: CodeType, space: dict[str, Any]) -> None:
    with profiler:
        exec(code, space)


@contextlib.contextmanager
def _as_builtin(profiler: LineProfiler) -> Iterator[None]:
    """Make ``profile`` a builtin for a while."""
    before = vars(builtins).get("profile")
    builtins.profile = profiler  # type: ignore[attr-defined]
    try:
        yield
    finally:
        if before is None:
            del builtins.profile  # type: ignore[attr-defined]
        else:
            builtins.profile = before  # type: ignore[attr-defined]
