"""cProfile with one import changed: every call of a function, added up, on every thread.

    import hotspan.cprofile as cProfile

    python -m hotspan.cprofile [-o FILE] [-s SORT] (-m MODULE | SCRIPT) [ARGUMENT...]

Reports and ``.prof`` files are those of cProfile and pstats. Threads have call stacks of their own.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from hotspan import _core
from hotspan.trace import Trace

__all__ = ["Profile", "run", "runctx"]

_Result = TypeVar("_Result")
_Self = TypeVar("_Self", bound="Profile")


class profiler_subentry(NamedTuple):  # noqa: N801 - cProfile's name
    """Calls from one function to another; times in seconds."""

    code: types.CodeType | str
    callcount: int
    reccallcount: int
    totaltime: float
    inlinetime: float


class profiler_entry(NamedTuple):  # noqa: N801 - cProfile's name
    """Calls of a function; times in seconds."""

    code: types.CodeType | str
    callcount: int
    reccallcount: int
    totaltime: float
    inlinetime: float
    calls: list[profiler_subentry] | None


class Profile(_core.CallProfiler):
    """Traces calls between ``enable()`` and ``disable()``, on all threads.

    ``timer`` is asked for the time instead of the clock, in units of ``timeunit`` seconds; without ``subcalls`` callers
    are not kept, without ``builtins`` functions of C are not traced.
    """

    # Made by `create_stats`, as cProfile does; pstats reads and empties it.
    stats: dict[Any, Any]

    def getstats(self) -> list[profiler_entry]:
        """Return an entry for each function that was called."""
        entries = []
        for code, calls, recursive, total, own, callees in self.entries():
            found = [profiler_subentry(*callee) for callee in callees] if callees else None
            entries.append(profiler_entry(code, calls, recursive, total, own, found))
        return entries

    def print_stats(self, sort: Any = -1) -> None:
        """Print the table of functions; ``sort`` is a key of pstats or several."""
        self.disable()
        print(_core.function_text(self.trace(), _sort_keys(sort), True, []), end="")

    def dump_stats(self, file: str | os.PathLike[str]) -> None:
        """Write a ``.prof`` file, which pstats, snakeviz and ``hotspan stats`` open."""
        self.disable()
        self.trace().export("prof", os.fspath(file))

    def create_stats(self) -> None:
        """Stop, and set ``stats`` to what pstats works with."""
        self.disable()
        self.snapshot_stats()

    def snapshot_stats(self) -> None:
        """Set ``stats`` to what pstats works with."""
        self.stats = _core.function_stats(self.trace())

    def to_trace(self) -> Trace:
        """Return what was added up as a trace, to be saved or looked at with hotspan."""
        return Trace(self.trace())

    def run(self: _Self, cmd: str) -> _Self:
        """Profile a statement in the namespace of ``__main__``."""
        import __main__

        namespace = __main__.__dict__
        return self.runctx(cmd, namespace, namespace)

    def runctx(self: _Self, cmd: str | types.CodeType, globals: dict[str, Any], locals: Any) -> _Self:  # noqa: A002
        """Profile a statement in these namespaces."""
        self.enable()
        try:
            exec(cmd, globals, locals)
        finally:
            self.disable()
        return self

    def runcall(self, func: Callable[..., _Result], /, *args: Any, **kw: Any) -> _Result:
        """Profile one call and return its result."""
        self.enable()
        try:
            return func(*args, **kw)
        finally:
            self.disable()

    def __enter__(self: _Self) -> _Self:
        self.enable()
        return self

    def __exit__(self, *_error: object) -> None:
        self.disable()


def _sort_keys(sort: Any) -> str:
    keys = sort if isinstance(sort, tuple | list) else (sort,)
    return ",".join(str(getattr(key, "value", key)) for key in keys)


def run(statement: str, filename: str | None = None, sort: Any = -1) -> None:
    """Profile a statement in the namespace of ``__main__``; print the table, or write it to a ``.prof`` file."""
    import __main__

    namespace = __main__.__dict__
    runctx(statement, namespace, namespace, filename, sort)


def runctx(
    statement: str | types.CodeType,
    globals: dict[str, Any],  # noqa: A002
    locals: Any,  # noqa: A002
    filename: str | None = None,
    sort: Any = -1,
) -> None:
    """Profile a statement in these namespaces; print the table, or write it to a ``.prof`` file."""
    profile = Profile()
    try:
        profile.runctx(statement, globals, locals)
    except SystemExit:
        pass
    finally:
        _show(profile, filename, sort)


def _show(profile: Profile, filename: str | None, sort: Any) -> None:
    if filename is None:
        profile.print_stats(sort)
    else:
        profile.dump_stats(filename)


_SORT_KEYS = (
    "calls, cumtime, cumulative, filename, line, module, name, ncalls, nfl, pcalls, stdname, time, tottime"
)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m hotspan.cprofile",
        description="Run a script or module and print how often its functions were called and what they cost.",
        epilog="Example: python -m hotspan.cprofile -s cumtime train.py --epochs 1",
    )
    parser.add_argument("-o", "--outfile", metavar="FILE", help="write a .prof file instead of printing")
    parser.add_argument(
        "-s",
        "--sort",
        default="cumulative",
        choices=_SORT_KEYS.split(", "),
        metavar="KEY",
        help=f"order of the printed table (default: cumulative); one of {_SORT_KEYS}",
    )
    parser.add_argument("-m", dest="is_module", action="store_true", help="run a module, as python -m does")
    parser.add_argument("program", metavar="SCRIPT", help="the script, or the module after -m")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the program gets in sys.argv")
    return parser.parse_args(arguments)


def _script(parser_name: str, path: str) -> tuple[types.CodeType, dict[str, Any]]:
    """Compile a script, and make the ``__main__`` it runs in."""
    try:
        with io.open_code(str(Path(path).absolute())) as file:
            code = compile(file.read(), path, "exec")
    except OSError as error:
        print(f"{parser_name}: error: cannot open {path}: {error.strerror}", file=sys.stderr)
        raise SystemExit(2) from None
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __spec__=None, __builtins__=__builtins__, __cached__=None)
    # Objects of the script's classes can be pickled only when their module is found by its name.
    sys.modules["__main__"] = main
    return code, main.__dict__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the program's own exit code is kept."""
    options = _parse(sys.argv[1:] if arguments is None else arguments)
    # The program may change its folder.
    outfile = None if options.outfile is None else str(Path(options.outfile).absolute())
    sys.argv[:] = [options.program, *options.arguments]
    code: str | types.CodeType
    if options.is_module:
        import runpy

        code = "run_module(modname, run_name='__main__', alter_sys=True)"
        namespace: dict[str, Any] = {"run_module": runpy.run_module, "modname": options.program}
    else:
        sys.path.insert(0, os.path.dirname(options.program))  # noqa: PTH120 - an empty folder stays empty
        code, namespace = _script("python -m hotspan.cprofile", options.program)
    profile = Profile()
    try:
        profile.runctx(code, namespace, None)
    finally:
        try:
            _show(profile, outfile, options.sort)
            sys.stdout.flush()
        except BrokenPipeError:
            # Whoever read the table has seen enough; nothing more can be printed.
            sys.stdout = None
    return 0


if __name__ == "__main__":
    sys.exit(main())
