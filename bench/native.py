"""What sampling from within costs: a program alone, under hotspan.sample and under `py-spy record --native`, in turns.

Prints the seconds that a fixed piece of work takes, as the best of several rounds that take turns, and the processor
time spent beside it. Figures of one machine, next to the targets that hotspan sets itself. A peer that cannot run is
left out and named.

Usage: python bench/native.py [--rounds 5] [--threads 1 16]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import results
from sampler import program

HEADING = "Sampling from within, with native frames, beside py-spy"
LINES: list[str] = []
TARGET = {100: 1.02, 1000: 1.10}

# Python and, where it is installed, NumPy; `idle` further threads wait as those of a server do.
WORK = """
import json, sys, threading, time
try:
    import numpy
except ImportError:
    numpy = None
rate, idle = int(sys.argv[1]), int(sys.argv[2])
done = threading.Event()
for _ in range(idle):
    threading.Thread(target=done.wait, daemon=True).start()

def work(amount):
    values = numpy.arange(20_000.0)[::-1].copy() if numpy else None
    total = 0
    for turn in range(amount):
        total += sum(i * i for i in range(2000))
        if values is not None:
            numpy.sort(values)
    return total

work(50)
sampler = None
if rate:
    import hotspan
    sampler = hotspan.sample(rate=rate).start()
begin, cpu = time.perf_counter(), time.process_time()
work(int(sys.argv[3]))
took = {"seconds": time.perf_counter() - begin, "cpu": time.process_time() - cpu, "samples": 0}
done.set()
if sampler:
    sampler.stop()
    took["samples"] = len(sampler.samples())
print(json.dumps(took))
"""


def say(line: str) -> None:
    """Print a line, and keep it for the results."""
    print(line, flush=True)
    LINES.append(line)


def run(prefix: list[str], rate: int, idle: int, amount: int) -> dict[str, float] | None:
    """One round, in a fresh process; `all` is the processor time of the program and of a profiler outside of it."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [*prefix, sys.executable, "-c", WORK, str(rate), str(idle), str(amount)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        return None
    took: dict[str, float] = json.JSONDecoder().raw_decode(lines[-1])[0]
    took["all"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--amount", type=int, default=2500, help="how much work a round is")
    parser.add_argument(
        "--threads", type=int, nargs="*", default=[0, 62], help="how many idle threads besides"
    )
    options = parser.parse_args()
    py_spy = shutil.which(program("py-spy"))
    with tempfile.TemporaryDirectory() as folder:
        output = str(Path(folder) / "spy.txt")
        for idle in options.threads:
            cases: dict[str, tuple[list[str], int]] = {"nothing": ([], 0)}
            for rate in TARGET:
                cases[f"hotspan {rate} Hz"] = ([], rate)
                if py_spy:
                    spy = [py_spy, "record", "--native", "-r", str(rate), "-f", "raw", "-o", output, "--"]
                    cases[f"py-spy --native {rate} Hz"] = (spy, 0)
            rounds: dict[str, list[dict[str, float]]] = {name: [] for name in cases}
            for _ in range(options.rounds):
                for name, (prefix, rate) in cases.items():
                    took = run(prefix, rate, idle, options.amount)
                    if took is not None:
                        rounds[name].append(took)
            report(rounds, idle)
    if not py_spy:
        say("py-spy is not installed: left out")
    results.write_lines(HEADING, LINES[1:])


def report(rounds: dict[str, list[dict[str, float]]], idle: int) -> None:
    """Print the best of the rounds of each case, beside that of the program alone."""
    best = {
        name: {key: min(took[key] for took in all_of_it) for key in ("seconds", "cpu", "all")}
        for name, all_of_it in rounds.items()
        if all_of_it
    }
    say("")
    say(f"{idle + 1} threads, {idle} of them waiting")
    say(f"{'':24} {'work':>8} {'slower':>8} {'CPU of work':>12} {'CPU of all':>11} {'samples':>8}")
    bare = best["nothing"]
    for name, all_of_it in rounds.items():
        if name not in best:
            say(f"{name:24} could not run here")
            continue
        took = best[name]
        samples = max(int(one["samples"]) for one in all_of_it)
        slower, cpu, everything = (took[key] / bare[key] - 1 for key in ("seconds", "cpu", "all"))
        say(f"{name:24} {took['seconds']:7.3f}s {slower:+8.1%} {cpu:+12.1%} {everything:+11.1%} {samples:8}")
    for rate, target in TARGET.items():
        say(f"target: hotspan at {rate} Hz at most {target - 1:.0%} slower")


if __name__ == "__main__":
    main()
