"""What recording a GPU program costs: both profilers and nothing, in turns, in one process.

Shared machines are noisy: each turn of a few steps is followed by one of another kind, and medians are compared.
Nothing is also measured before any profiler is attached, since CUPTI stays in the process and keeps costing a little.
Steps right after a start are not measured.

Usage: python overhead.py {resnet50,tiny} SECONDS [OPTIONS...]; prints a line of JSON for each of the options
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


def turn(name: str, options: dict[str, bool], step: Step, steps: int, results: dict[str, float]) -> float:
    """Seconds of a step under a profiler; the first time, also how long its results take."""
    profile = PROFILERS[name](activities=ACTIVITIES, **options)
    profile.start()
    seconds(step, 2)
    recorded = seconds(step, steps)
    start = time.perf_counter()
    profile.stop()
    if name not in results:
        assert "Self CUDA" in profile.key_averages().table(sort_by="cpu_time_total")
        results[name] = time.perf_counter() - start
    return recorded


def main() -> None:
    """Measure one program."""
    program, budget = sys.argv[1], float(sys.argv[2])
    step, steps = (resnet50(), 5) if program == "resnet50" else (tiny(), 3)
    for _ in range(10):
        step()
    before = [seconds(step, steps) for _ in range(8)]
    for options in sys.argv[3:] or OPTIONS:
        times: dict[str, list[float]] = {"nothing": [], "hotspan": [], "torch": []}
        results: dict[str, float] = {}
        end = time.monotonic() + budget
        while time.monotonic() < end or len(times["torch"]) < 2:
            times["nothing"].append(seconds(step, steps))
            for name in PROFILERS:
                times[name].append(turn(name, OPTIONS[options], step, steps, results))
        report = {"program": program, "options": options, "turns": len(times["torch"]), "results": results}
        report["before"] = statistics.median(before)
        report |= {name: statistics.median(values) for name, values in times.items()}
        report["best"] = {name: min(values) for name, values in {"before": before, **times}.items()}
        print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
