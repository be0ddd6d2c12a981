"""What recording lines costs: hotspan beside line_profiler and memory_profiler, in one run, on the same functions.

Prints nanoseconds a line over the plain run, and their ratio, for every CPython here that has the peers. Figures of one
machine, next to the targets that hotspan sets itself. A reading of /proc/self/statm is the floor of memory after
lines that took long enough for memory to have come or gone; after the others hotspan makes none.

Usage: python bench/lines.py [--iterations 100000] [--rounds 7] [--python python3.12 ...]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import platform
import time
from collections.abc import Callable
from types import FunctionType
from typing import Any

import pythons
import results

TITLE = "Lines beside line_profiler and memory_profiler"
# hotspan's cost of a line over the peer's, at most.
TIME_TARGET = 0.9
MEMORY_TARGET = 1 / 25


def tight(n: int) -> int:
    """Two lines an iteration, and nothing else."""
    y = 0
    for x in range(n):
        y = x
    return y


def branches(n: int) -> int:
    """Five lines an iteration, with a little work."""
    total = 0
    for x in range(n):
        if x % 3:
            total += x
        else:
            total -= 1
        total ^= x
    return total


def helper(x: int) -> int:
    """Not recorded."""
    y = x + 1
    z = y * 2
    return z - 1


def calls(n: int) -> int:
    """Two recorded lines an iteration; the function called is not recorded."""
    total = 0
    for x in range(n):
        total += helper(x)
    return total


def builtins(n: int) -> int:
    """Two recorded lines an iteration, one of which calls functions of C."""
    total = 0
    for x in range(n):
        total += len(str(x))
    return total


def growing(n: int) -> int:
    """Two lines an iteration, one of which takes and gives back memory: none of them is quick."""
    total = 0
    for _ in range(n):
        total += len(bytes(300_000))
    return total


LINES = {tight: 2, branches: 4, calls: 2, builtins: 2}


def copy_of(function: FunctionType) -> FunctionType:
    """The same function with a code object of its own, so that profilers do not meet in it."""
    code = function.__code__.replace()
    return FunctionType(code, function.__globals__, function.__name__)


def compare(
    kinds: dict[str, Callable[[int], object]], n: int, rounds: int, lines: int, slower: int = 1
) -> dict[str, float]:
    """Nanoseconds of processor time a line over the plain run; rounds are interleaved, the best count.

    A peer that is many times slower gets so many times less to do.
    """
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, function in kinds.items():
            count = n // slower if name == "peer" else n
            start = time.process_time()
            function(count)
            each = (time.process_time() - start) / (count * lines) * 1e9
            best[name] = min(each, best.get(name, each))
    return {name: best[name] - best["plain"] for name in ("hotspan", "peer")}


def measure(iterations: int, rounds: int) -> dict[str, Any]:
    """What each tool costs in this interpreter."""
    import line_profiler
    import memory_profiler

    import hotspan
    from hotspan.memory import MemoryProfiler

    found: dict[str, dict[str, float]] = {}
    for function, lines in LINES.items():
        kinds = {
            "plain": function,
            "hotspan": hotspan.LineProfiler()(copy_of(function)),
            "peer": line_profiler.LineProfiler()(copy_of(function)),
        }
        found[function.__name__] = compare(kinds, iterations, rounds, lines)
    for function in (tight, growing):
        kinds = {
            "plain": function,
            "hotspan": MemoryProfiler()(copy_of(function)),
            "peer": memory_profiler.LineProfiler()(copy_of(function)),
        }
        with contextlib.redirect_stdout(io.StringIO()):
            n = iterations // (2 if function is tight else 20)
            found[f"memory {function.__name__}"] = compare(kinds, n, 5, 2, slower=50)
    return {
        "versions": f"Python {platform.python_version()}, line_profiler {line_profiler.__version__}, "
        f"memory_profiler {memory_profiler.__version__}",
        "found": found,
        "reading": reading(),
    }


def reading() -> float:
    """Nanoseconds of one reading of the resident memory, of a file that stays open: the best of many."""
    file = os.open("/proc/self/statm", os.O_RDONLY)
    best = 1e9
    for _ in range(5_000):
        start = time.perf_counter_ns()
        os.pread(file, 128, 0)
        best = min(best, time.perf_counter_ns() - start)
    os.close(file)
    return best


def table(told: dict[str, Any]) -> list[str]:
    """Lines of the report."""
    said = [told["versions"], f"{'':15}{'hotspan':>10}{'peer':>12}   ns a line"]
    for name, cost in told["found"].items():
        ours, theirs = cost["hotspan"], cost["peer"]
        share = ours / theirs
        if name.startswith("memory"):
            verdict = f"{theirs / ours:.0f}x faster (target {1 / MEMORY_TARGET:.0f}x)"
            met = share <= MEMORY_TARGET
        else:
            verdict = f"{share:.2f}x (target {TIME_TARGET}x)"
            met = share <= TIME_TARGET
        said.append(f"{name:15}{ours:>10.0f}{theirs:>12.0f}   {verdict} {'met' if met else 'missed'}")
    return [*said, f"one reading of /proc/self/statm: {told['reading']:.0f} ns"]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--python", action="append", default=[], help="measure with this interpreter, not with all"
    )
    parser.add_argument("--json", action="store_true", help="measure here and print the figures")
    arguments = parser.parse_args()
    if arguments.json:
        try:
            print(json.dumps(measure(arguments.iterations, arguments.rounds)))
        except ModuleNotFoundError as error:
            print(json.dumps({"missing": f"Python {platform.python_version()}: {error}"}))
        return
    lines: list[str] = []
    given = ["--iterations", str(arguments.iterations), "--rounds", str(arguments.rounds)]
    for python in arguments.python or pythons.found():
        told = pythons.measured(python, __file__, *given)
        said = table(told) if "found" in told else [told["missing"]]
        print("\n".join(said), flush=True)
        lines += [*([""] if lines else []), *said]
    results.write_lines(TITLE, lines)


if __name__ == "__main__":
    main()
