"""``MemoryProfiler``: memory_profiler's ``LineProfiler``, recorded in Rust where resident memory is measured."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from types import CodeType
from typing import IO, Any

from hotspan import _core
from hotspan._code import code_name, line_range
from hotspan.lines._functions import functions_of
from hotspan.lines._profiler import generated_sources, write
from hotspan.lines._wrap import wrap
from hotspan.memory._readings import MEBIBYTE, RESIDENT, choose_backend
from hotspan.memory._traced import TracedLines
from hotspan.trace import Trace


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those in it: lines of inner functions count for the outermost one."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)


class CodeMap(dict[CodeType, dict[int, tuple[float, float, int]]]):
    """What was measured: for each code object its lines, with increment and memory in MiB and how often they ran."""

    def __init__(self) -> None:
        super().__init__()
        # Code of two files may be equal, and is not the same.
        self._files: list[tuple[str, range, dict[int, tuple[float, float, int]]]] = []

    def items(self) -> Any:
        """Yield the file and the lines of each function that was decorated, inner ones among their lines."""
        for file, lines, measured in self._files:
            if measured:
                yield file, ((line, measured.get(line)) for line in lines)


class MemoryProfiler:
    """How the process grows on the lines of chosen functions.

    ``backend`` is one of memory_profiler's, ``include_children`` adds the memory of children, and a line after which
    the process has more than ``max_mem`` MiB is where the debugger begins.
    """

    def __init__(self, **options: Any) -> None:
        unknown = set(options) - {"backend", "include_children", "max_mem"}
        if unknown:
            raise TypeError(f"unknown options: {', '.join(sorted(unknown))}")
        self.backend = choose_backend(options.get("backend"))
        self.max_mem: float | None = options.get("max_mem")
        include_children = bool(options.get("include_children", False))
        self._recorder: _core.LineRecorder | TracedLines
        if self.backend in RESIDENT and not include_children and self.max_mem is None:
            self._recorder = _core.LineRecorder(True)
        else:
            self._recorder = TracedLines(self.backend, include_children, self.max_mem)
        # By identity: code of two files may be equal.
        self._codes: dict[int, list[CodeType]] = {}

    def add_function(self, func: Any) -> None:
        """Watch a function."""
        for found in functions_of(func):
            code = found.__code__
            if id(code) not in self._codes:
                codes = self._codes[id(code)] = list(_with_inner(code))
                first = code.co_firstlineno
                last = max(line_range(inner)[1] for inner in codes)
                self._recorder.add(codes, code_name(code), code.co_filename, first, last, [])

    def __call__(self, func: Any = None, precision: int = 1) -> Any:
        del precision
        if func is None:
            return self.__call__
        return self.wrap_function(func)

    def wrap_function(self, func: Any) -> Any:
        """Watch a function and return it so that it records whenever it is called."""
        self.add_function(func)
        return wrap(self._recorder, func)

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

    def runctx(self, cmd: str, globals: dict[str, Any], locals: dict[str, Any]) -> MemoryProfiler:  # noqa: A002
        """Execute code while recording."""
        with self:
            exec(cmd, globals, locals)
        return self

    @property
    def code_map(self) -> CodeMap:
        """What was measured so far, by code object and line."""
        measured: dict[tuple[str, int, str], dict[int, tuple[float, float, int]]] = {}
        for file, first, name, lines in _core.line_rows(self._recorder.snapshot()):
            measured[file, first, name] = {
                line: (increment / MEBIBYTE, memory / MEBIBYTE, hits)
                for line, hits, _, memory, increment in lines
                if hits
            }
        found = CodeMap()
        for codes in self._codes.values():
            code = codes[0]
            of_code = measured.get((code.co_filename, code.co_firstlineno, code_name(code)), {})
            found.update(dict.fromkeys(codes, of_code))
            last = max(line_range(inner)[1] for inner in codes)
            found._files.append((code.co_filename, range(code.co_firstlineno, last + 1), of_code))
        return found

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
    if choose_backend(backend) == "tracemalloc" and not tracemalloc.is_tracing():
        tracemalloc.start()
    if func is None:
        return functools.partial(profile, stream=stream, precision=precision, backend=backend)
    # Who says where the table goes, or what is measured, gets a table of its own.
    if _started_by_command is not None and stream is None and backend == "psutil":
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


_started_by_command: Callable[..., Any] | None = None


def use(profiler: Callable[..., Any]) -> None:
    """Let the decorator feed a profiler that someone else prints."""
    global _started_by_command
    _started_by_command = profiler
