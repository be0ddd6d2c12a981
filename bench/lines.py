"""What recording lines costs: hotspan beside line_profiler and memory_profiler, in one run, on the same functions.

Prints nanoseconds a line over the plain run, and their ratio. Figures of one machine, next to the targets that hotspan
sets itself.

Usage: python bench/lines.py [--iterations 200000] [--rounds 7]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import statistics
import sys
import time
from collections.abc import Callable
from types import FunctionType

import line_profiler
import memory_profiler

import hotspan
import results
from hotspan.memory import MemoryProfiler

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


LINES = {tight: 2, branches: 4, calls: 2}


def copy_of(function: FunctionType) -> FunctionType:
    """The same function with a code object of its own, so that profilers do not meet in it."""
    code = function.__code__.replace()
    return FunctionType(code, function.__globals__, function.__name__)


def seconds(function: Callable[[int], object], n: int) -> float:
    """One run."""
    start = time.perf_counter()
    function(n)
    return time.perf_counter() - start


def compare(kinds: dict[str, Callable[[int], object]], n: int, rounds: int, lines: int) -> dict[str, float]:
    """Nanoseconds a line over the plain run; rounds are interleaved, medians compared."""
    times: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(rounds):
        for name, function in kinds.items():
            times[name].append(seconds(function, n))
    medians = {name: statistics.median(runs) for name, runs in times.items()}
    return {
        name: (median - medians["plain"]) / (n * lines) * 1e9
        for name, median in medians.items()
        if name != "plain"
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    version = ".".join(map(str, sys.version_info[:3]))
    said = [
        f"Python {version}, line_profiler {line_profiler.__version__}, memory_profiler {memory_profiler.__version__}"
    ]
    for function, lines in LINES.items():
        ours, theirs = hotspan.LineProfiler(), line_profiler.LineProfiler()
        kinds = {
            "plain": function,
            "hotspan": ours(copy_of(function)),
            "line_profiler": theirs(copy_of(function)),
        }
        found = compare(kinds, arguments.iterations, arguments.rounds, lines)
        ratio = found["hotspan"] / found["line_profiler"]
        said.append(
            f"{function.__name__:9} hotspan {found['hotspan']:8.1f} ns a line, "
            f"line_profiler {found['line_profiler']:8.1f} ns: {ratio:.2f}x (target {TIME_TARGET})"
        )
    ours_memory, theirs_memory = MemoryProfiler(), memory_profiler.LineProfiler()
    with contextlib.redirect_stdout(io.StringIO()):
        kinds = {
            "plain": tight,
            "hotspan": ours_memory(copy_of(tight)),
            "memory_profiler": theirs_memory(copy_of(tight)),
        }
        found = compare(kinds, max(arguments.iterations // 100, 100), 5, LINES[tight])
    ratio = found["memory_profiler"] / found["hotspan"]
    said.append(
        f"{'memory':9} hotspan {found['hotspan']:8.1f} ns a line, memory_profiler "
        f"{found['memory_profiler']:8.1f} ns: {ratio:.0f}x faster (target {1 / MEMORY_TARGET:.0f})"
    )
    print("\n".join(said))
    results.write_lines(TITLE, said)


if __name__ == "__main__":
    main()
