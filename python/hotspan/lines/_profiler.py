"""``LineProfiler``: line_profiler's class, recorded in Rust."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import IO, Any, NamedTuple

from hotspan import _core
from hotspan._code import code_name, line_range
from hotspan._statements import statement_starts
from hotspan.lines._functions import functions_of, functions_of_module
from hotspan.lines._wrap import wrap
from hotspan.trace import Trace

# With sys.monitoring only watched functions pay, so they need no wrapper that turns recording on.
HAS_MONITORING = sys.version_info >= (3, 12)


class LineFunction(NamedTuple):
    """A function whose lines were recorded."""

    file: str
    first_line: int
    name: str


class LineTiming(NamedTuple):
    """How often a line was executed, and for how long in all."""

    line: int
    hits: int
    time_ns: int


class LineStats(NamedTuple):
    """Lines by function, as line_profiler has them; ``unit`` is that of their times in seconds: a nanosecond."""

    timings: dict[LineFunction, list[LineTiming]]
    unit: float


def stats_of(core: _core.Trace) -> LineStats:
    """Return the lines of a trace."""
    timings = {
        LineFunction(file, first, name): [LineTiming(line, hits, time) for line, hits, time, _, _ in lines]
        for file, first, name, lines in _core.line_rows(core)
    }
    return LineStats(timings, 1e-9)


def load_stats(path: str | os.PathLike[str]) -> LineStats:
    """Read a ``.lprof`` or ``.hotspan`` file. Nothing in it is executed."""
    return stats_of(_core.open(os.fspath(path)))


def generated_sources(core: _core.Trace) -> dict[str, str]:
    """The source of code that lies in no file: notebooks, doctests, ``exec``."""
    files = {file for file, _, _, _ in _core.line_rows(core)}
    return {file: "".join(linecache.getlines(file)) for file in files if file.startswith("<")}


def dump(core: _core.Trace, filename: str | os.PathLike[str]) -> None:
    """Write line_profiler's file; a name that ends in ``.hotspan`` gets hotspan's."""
    path = os.fspath(filename)
    if path.endswith(".hotspan"):
        core.save(path)
    else:
        core.export("lprof", path)


def text_of(
    core: _core.Trace,
    output_unit: float | None = None,
    stripzeros: bool = False,
    details: bool = True,
    summarize: bool = False,
    sort: bool = False,
) -> str:
    """Return line_profiler's report of a trace."""
    sources = generated_sources(core)
    return _core.line_text(core, output_unit or 1e-9, stripzeros, sort, details, summarize, sources)


