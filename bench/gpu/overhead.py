"""What recording a GPU program costs, measured in a process that runs one profiler or the other.

Shared machines drift: a step may take half as long again a minute later. So each turn of a few steps under the profiler
is compared with the turns without it before and after, and the median of those ratios counts. CUPTI stays in a process
once it was attached and keeps costing a little, so steps before any profiler ran are told too. Steps after a start
are not measured. Whoever calls this runs the processes one after another: a GPU that two processes share is slower.

Usage: python overhead.py {resnet50,tiny} {hotspan,torch} SECONDS OPTIONS...; prints a line of JSON for each option,
measured for as many seconds (twice as many without options)
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import programs
import torch
import torch.profiler

OPTIONS: dict[str, dict[str, bool]] = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "memory": {"profile_memory": True},
    "all": {"record_shapes": True, "profile_memory": True, "with_stack": True},
}
ACTIVITIES = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
STEPS = {"resnet50": 5, "tiny": 3}
PROGRAMS: dict[str, Callable[[], programs.Step]] = {"resnet50": programs.resnet50, "tiny": programs.tiny}


def profiler_of(name: str) -> Any:
    """The class that records."""
    if name == "torch":
        return torch.profiler.profile
    import hotspan.profiler

    return hotspan.profiler.profile


class Program:
    """A program whose steps are measured."""

    def __init__(self, name: str) -> None:
        self.step, self.steps = PROGRAMS[name](), STEPS[name]

    def seconds(self, steps: int = 0) -> float:
        """Seconds of a step, the device included."""
        steps = steps or self.steps
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            self.step()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / steps

    def recorded(self, profile: Any, options: dict[str, bool], results: bool) -> tuple[float, float]:
        """Seconds of a step under a profiler, and until its results are there."""
        recording = profile(activities=ACTIVITIES, **options)
        recording.start()
        self.seconds(2)
        taken = self.seconds()
        start = time.perf_counter()
        recording.stop()
        if results:
            assert "Self CUDA" in recording.key_averages().table(sort_by="cpu_time_total")
        return taken, time.perf_counter() - start


def main() -> None:
    """Measure one program under one profiler."""
    name, profiler, budget = sys.argv[1], sys.argv[2], float(sys.argv[3])
    program = Program(name)
    program.seconds(10)
    fresh = [program.seconds() for _ in range(30)]
    profile = profiler_of(profiler)
    for options in sys.argv[4:]:
        _, results = program.recorded(profile, OPTIONS[options], results=True)
        program.seconds(2)
        before, without, taken, ratios = program.seconds(), [], [], []
        # The targets are about recording without options.
        end = time.monotonic() + budget * (2 if options == "plain" else 1)
        while time.monotonic() < end or len(ratios) < 3:
            taken.append(program.recorded(profile, OPTIONS[options], results=False)[0])
            program.seconds(1)
            after = program.seconds()
            ratios.append(taken[-1] / ((before + after) / 2))
            without.append(after)
            before = after
        low, middle, high = statistics.quantiles(ratios, n=4)
        report = {"program": name, "profiler": profiler, "options": options, "turns": len(ratios)}
        report |= {"adds": middle - 1, "adds_low": low - 1, "adds_high": high - 1, "results": results}
        report |= {"fresh": min(fresh), "without": min(without), "recorded": min(taken)}
        print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
