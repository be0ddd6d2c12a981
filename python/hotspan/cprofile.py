"""cProfile with one import changed: every call of a function, added up, on every thread.

    import hotspan.cprofile as cProfile

    python -m hotspan.cprofile [-o FILE] [-s SORT] (-m MODULE | SCRIPT) [ARGUMENT...]

Reports and ``.prof`` files are those of cProfile and pstats. Threads have call stacks of their own.
"""

from __future__ import annotations

import argparse
import atexit
import os
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

from hotspan import _core
from hotspan._program import Program, command, run_reporting
from hotspan.trace import Trace

__all__ = ["Profile", "run", "runctx"]

TRACE_SUFFIX = ".hotspan"
# How many calls of a thread the command line keeps in a trace: 32 bytes each.
MOST_SPANS = 4_000_000

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
    are not kept, without ``builtins`` functions of C are not traced. Every call is kept as a span of :meth:`to_trace`
    too, up to ``spans`` of each thread; those beyond are counted as lost.
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
        """Write a ``.prof`` file, which pstats, snakeviz and ``hotspan stats`` open; or a trace, named ``.hotspan``."""
        self.disable()
        path = os.fspath(file)
        if path.endswith(TRACE_SUFFIX):
            self.trace().save(path)
        else:
            self.trace().export("prof", path)

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


def _end() -> None:
    """Stop a profiler that still runs when Python ends, while there is a Python to stop it in."""
    active = sys.getprofile()
    if isinstance(active, Profile):
        active.disable()


atexit.register(_end)


def label(code: types.CodeType | str) -> tuple[str, int, str]:
    """Return the key of a function in ``stats``: file, line and name."""
    if isinstance(code, str):
        return ("~", 0, code)
    return (code.co_filename, code.co_firstlineno, code.co_name)


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


EXAMPLES = """examples:
  python -m hotspan.cprofile -s cumtime train.py --epochs 1
  python -m hotspan.cprofile -o train.prof -m mypackage.train
  python -m hotspan.cprofile -o train.hotspan train.py   every call on a timeline: hotspan view train.hotspan
  hotspan stats train.prof --sort tottime --limit 20     the table again"""

_SORT_KEYS = (
    "calls, cumtime, cumulative, filename, line, module, name, ncalls, nfl, pcalls, stdname, time, tottime"
)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with ``-s`` in cProfile's words."""

    def error(self, message: str) -> NoReturn:
        super().error(message.replace("argument -s/--sort:", "option -s:"))


def parser() -> argparse.ArgumentParser:
    """The command line; its options are cProfile's."""
    made = _Parser(
        prog="python -m hotspan.cprofile",
        usage="python -m hotspan.cprofile [-o FILE] [-s KEY] (script | -m module | -c code | -) [arguments]",
        description="Run a program and print how often its functions were called and what they cost.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument(
        "-o",
        "--outfile",
        metavar="FILE",
        help="write a .prof file instead of printing; or a trace with every call in it, named .hotspan",
    )
    made.add_argument(
        "-s",
        "--sort",
        default="cumulative",
        choices=_SORT_KEYS.split(", "),
        metavar="KEY",
        help=f"order of the printed table (default: cumulative); one of {_SORT_KEYS}",
    )
    return made


def record(options: argparse.Namespace, program: Program) -> int:
    """Run the program under a profiler."""
    # The program may change its folder.
    outfile = None if options.outfile is None else str(Path(options.outfile).absolute())
    program.prepare()
    wants_trace = outfile is not None and outfile.endswith(TRACE_SUFFIX)
    profile = Profile(spans=MOST_SPANS if wants_trace else 0)

    def run() -> None:
        code, namespace = program.executable()
        profile.runctx(code, namespace, None)

    return run_reporting(program, lambda: _show(profile, outfile, options.sort), run)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the program's own exit code is kept."""
    return command(arguments, parser(), {"-o", "--outfile", "-s", "--sort"}, record)


if __name__ == "__main__":
    sys.exit(main())
