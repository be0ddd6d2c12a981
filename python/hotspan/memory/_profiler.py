"""``MemoryProfiler``: memory_profiler's ``LineProfiler``, recorded in Rust."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import IO, Any

from hotspan import _core
from hotspan._code import code_name, line_range
from hotspan.lines._functions import functions_of
from hotspan.lines._profiler import generated_sources, write
from hotspan.lines._wrap import wrap
from hotspan.trace import Trace


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those in it: lines of inner functions count for the outermost one."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)


class MemoryProfiler:
    """How the process grows on the lines of chosen functions."""

    def __init__(self, **options: Any) -> None:
        unknown = set(options) - {"backend", "include_children", "max_mem"}
        if unknown:
            raise TypeError(f"unknown options: {', '.join(sorted(unknown))}")
        if options.get("backend", "psutil") not in ("psutil", "posix"):
            raise ValueError(f"hotspan measures resident memory; there is no backend {options['backend']!r}")
        self._recorder = _core.LineRecorder(True)
        self._codes: set[CodeType] = set()

    def add_function(self, function: Any) -> None:
        """Watch a function."""
        for found in functions_of(function):
            code = found.__code__
            if code not in self._codes:
                self._codes.add(code)
                codes = list(_with_inner(code))
                first = code.co_firstlineno
                last = max(line_range(inner)[1] for inner in codes)
                self._recorder.add(codes, code_name(code), code.co_filename, first, last, [])

    def __call__(self, function: Any = None, precision: int = 1) -> Any:
        del precision
        if function is None:
            return self.__call__
        return self.wrap_function(function)

    def wrap_function(self, function: Any) -> Any:
        """Watch a function and return it so that it records whenever it is called."""
        self.add_function(function)
        return wrap(self._recorder, function)

    def enable_by_count(self) -> None:
        """Record until :meth:`disable_by_count` was called as often."""
        self._recorder.enable_by_count()

    def disable_by_count(self) -> None:
        """Take one :meth:`enable_by_count` back."""
        self._recorder.disable_by_count()

    def enable(self) -> None:
        """Record until :meth:`disable`."""
        self._recorder.enable()

    def disable(self) -> None:
        """Stop recording."""
        self._recorder.disable()

    def __enter__(self) -> MemoryProfiler:
        self._recorder.enable_by_count()
        return self

    def __exit__(self, *_: object) -> None:
        self._recorder.disable_by_count()
        self._recorder.rest()

    def runctx(self, command: str, globals: dict[str, Any], locals: dict[str, Any]) -> MemoryProfiler:  # noqa: A002
        """Execute code while recording."""
        with self:
            exec(command, globals, locals)
        return self

    def trace(self) -> Trace:
        """Return what was recorded as a :class:`hotspan.Trace`."""
        return Trace(self._recorder.snapshot())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.hotspan`` file."""
        self._recorder.snapshot().save(os.fspath(path))

    def text(self, precision: int = 1) -> str:
        """Return memory_profiler's tables."""
        core = self._recorder.snapshot()
        return _core.memory_text(core, precision, generated_sources(core))


def show_results(prof: MemoryProfiler, stream: IO[str] | None = None, precision: int = 1) -> None:
    """Print memory_profiler's tables of what was recorded."""
    write(stream or sys.stdout, prof.text(precision))


def profile(
    func: Callable[..., Any] | None = None,
    stream: IO[str] | None = None,
    precision: int = 1,
    backend: str = "psutil",
) -> Any:
    """Print a function's memory by line after each call; a decorator, with or without arguments."""
    if func is None:
        return functools.partial(profile, stream=stream, precision=precision, backend=backend)
    if _started_by_command is not None:
        return _started_by_command(func)
    if inspect.iscoroutinefunction(func):

        @functools.wraps(func)
        async def async_wrapper(*args: Any, **kwargs: Any) -> Any:
            profiler = MemoryProfiler(backend=backend)
            value = await profiler(func)(*args, **kwargs)
            show_results(profiler, stream, precision)
            return value

        return async_wrapper

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        profiler = MemoryProfiler(backend=backend)
        value = profiler(func)(*args, **kwargs)
        show_results(profiler, stream, precision)
        return value

    return wrapper


_started_by_command: MemoryProfiler | None = None


def use(profiler: MemoryProfiler) -> None:
    """Let the decorator feed a profiler that someone else prints."""
    global _started_by_command
    _started_by_command = profiler
