"""``LineProfiler``: line_profiler's class, recorded in Rust."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import IO, Any

from hotspan import _core
from hotspan._code import code_name, line_range
from hotspan._statements import statement_starts
from hotspan.lines import _report
from hotspan.lines._functions import functions_of, is_wrapper_of
from hotspan.lines._members import Members, add_thing
from hotspan.lines._report import write as write
from hotspan.lines._scope import ScopingPolicy
from hotspan.lines._stats import NANOSECOND, LineStats, stats_of
from hotspan.lines._wrap import wrap
from hotspan.trace import Trace

# With sys.monitoring only watched functions pay, so they need no wrapper that turns recording on.
HAS_MONITORING = sys.version_info >= (3, 12)

if os.environ.get("LINE_PROFILER_WRAP_TRACE", "").lower() in ("1", "on", "true", "yes"):
    _core.LineRecorder.wrap_trace(True)


def dump(core: _core.Trace, filename: str | os.PathLike[str]) -> None:
    """Write line_profiler's file; a name that ends in ``.hotspan`` gets hotspan's."""
    path = os.fspath(filename)
    if path.endswith(".hotspan"):
        core.save(path)
    else:
        core.export("lprof", path)


def generated_sources(core: _core.Trace) -> dict[str, str]:
    """The source of code in a trace that lies in no file."""
    return _report.generated_sources(file for file, _, _, _ in _core.line_rows(core))


class LineProfiler:
    """Hits and times of the lines of chosen functions.

    ``statements=False`` counts each physical line on its own, as line_profiler does; otherwise a statement written over
    several lines counts once, on its first line, with all of its time. With ``wrap_trace`` an earlier trace function
    goes on while lines are recorded; without, it rests on Python 3.10 and 3.11, and goes on as before on newer ones.
    ``set_frame_local_trace`` is accepted and changes nothing.
    """

    def __init__(
        self,
        *functions: Callable[..., Any],
        wrap_trace: bool | None = None,
        set_frame_local_trace: bool | None = None,
        statements: bool = True,
    ) -> None:
        self._recorder = _core.LineRecorder(False)
        # By identity: functions of two files compare equal when their text and their lines do.
        self._codes: dict[int, CodeType] = {}
        self.functions: list[Callable[..., Any]] = []
        self.statements = statements
        if wrap_trace is not None:
            self.wrap_trace = wrap_trace
        self.set_frame_local_trace = bool(set_frame_local_trace)
        for function in functions:
            self.add_callable(function)

    @property
    def wrap_trace(self) -> bool:
        """Whether earlier trace functions go on; for all profilers alike."""
        return _core.LineRecorder.wrap_trace()

    @wrap_trace.setter
    def wrap_trace(self, wraps: bool) -> None:
        _core.LineRecorder.wrap_trace(bool(wraps))

    @property
    def recorder(self) -> _core.LineRecorder:
        """What records, for functions of this package."""
        return self._recorder

    def add_code(self, code: CodeType) -> bool:
        """Watch a code object; False when it is watched already."""
        if id(code) in self._codes:
            return False
        self._codes[id(code)] = code
        first, last = line_range(code)
        starts = statement_starts(code) if self.statements else []
        self._recorder.add([code], code_name(code), code.co_filename, first, last, starts)
        return True

    def add_function(self, func: Any) -> None:
        """Watch a function, or anything else that has ``__code__``."""
        code = getattr(func, "__code__", None)
        if not isinstance(code, CodeType):
            self.add_callable(func)
            return
        self.functions.append(func)
        self.add_code(code)

    def add_callable(
        self, func: Any, guard: Callable[[Any], bool] | None = None, name: str | None = None
    ) -> int:
        """Watch every Python function behind ``func`` and return how many; ``guard`` says which are left out."""
        del name
        found = functions_of(func, guard or self.is_wrapped)
        for function in found:
            self.add_function(function)
        return len(found)

    def add_class(
        self,
        cls: type,
        *,
        scoping_policy: str | ScopingPolicy | Mapping[str, str] | None = None,
        wrap: bool = False,
    ) -> int:
        """Watch the methods of a class and return how many members were added."""
        return Members(self, ScopingPolicy.to_policies(scoping_policy), wrap).add(cls)

    def add_module(
        self,
        mod: ModuleType,
        *,
        scoping_policy: str | ScopingPolicy | Mapping[str, str] | None = None,
        wrap: bool = False,
    ) -> int:
        """Watch the functions and classes of a module and return how many members were added."""
        return Members(self, ScopingPolicy.to_policies(scoping_policy), wrap).add(mod)

    def add_imported_function_or_module(
        self,
        item: Any,
        *,
        scoping_policy: str | ScopingPolicy | Mapping[str, str] | None = None,
        wrap: bool = False,
    ) -> int:
        """Watch a module, a class or a callable, and record from now on; 1 if it has a Python function."""
        if not add_thing(self, item, scoping_policy, wrap):
            return 0
        self.enable_by_count()
        return 1

    def is_wrapped(self, function: FunctionType) -> bool:
        """Whether a function is a wrapper that this profiler made."""
        return is_wrapper_of(self._recorder, function)

    def wrap_callable(self, func: Any) -> Any:
        """Return ``func`` so that it records whenever it is called: a wrapper, or a class with its methods wrapped."""
        return wrap(self._recorder, func)

    wrap_function = wrap_generator = wrap_coroutine = wrap_async_generator = wrap_callable
    wrap_classmethod = wrap_staticmethod = wrap_boundmethod = wrap_callable
    wrap_partial = wrap_partialmethod = wrap_property = wrap_cached_property = wrap_class = wrap_callable

    @staticmethod
    def get_underlying_functions(func: Any) -> list[FunctionType]:
        """Return the Python functions behind a callable."""
        return functions_of(func)

    def __call__(self, func: Any) -> Any:
        self.add_callable(func)
        return self.wrap_callable(func)

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

    def runcall(self, func: Callable[..., Any], /, *args: Any, **kw: Any) -> Any:
        """Call a function while recording."""
        with self:
            return func(*args, **kw)

    def run(self, cmd: str) -> LineProfiler:
        """Execute code in the ``__main__`` module while recording."""
        import __main__

        return self.runctx(cmd, vars(__main__), vars(__main__))

    def runctx(self, cmd: str, globals: dict[str, Any], locals: dict[str, Any]) -> LineProfiler:  # noqa: A002
        """Execute code in these namespaces while recording."""
        with self:
            exec(cmd, globals, locals)
        return self

    def clear(self) -> None:
        """Forget what was recorded."""
        self._recorder.clear()

    @property
    def timer_unit(self) -> float:
        """The unit of the times, in seconds: a nanosecond."""
        return NANOSECOND

    @property
    def code_map(self) -> dict[CodeType, dict[int, tuple[int, int]]]:
        """The code objects that are watched, each with its lines: hits and time."""
        timings = self.get_stats().timings
        found = {}
        for code in self._codes.values():
            rows: Any = timings.get((code.co_filename, code.co_firstlineno, code_name(code)), ())  # type: ignore[call-overload]
            found[code] = {line: (hits, time) for line, hits, time in rows}
        return found

    @property
    def code_hash_map(self) -> dict[CodeType, list[int]]:
        """The code objects that are watched, each with what it is found by: its address."""
        return {code: [id(code)] for code in self._codes.values()}

    @property
    def last_time(self) -> dict[CodeType, int]:
        """The code objects that run on this thread while it is recorded, each with its line."""
        return dict(self._recorder.running_lines())

    @property
    def c_last_time(self) -> dict[int, int]:
        """The same, by the hash of the code. There is nothing to tell before a function is added."""
        if not self._codes:
            raise KeyError("No profiling data")
        return {hash(code.co_code): line for code, line in self._recorder.running_lines()}

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
        *,
        config: str | os.PathLike[str] | bool | None = None,
    ) -> None:
        """Print line_profiler's report. ``rich`` is accepted and changes nothing."""
        self.get_stats().print(stream, output_unit, stripzeros, details, summarize, sort, rich, config=config)


class RunningProfiler(LineProfiler):
    """A profiler that is on from the start: what it decorates needs no wrapper where only watched functions pay."""

    def wrap_callable(self, func: Any) -> Any:
        """Return ``func`` as it is, or wrapped where tracing must be turned on around it."""
        if not HAS_MONITORING:
            return super().wrap_callable(func)
        self._recorder.enable()
        return func
