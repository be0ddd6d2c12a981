"""What tracing calls costs: hotspan.cprofile beside cProfile, viztracer and pyinstrument, on every CPython here.

Programs that call much, loop much, and do both run under each profiler in turn, all in one process; the processor time
of the best round counts. Peers that are not installed are left out. pyinstrument samples, so that its cost is not per
call; it is shown because people choose between them. Before Python 3.12 "empty" is a profile function that does
nothing: what the interpreter itself takes for calling one, below which nobody gets.

Usage: python bench/calls.py [--rounds 7] [--python python3.12 ...]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import pythons
import results

TITLE = "Tracing calls beside cProfile"
# viztracer writes a file, wanted or not.
SCRATCH = tempfile.TemporaryDirectory()
# hotspan's overhead over cProfile's, at most.
TARGET = 0.6


def fib(n: int) -> int:
    """Python functions and nothing else."""
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def call_heavy() -> None:
    """A quarter of a million calls."""
    fib(24)


def builtin_heavy() -> None:
    """Functions of C."""
    out: list[int] = []
    for _ in range(60_000):
        out.append(len("abc"))


def loop_heavy() -> None:
    """A loop that calls nothing."""
    total = 0
    for number in range(1_500_000):
        total += number & 7


def mixed() -> None:
    """What programs do: methods, comprehensions, sorting, formatting, some arithmetic."""
    words = [f"{number:x}" for number in range(4_000)]
    for _ in range(6):
        counts: dict[str, int] = {}
        for word in words:
            key = classify(word)
            counts[key] = counts.get(key, 0) + len(word)
        sorted(counts.items(), key=lambda item: item[1])
        sum(number * number for number in range(3_000))


def classify(word: str) -> str:
    """A small function with work in it."""
    return word[:1].upper() if word.isalpha() else word[-1:]


PROGRAMS = {"calls": call_heavy, "builtins": builtin_heavy, "loop": loop_heavy, "mixed": mixed}


class EmptyFunction:
    """Sets a profile function of C that returns 0: ``abs`` of no object."""

    def __enter__(self) -> None:
        self.set(ctypes.cast(ctypes.CDLL(None).abs, ctypes.c_void_p))

    def __exit__(self, *_error: object) -> None:
        self.set(None)

    def set(self, function: ctypes.c_void_p | None) -> None:
        """Set it on this thread."""
        set_profile = ctypes.pythonapi.PyEval_SetProfile
        set_profile.argtypes, set_profile.restype = [ctypes.c_void_p, ctypes.c_void_p], None
        set_profile(function, None)


def profilers() -> dict[str, Callable[[], AbstractContextManager[Any]]]:
    """Those that are installed here."""
    import cProfile

    import hotspan.cprofile

    found: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        "nothing": nullcontext,
        "hotspan": hotspan.cprofile.Profile,
        "cProfile": cProfile.Profile,
    }
    if sys.version_info < (3, 12):
        found["empty"] = EmptyFunction
    with suppress(ImportError):
        from viztracer import VizTracer

        found["viztracer"] = lambda: VizTracer(
            verbose=0, tracer_entries=2_000_000, output_file=str(Path(SCRATCH.name, "viztracer.json"))
        )
    with suppress(ImportError):
        from pyinstrument import Profiler

        found["pyinstrument"] = Profiler
    return found


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Seconds of each program under each profiler: the best round."""
    best: dict[str, dict[str, float]] = {}
    for program, run in PROGRAMS.items():
        times = best.setdefault(program, {})
        for _ in range(rounds):
            # In turn, so that what disturbs the machine disturbs all.
            for name, profiler in profilers().items():
                with redirect_stdout(sys.stderr), profiler():
                    start = time.process_time()
                    run()
                    seconds = time.process_time() - start
                times[name] = min(seconds, times.get(name, seconds))
    return best


def table(version: str, best: dict[str, dict[str, float]]) -> list[str]:
    """Slow-downs, and hotspan's overhead as a share of cProfile's."""
    names = [name for name in next(iter(best.values())) if name != "nothing"]
    lines = [
        f"Python {version}",
        f"{'':10}" + "".join(f"{name:>14}" for name in names) + "   overhead: of cProfile's (target)",
    ]
    for program, times in best.items():
        cells = "".join(f"{times[name] / times['nothing']:>13.2f}x" for name in names)
        ours, theirs = (times[name] - times["nothing"] for name in ("hotspan", "cProfile"))
        # Where neither costs anything there is nothing to compare.
        if theirs < 0.05 * times["nothing"]:
            lines.append(f"{program:10}{cells}   -")
            continue
        share = ours / theirs
        verdict = f"({TARGET}x) {'met' if share <= TARGET else 'missed'}" if program == "calls" else ""
        lines.append(f"{program:10}{cells}   {share:.2f}x {verdict}".rstrip())
        if "empty" in times and program == "calls":
            floor = (times["empty"] - times["nothing"]) / theirs
            lines[-1] += f"; an empty profile function: {floor:.2f}x"
    return lines


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--python", action="append", default=[], help="measure with this interpreter, not with all"
    )
    parser.add_argument("--json", action="store_true", help="measure here and print seconds")
    arguments = parser.parse_args()
    if arguments.json:
        print(json.dumps([platform.python_version(), measure(arguments.rounds)]))
        return
    lines = [f"slow-down of a program, processor time, best of {arguments.rounds} rounds"]
    for python in arguments.python or pythons.found():
        version, best = pythons.measured(python, __file__, "--rounds", str(arguments.rounds))
        lines += ["", *table(version, best)]
        print("\n".join(table(version, best)), flush=True)
    results.write_lines(TITLE, lines)


if __name__ == "__main__":
    main()
