"""What recording costs: hotspan.profiler beside torch.profiler, an empty callback, and nothing, in one run.

Prints nanoseconds per operator, and the seconds and memory that the results of a large profile take. Each large
profile is a process of its own. Figures of one machine, next to the targets that hotspan sets itself.

Usage: python bench/profiler.py [--operators 20000] [--rounds 9] [--events 600000]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.profiler

import hotspan.profiler
import results

CPU = [torch.profiler.ProfilerActivity.CPU]
CASES = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "memory": {"profile_memory": True},
    "shapes, memory": {"record_shapes": True, "profile_memory": True},
}
# hotspan's overhead over torch.profiler's, and over the empty callback's, at most. That one never sees an allocation.
SHARE_OF_TORCH = {"plain": 0.45, "shapes": 0.5, "memory": 0.45, "shapes, memory": 0.5}
TIMES_EMPTY = {"plain": 1.5, "shapes": 1.5}
PROFILERS = {"hotspan": hotspan.profiler.profile, "torch.profiler": torch.profiler.profile}


LINES: list[str] = []


def say(line: str) -> None:
    """Print a line, and keep it for the results."""
    print(line, flush=True)
    LINES.append(line)


def compile_empty_callback(folder: Path) -> Callable[[bool, bool], None]:
    """The callback that does nothing, loaded."""
    root = Path(torch.__file__).parent
    library = folder / "empty_callback.so"
    subprocess.run(
        [
            *("g++", "-O2", "-shared", "-fPIC", "-w", "-std=c++20", "-DNDEBUG"),
            f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
            f"-I{root / 'include'}",
            str(Path(__file__).with_name("empty_callback.cc")),
            *("-o", str(library), f"-L{root / 'lib'}", "-lc10", "-ltorch_cpu"),
        ],
        check=True,
    )
    function = ctypes.CDLL(str(library)).empty_callback
    function.argtypes = [ctypes.c_bool, ctypes.c_bool]
    function.restype = None
    return function  # type: ignore[return-value]


def per_operator(count: int, out_of_place: bool) -> float:
    """Nanoseconds of this thread per operator, the smallest there is; one that allocates where memory is recorded."""
    x, y = torch.zeros(1), torch.ones(1)
    add = torch.Tensor.add if out_of_place else torch.Tensor.add_
    start = time.thread_time_ns()
    for _ in range(count):
        add(x, y)
    return (time.thread_time_ns() - start) / count


def overheads(operators: int, rounds: int) -> None:
    """Prints nanoseconds per operator of each way to record, the best of some rounds in turn."""
    with tempfile.TemporaryDirectory() as folder:
        empty = compile_empty_callback(Path(folder))

    @contextmanager
    def nothing(**_options: bool) -> Iterator[None]:
        yield

    @contextmanager
    def empty_callback(record_shapes: bool = False, profile_memory: bool = False) -> Iterator[None]:
        del profile_memory
        empty(True, record_shapes)
        yield
        empty(False, record_shapes)

    ways = {"nothing": nothing, "empty": empty_callback, **PROFILERS}
    say(f"ns per operator, best of {rounds} rounds of {operators} operators")
    titles = "".join(f"{title:>9}" for title in ("nothing", "empty", "hotspan", "torch"))
    say(f"{'':<16}{titles}   overhead: of torch's (target)   of empty's (target)")
    for case, options in CASES.items():
        best = dict.fromkeys(ways, float("inf"))
        for _ in range(rounds):
            for name, way in ways.items():
                arguments = {**options, **({"activities": CPU} if name in PROFILERS else {})}
                with way(**arguments):
                    best[name] = min(best[name], per_operator(operators, "memory" in case))
        base = best["nothing"]
        ours, theirs, floor = (best[name] - base for name in ("hotspan", "torch.profiler", "empty"))
        figures = "".join(f"{value:>9.0f}" for value in best.values())
        of_torch = f"{ours / theirs:>14.2f}x {verdict(ours / theirs, SHARE_OF_TORCH[case]):<16}"
        of_empty = f"{ours / floor:>6.2f}x {verdict(ours / floor, TIMES_EMPTY.get(case))}"
        say(f"{case:<16}{figures}   {of_torch} {of_empty}".rstrip())


def verdict(found: float, target: float | None) -> str:
    """Whether a share is at most what it should be, where that is said."""
    if target is None:
        return ""
    return f"({target:.2f}x) {'met' if found <= target else 'missed'}"


def resident(field: str = "VmRSS") -> int:
    """Bytes of memory that this process holds, or held at most."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def results_of_a_large_profile(name: str, events: int) -> dict[str, float]:
    """Seconds and bytes that one profiler takes to give its results, measured in this process."""
    x = torch.zeros(1)
    profile = PROFILERS[name]
    with profile(activities=CPU) as warm:  # compile, import, allocate what is needed only once
        x.add(1)
    warm.key_averages().table()
    seconds = {}
    prof = profile(activities=CPU)
    before = resident()
    prof.start()
    for _ in range(events):
        x.neg_()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "trace.json")
        for step, act in {
            "stop": prof.stop,
            "key_averages + table": lambda: prof.key_averages().table(sort_by="cpu_time_total"),
            "export": lambda: prof.export_chrome_trace(path),
        }.items():
            start = time.perf_counter()
            act()
            seconds[step] = time.perf_counter() - start
    return {**seconds, "bytes": resident("VmHWM") - before}


def large_profiles(events: int) -> None:
    """Prints what the results of a large profile take."""
    found = {}
    for name in PROFILERS:
        command = [sys.executable, __file__, "--one", name, "--events", str(events)]
        environment = {**os.environ, "HOTSPAN_COLLECTOR": "native", "KINETO_LOG_LEVEL": "5"}
        told = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
        found[name] = json.loads(told.splitlines()[-1])
    ours, theirs = found["hotspan"], found["torch.profiler"]
    table = {
        "stop + key_averages + table": [x["stop"] + x["key_averages + table"] for x in (ours, theirs)]
        + [100],
        "of which stop": [ours["stop"], theirs["stop"], None],
        "export": [ours["export"], theirs["export"], 3],
    }
    say(f"\nresults of a profile of {events} events")
    say(f"{'':<30}{'hotspan':>12}{'torch':>12}   times faster (target)")
    for label, (our, their, target) in table.items():
        wanted = "" if target is None else f" ({target}x) {'met' if their / our >= target else 'missed'}"
        say(f"{label:<30}{our:>10.3f} s{their:>10.3f} s   {their / our:>8.1f}x{wanted}")
    share = ours["bytes"] / theirs["bytes"]
    memory = f"{ours['bytes'] / 1e6:>9.0f} MB{theirs['bytes'] / 1e6:>9.0f} MB"
    say(
        f"{'peak memory grown by':<30}{memory}   1/{1 / share:.1f} (1/20) {'met' if share <= 1 / 20 else 'missed'}"
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operators", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--events", type=int, default=600_000)
    parser.add_argument("--one", choices=PROFILERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.one:
        print(json.dumps(results_of_a_large_profile(arguments.one, arguments.events)))
        return
    os.environ["HOTSPAN_COLLECTOR"] = "native"
    overheads(arguments.operators, arguments.rounds)
    large_profiles(arguments.events)
    results.write_lines("The profiler beside torch.profiler", LINES)


if __name__ == "__main__":
    main()
