"""What tracing calls costs: hotspan.cprofile beside cProfile, viztracer and pyinstrument, in one run.

Programs that call much, loop much, and do both run under each profiler in turn, all in one process; the processor time
of the best round counts. Peers that are not installed are left out. pyinstrument samples, so that its cost is not per
call; it is shown because people choose between them.

Usage: python bench/calls.py [--rounds 7] [--python python3.12 ...]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import results

TITLE = "Tracing calls beside cProfile"
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


def profilers() -> dict[str, Callable[[], AbstractContextManager[Any]]]:
    """Those that are installed here."""
    import cProfile

    import hotspan.cprofile

    found: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        "nothing": nullcontext,
        "hotspan": hotspan.cprofile.Profile,
        "cProfile": cProfile.Profile,
    }
    with suppress(ImportError):
        from viztracer import VizTracer

        found["viztracer"] = lambda: VizTracer(verbose=0, tracer_entries=2_000_000)
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
    return lines


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--python", action="append", default=[], help="another interpreter to measure with")
    parser.add_argument("--json", action="store_true", help="measure here and print seconds")
    arguments = parser.parse_args()
    if arguments.json:
        print(json.dumps([platform.python_version(), measure(arguments.rounds)]))
        return
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "python")}
    lines = [f"slow-down of a program, processor time, best of {arguments.rounds} rounds"]
    for python in [sys.executable, *arguments.python]:
        command = [python, __file__, "--json", "--rounds", str(arguments.rounds)]
        told = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
        version, best = json.loads(told.splitlines()[-1])
        lines += ["", *table(version, best)]
        print("\n".join(table(version, best)), flush=True)
    results.write_lines(TITLE, lines)


if __name__ == "__main__":
    main()
