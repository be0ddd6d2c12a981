"""What sampling costs: hotspan record beside py-spy record, blocking (its default) and not, on the same program.

For 2 and for 64 threads, at 100 and at 1,000 samples a second: how much more processor time a unit of the program's
work takes, how much longer it takes by the clock, and how much of a processor the sampler uses. A machine's speed
drifts by far more than a sampler costs, so every measurement is compared with those without a sampler right before and
after it, and the median of these pairs counts. About four minutes.

Usage: python bench/sampler.py [--seconds 0.8] [--rounds 9]
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import mmap
import os
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import results

TARGET = """
import mmap, struct, sys, threading, time

file = open(sys.argv[1], "r+b")
counter = mmap.mmap(file.fileno(), 8)

def helps(depth):
    if depth:
        return helps(depth - 1)
    while True:
        time.sleep(0.02)

for _ in range(int(sys.argv[2]) - 1):
    threading.Thread(target=helps, args=(10,), daemon=True).start()

def leaf(number):
    return number * number

def work(depth):
    if depth:
        return work(depth - 1)
    return sum(leaf(number) for number in range(200))

done = 0
while True:
    work(20)
    done += 1
    counter[:8] = struct.pack("q", done)
"""

HEADING = "The sampler beside py-spy"
SLICE = 0.1
# How much slower 100 samples a second may make a program with 64 threads.
MOST_SLOWER = 0.02
# Two measurements of the same thing differ by about this much.
NOISE = 0.005
LINES: list[str] = []


def say(line: str) -> None:
    """Print a line, and keep it for the results."""
    print(line, flush=True)
    LINES.append(line)


def go_first(pid: int = 0) -> None:
    """Let a process, or this one, run before whatever else the machine does, where that is allowed."""
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, pid, -20)


def program(name: str) -> str:
    """A command beside this Python, or on the PATH."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name) or name


def samplers(rate: int, seconds: float, output: Path, pid: int) -> dict[str, list[str]]:
    """The commands that are compared."""
    # py-spy takes whole seconds; all are ended by a signal once the work is measured.
    shared = ["--rate", str(rate), "--pid", str(pid), "--output", str(output), "--duration"]
    spy = [program("py-spy"), "record", "--format", "raw", *shared, str(int(seconds) + 30)]
    return {
        "hotspan": [program("hotspan"), "record", "--format", "collapsed", *shared, str(seconds + 30)],
        "py-spy": spy,
        "py-spy --nonblocking": [*spy, "--nonblocking"],
    }


def processor_time(pid: int) -> float:
    """Seconds of processor time of a process so far, by its own clock: user and system, to the nanosecond."""
    return time.clock_gettime((~pid << 3) | 2)


@dataclasses.dataclass
class Cost:
    """What a sampler costs, a number for each round: the program's work against that without it, and itself."""

    processor: list[float] = dataclasses.field(default_factory=list)
    clock: list[float] = dataclasses.field(default_factory=list)
    sampler: list[float] = dataclasses.field(default_factory=list)

    def slower(self) -> float:
        """How much more processor time the program takes."""
        return statistics.median(self.processor) - 1

    def longer(self) -> float:
        """How much longer the program takes."""
        return statistics.median(self.clock) - 1

    def of_sampler(self) -> float:
        """The share of a processor that the sampler takes."""
        return statistics.median(self.sampler)


def work_of(counter: mmap.mmap, pid: int, seconds: float) -> tuple[float, float]:
    """Processor time and time of a unit of work, as in the better slices: the others had company."""

    def now() -> tuple[int, float, float]:
        return struct.unpack("q", counter[:8])[0], processor_time(pid), time.perf_counter()

    processor, clock = [], []
    before = now()
    end = before[2] + seconds
    while before[2] < end:
        time.sleep(SLICE)
        after = now()
        done = after[0] - before[0]
        if done > 0:
            processor.append((after[1] - before[1]) / done)
            clock.append((after[2] - before[2]) / done)
        before = after
    return statistics.quantiles(processor, n=4)[0], statistics.quantiles(clock, n=4)[0]


def compare(
    threads: int, rate: int, arguments: argparse.Namespace, counter: mmap.mmap, output: Path, pid: int
) -> dict[str, Cost]:
    """One row for each sampler, all measured in turns."""
    commands = samplers(rate, arguments.seconds, output, pid)
    costs = {name: Cost() for name in commands}
    before = work_of(counter, pid, arguments.seconds)
    for _ in range(arguments.rounds):
        for name, command in commands.items():
            sampler = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            go_first(sampler.pid)
            time.sleep(0.7)  # starting up is not sampling
            used, begun = processor_time(sampler.pid), time.perf_counter()
            taken = work_of(counter, pid, arguments.seconds)
            costs[name].sampler.append((processor_time(sampler.pid) - used) / (time.perf_counter() - begun))
            sampler.send_signal(signal.SIGINT)
            sampler.wait(timeout=90)
            after = work_of(counter, pid, arguments.seconds)
            costs[name].processor.append(2 * taken[0] / (before[0] + after[0]))
            costs[name].clock.append(2 * taken[1] / (before[1] + after[1]))
            before = after
    theirs = costs["py-spy"].of_sampler()
    for name, cost in costs.items():
        used = cost.of_sampler()
        say(
            f"{threads:7}  {rate:9}  {name:22}{cost.slower():+11.1%}{cost.longer():+12.1%}{used:17.1%}"
            f"{used / theirs:14.2f}x"
        )
    return costs


def judge(found: dict[tuple[int, int], dict[str, Cost]]) -> None:
    """Hold what was found against what hotspan promises."""

    def verdict(text: str, is_met: bool) -> None:
        say(f"{text}: {'met' if is_met else 'missed'}")

    say("")
    busy = found[64, 100]["hotspan"].slower()
    verdict(f"64 threads, 100 samples a second: {busy:+.1%} (target {MOST_SLOWER:+.0%})", busy < MOST_SLOWER)
    never = all(costs["hotspan"].slower() <= costs["py-spy"].slower() + NOISE for costs in found.values())
    verdict(f"never slows the program more than py-spy does, to {NOISE:.1%}", never)
    cheaper = all(costs["hotspan"].of_sampler() < costs["py-spy"].of_sampler() for costs in found.values())
    verdict("always takes less of a processor than py-spy", cheaper)


def main() -> None:
    """Run all cases and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=0.8, help="how long each measurement lasts")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    say("                                          the program's work takes    the sampler takes")
    say("threads  samples/s  sampler                 processor        time   of a processor    of py-spy's")
    found: dict[tuple[int, int], dict[str, Cost]] = {}
    with tempfile.TemporaryDirectory() as folder:
        shared = Path(folder, "counter")
        shared.write_bytes(bytes(8))
        with shared.open("r+b") as file:
            counter = mmap.mmap(file.fileno(), 8)
        for threads in (2, 64):
            target = subprocess.Popen([sys.executable, "-c", TARGET, str(shared), str(threads)])
            try:
                go_first(target.pid)
                time.sleep(0.5)
                for rate in (100, 1000):
                    output = Path(folder, "samples.txt")
                    found[threads, rate] = compare(threads, rate, arguments, counter, output, target.pid)
            finally:
                target.kill()
                target.wait()
        counter.close()
    judge(found)
    results.write_lines(HEADING, LINES)


if __name__ == "__main__":
    main()
