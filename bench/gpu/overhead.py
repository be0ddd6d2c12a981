"""What recording a GPU program costs: one profiler with one choice of options, beside nothing, in one process.

Nothing is measured first: a profiler that was attached once leaves a little of its cost behind.

Usage: python overhead.py {resnet50,tiny} {hotspan,torch} OPTIONS; OPTIONS: plain, shapes, memory, all. Prints one JSON object
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

import torch
import torch.profiler
from programs import Step, resnet50, tiny

import hotspan.profiler

OPTIONS: dict[str, dict[str, bool]] = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "memory": {"profile_memory": True},
    "all": {"record_shapes": True, "profile_memory": True, "with_stack": True},
}
PROFILERS: dict[str, Any] = {"hotspan": hotspan.profiler.profile, "torch": torch.profiler.profile}
ACTIVITIES = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]


def seconds(step: Step, steps: int) -> float:
    """Seconds of a step, the device included."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps


def main() -> None:
    """Measure one case."""
    program, profiler, options = sys.argv[1:4]
    step, steps, rounds = (resnet50(), 10, 5) if program == "resnet50" else (tiny(), 2, 9)
    for _ in range(5):
        step()
    nothing = [seconds(step, steps) for _ in range(rounds)]
    recorded, ends, results = [], [], []
    for _ in range(rounds):
        profile = PROFILERS[profiler](activities=ACTIVITIES, **OPTIONS[options])
        profile.start()
        recorded.append(seconds(step, steps))
        start = time.perf_counter()
        profile.stop()
        ends.append(time.perf_counter() - start)
        table = profile.key_averages().table(sort_by="cpu_time_total")
        results.append(time.perf_counter() - start)
        assert "Self CUDA" in table
        del profile, table
    after = [seconds(step, steps) for _ in range(rounds)]
    figures = {"nothing": nothing, "recorded": recorded, "after": after}
    report: dict[str, Any] = {"program": program, "profiler": profiler, "options": options}
    for name, values in figures.items():
        report[name] = {"best": min(values), "median": statistics.median(values)}
    report["stop"] = statistics.median(ends)
    report["results"] = statistics.median(results)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
