"""``python -m hotspan.memory``: runs a program and shows memory by line, as ``python -m memory_profiler`` does."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from hotspan import _core
from hotspan._program import Program, command, run_reporting
from hotspan.memory import _profiler
from hotspan.memory._profiler import MemoryProfiler, show_results
from hotspan.memory._readings import BACKENDS
from hotspan.memory._running import measuring
from hotspan.memory._timestamps import TimeStamper

EXAMPLES = """examples:
  python -m hotspan.memory script.py              memory by line of the functions decorated with @profile
  python -m hotspan.memory -o memory.txt -m mypackage.train --epochs 1
  python -m hotspan.memory --pdb-mmem=500 script.py     the debugger, on the first line with more than 500 MiB
  python -m hotspan.memory.mprof run script.py          memory over time: see mprof --help
  hotspan record --memory -o memory.svg -- python script.py       the same as a plot, children included"""

TAKES_VALUE = {"-o", "--precision", "--backend", "--pdb-mmem"}


def parser() -> argparse.ArgumentParser:
    """The command line; its options are memory_profiler's."""
    made = argparse.ArgumentParser(
        prog="python -m hotspan.memory",
        usage="python -m hotspan.memory [options] (script | -m module | -c code | -) [arguments]",
        description="Run a program and record how it grows on each line of the functions decorated with @profile.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = made.add_argument
    add("--version", action="version", version=_core.__version__)
    add("-o", dest="outfile", metavar="FILE", help="append the tables to FILE; .hotspan writes a trace")
    add("--precision", type=int, default=3, help="digits after the point (3)")
    add(
        "--pdb-mmem",
        dest="max_mem",
        metavar="MIB",
        type=float,
        help="start the debugger on the first line after which the process has more memory than this",
    )
    add(
        "--timestamp",
        action="store_true",
        help="write when the functions began and ended, for mprof plot, instead of tables",
    )
    add("--include-children", action="store_true", help="add the memory of child processes; slow")
    add(
        "--backend",
        choices=BACKENDS,
        default="psutil",
        help="what is measured: resident memory (psutil, posix), its share of memory that several processes have "
        "(psutil_pss), what it has alone (psutil_uss), or what Python allocated (tracemalloc); all but the first two "
        "are slow",
    )
    return made


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    return command(arguments, parser(), TAKES_VALUE, record)


def record(options: argparse.Namespace, program: Program) -> int:
    """Run the program with ``profile`` as a builtin."""
    profiler: MemoryProfiler | TimeStamper
    if options.timestamp:
        profiler = TimeStamper(options.backend, options.include_children)
    else:
        profiler = MemoryProfiler(
            backend=options.backend, include_children=options.include_children, max_mem=options.max_mem
        )
    _profiler.use(profiler)
    if program.kind == "script" and is_module(program.target):
        program = Program("module", program.target, program.arguments)
    program.prepare()
    outfile = Path(options.outfile).absolute() if options.outfile else None

    def show(stream: IO[str] | None) -> None:
        if isinstance(profiler, TimeStamper):
            profiler.show_results(stream)
        else:
            show_results(profiler, stream, options.precision)

    def report() -> None:
        if outfile is None:
            show(None)
        elif outfile.suffix == ".hotspan" and isinstance(profiler, MemoryProfiler):
            profiler.save(outfile)
        else:
            with outfile.open("a", encoding="utf-8") as stream:
                show(stream)

    with measuring(profiler, options.backend):
        return run_reporting(program, report)


def is_module(name: str) -> bool:
    """Whether a name without ``-m`` is that of a module, as memory_profiler takes all that do not end in ``.py``."""
    if (
        name.endswith(".py")
        or Path(name).exists()
        or not all(part.isidentifier() for part in name.split("."))
    ):
        return False
    try:
        return find_spec(name) is not None
    except ImportError:
        return False


if __name__ == "__main__":
    sys.exit(main())
