"""What recording a GPU program costs: one profiler with each choice of options, beside nothing, in one process.

Nothing is measured first, before any profiler is attached: one that was attached leaves a little of its cost behind.
Steps right after the start are not measured: CUPTI prepares each kernel at its first launch, for both profilers.

Usage: python overhead.py {resnet50,tiny} {hotspan,torch}; prints one JSON object
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


def summary(values: list[float]) -> dict[str, float]:
    """The best and the middle of several rounds."""
    return {"best": min(values), "median": statistics.median(values)}


def main() -> None:
    """Measure one program under one profiler."""
    program, profiler = sys.argv[1:3]
    step, steps, rounds = (resnet50(), 8, 6) if program == "resnet50" else (tiny(), 2, 12)
    warm = 4 if program == "resnet50" else 1
    for _ in range(8):
        step()
    nothing = [seconds(step, steps) for _ in range(2 * rounds)]
    recorded: dict[str, list[float]] = {name: [] for name in OPTIONS}
    results: dict[str, dict[str, float]] = {}
    after: list[float] = []
    for number in range(rounds):
        for name, options in OPTIONS.items():
            if name == "all" and number >= 2:
                continue  # torch.profiler takes its time with stacks
            profile = PROFILERS[profiler](activities=ACTIVITIES, **options)
            profile.start()
            seconds(step, warm)
            recorded[name].append(seconds(step, steps))
            start = time.perf_counter()
            profile.stop()
            stopped = time.perf_counter()
            if number == 1:
                table = profile.key_averages().table(sort_by="cpu_time_total")
                assert "Self CUDA" in table
                results[name] = {"stop": stopped - start, "table": time.perf_counter() - stopped}
            del profile
        after.append(seconds(step, steps))
    report: dict[str, Any] = {
        "program": program,
        "profiler": profiler,
        "steps": steps + warm,
        "results": results,
    }
    report["nothing"], report["after"] = summary(nothing), summary(after)
    report["recorded"] = {name: summary(values) for name, values in recorded.items()}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
