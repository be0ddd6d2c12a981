"""``python -m hotspan.memory``: runs a program and shows memory by line, as ``python -m memory_profiler`` does."""

from __future__ import annotations

import argparse
import builtins
import sys
from pathlib import Path

from hotspan._program import Program, command, run_reporting
from hotspan.memory import _profiler
from hotspan.memory._profiler import MemoryProfiler, show_results

EXAMPLES = """examples:
  python -m hotspan.memory script.py              memory by line of the functions decorated with @profile
  python -m hotspan.memory -o memory.txt -m mypackage.train --epochs 1
  hotspan record --memory -o memory.svg -- python script.py       memory over time, children included"""

TAKES_VALUE = {"-o", "--precision", "--backend"}


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
    add("-o", dest="outfile", metavar="FILE", help="append the tables to FILE; .hotspan writes a trace")
    add("--precision", type=int, default=3, help="digits after the point (3)")
    add(
        "--backend",
        choices=["psutil", "posix"],
        default="psutil",
        help="accepted: resident memory is measured",
    )
    return made


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    return command(arguments, parser(), TAKES_VALUE, record)


def record(options: argparse.Namespace, program: Program) -> int:
    """Run the program with ``profile`` as a builtin."""
    profiler = MemoryProfiler()
    _profiler.use(profiler)
    builtins.profile = profiler  # type: ignore[attr-defined]
    program.prepare()
    outfile = Path(options.outfile).absolute() if options.outfile else None

    def report() -> None:
        if outfile is None:
            show_results(profiler, precision=options.precision)
        elif outfile.suffix == ".hotspan":
            profiler.save(outfile)
        else:
            with outfile.open("a", encoding="utf-8") as stream:
                show_results(profiler, stream, options.precision)

    return run_reporting(program, report)


if __name__ == "__main__":
    sys.exit(main())