class LineProfiler:
    """Hits and times of the lines of chosen functions.

    ``statements=False`` counts each physical line on its own, as line_profiler does; otherwise a statement written over
    several lines counts once, on its first line, with all of its time.
    """

    def __init__(self, *functions: Callable[..., Any], statements: bool = True) -> None:
        self._recorder = _core.LineRecorder(False)
        self._codes: set[CodeType] = set()
        self.functions: list[Callable[..., Any]] = []
        self.statements = statements
        for function in functions:
            self.add_callable(function)

    def add_code(self, code: CodeType) -> bool:
        """Watch a code object; False when it is watched already."""
        if code in self._codes:
            return False
        self._codes.add(code)
        first, last = line_range(code)
        starts = statement_starts(code) if self.statements else []
        self._recorder.add([code], code_name(code), code.co_filename, first, last, starts)
        return True

    def add_callable(self, thing: Any) -> int:
        """Watch every Python function behind ``thing`` and return how many were new."""
        found = functions_of(thing)
        self.functions += found
        return sum(self.add_code(function.__code__) for function in found)

    def add_function(self, function: Any) -> None:
        """Watch a function."""
        self.add_callable(function)

    def add_class(self, cls: type, *, wrap: bool = False) -> int:
        """Watch the methods of a class and return how many were new."""
        if wrap:
            self.wrap_callable(cls)
        return self.add_callable(cls)

    def add_module(self, module: ModuleType, *, wrap: bool = False) -> int:
        """Watch the functions and methods that a module defines and return how many were new."""
        added = 0
        for function in functions_of_module(module):
            self.functions.append(function)
            added += self.add_code(function.__code__)
            if wrap and vars(module).get(function.__name__) is function:
                setattr(module, function.__name__, self.wrap_callable(function))
        return added

    def wrap_callable(self, thing: Any) -> Any:
        """Watch ``thing`` and return it so that it records whenever it is called."""
        self.add_callable(thing)
        return wrap(self._recorder, thing)

    wrap_function = wrap_callable

    def __call__(self, thing: Any) -> Any:
        return self.wrap_callable(thing)

    def enable(self) -> None:
        """Record until :meth:`disable`."""
        self._recorder.enable()

    def disable(self) -> None:
        """Stop recording."""
        self._recorder.disable()

    def enable_by_count(self) -> None:
        """Record until :meth:`disable_by_count` was called as often."""
        self._recorder.enable_by_count()

    def disable_by_count(self) -> None:
        """Take one :meth:`enable_by_count` back."""
        self._recorder.disable_by_count()

    @property
    def enable_count(self) -> int:
        """How often recording was asked for and not taken back."""
        return self._recorder.enable_count

    def __enter__(self) -> LineProfiler:
        self._recorder.enable_by_count()
        return self

    def __exit__(self, *_: object) -> None:
        self._recorder.disable_by_count()
        self._recorder.rest()

    def runcall(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function while recording."""
        with self:
            return function(*args, **kwargs)

    def run(self, command: str) -> LineProfiler:
        """Execute code in the ``__main__`` module while recording."""
        import __main__

        return self.runctx(command, vars(__main__), vars(__main__))

    def runctx(self, command: str, globals: dict[str, Any], locals: dict[str, Any]) -> LineProfiler:  # noqa: A002
        """Execute code in these namespaces while recording."""
        with self:
            exec(command, globals, locals)
        return self

    def clear(self) -> None:
        """Forget what was recorded."""
        self._recorder.clear()

    def snapshot(self) -> _core.Trace:
        """Return what was recorded so far, for functions of this package."""
        return self._recorder.snapshot()

    def trace(self) -> Trace:
        """Return what was recorded as a :class:`hotspan.Trace`."""
        return Trace(self._recorder.snapshot())

    def get_stats(self) -> LineStats:
        """Return what was recorded, as line_profiler does."""
        return stats_of(self._recorder.snapshot())

    def dump_stats(self, filename: str | os.PathLike[str]) -> None:
        """Write line_profiler's file; a name that ends in ``.hotspan`` gets hotspan's."""
        dump(self._recorder.snapshot(), filename)

    def print_stats(
        self,
        stream: IO[str] | None = None,
        output_unit: float | None = None,
        stripzeros: bool = False,
        details: bool = True,
        summarize: bool = False,
        sort: bool = False,
        rich: bool = False,
    ) -> None:
        """Print line_profiler's report. ``rich`` is accepted and changes nothing."""
        del rich
        text = text_of(self._recorder.snapshot(), output_unit, stripzeros, details, summarize, sort)
        write(stream or sys.stdout, text)


class RunningProfiler(LineProfiler):
    """A profiler that is on from the start: what it decorates needs no wrapper where only watched functions pay."""

    def wrap_callable(self, thing: Any) -> Any:
        """Watch ``thing``, and return it as it is or wrapped where tracing must be turned on around it."""
        if not HAS_MONITORING:
            return super().wrap_callable(thing)
        self.add_callable(thing)
        self._recorder.enable()
        return thing

    __call__ = wrap_callable


def write(stream: IO[str], text: str) -> None:
    """Write text to a stream, with escapes for what its encoding does not have."""
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = getattr(stream, "encoding", None) or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
