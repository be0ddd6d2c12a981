"""What sampling costs: hotspan record beside py-spy record, blocking (its default) and not, on the same program.

For 2 and for 64 threads, at 100 and at 1,000 samples a second: how much slower the program gets, and how much of
a processor the sampler takes. All in one run, in turns. Under two minutes.

Usage: python bench/sampler.py [--seconds 1.5] [--rounds 2]
"""

from __future__ import annotations

import argparse
import contextlib
import mmap
import os
import shutil
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

TITLE = "The sampler beside py-spy"
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


def samplers(rate: int, seconds: float, output: Path, pid: int) -> dict[str, list[str] | None]:
    """The commands that are compared; nothing is one of them."""
    # py-spy takes whole seconds; all are ended by a signal once the work is measured.
    shared = ["--rate", str(rate), "--pid", str(pid), "--output", str(output), "--duration"]
    spy = [program("py-spy"), "record", "--format", "raw", *shared, str(int(seconds) + 30)]
    return {
        "nothing": None,
        "hotspan": [program("hotspan"), "record", "--format", "collapsed", *shared, str(seconds + 30)],
        "py-spy": spy,
        "py-spy --nonblocking": [*spy, "--nonblocking"],
    }


def measure(command: list[str] | None, counter: mmap.mmap, seconds: float) -> tuple[float, float]:
    """Units of work a second, and the share of a processor the sampler took, while it samples."""

    def work_and_time() -> tuple[int, float]:
        return struct.unpack("q", counter[:8])[0], time.perf_counter()

    def processor_time(pid: int) -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    process = None
    if command is not None:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        go_first(process.pid)
        time.sleep(0.7)  # starting up is not sampling
    used = processor_time(process.pid) if process else 0.0
    before, begun = work_and_time()
    time.sleep(seconds)
    after, ended = work_and_time()
    if process:
        used = processor_time(process.pid) - used
        process.terminate() if "hotspan" in str(process.args) else process.send_signal(2)
        process.wait(timeout=60)
    return (after - before) / (ended - begun), used / (ended - begun)


def main() -> None:
    """Run all cases and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=1.5, help="how long each measurement lasts")
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    say("threads  samples/s  sampler                 program slower by   processor used   of py-spy's")
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
                    compare(threads, rate, arguments, counter, Path(folder, "samples.txt"), target.pid)
            finally:
                target.kill()
                target.wait()
        counter.close()
    results.write_lines(TITLE, LINES)


def compare(
    threads: int, rate: int, arguments: argparse.Namespace, counter: mmap.mmap, output: Path, pid: int
) -> None:
    """One row for each sampler, all measured in turns."""
    commands = samplers(rate, arguments.seconds, output, pid)
    speeds: dict[str, list[float]] = {name: [] for name in commands}
    used: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(arguments.rounds):
        for name, command in commands.items():
            speed, processor = measure(command, counter, arguments.seconds)
            speeds[name].append(speed)
            used[name].append(processor)
    alone = max(speeds["nothing"])
    theirs = statistics.mean(used["py-spy"])
    for name in commands:
        if name == "nothing":
            continue
        slower = (alone / max(speeds[name]) - 1) * 100
        processor = statistics.mean(used[name])
        ratio = f"{processor / theirs:.2f}x" if theirs else "-"
        say(f"{threads:7}  {rate:9}  {name:22}  {slower:16.1f} %  {processor * 100:13.1f} %   {ratio:>11}")


if __name__ == "__main__":
    main()
