"""What recording a GPU program costs: nothing, hotspan and torch.profiler, each in a process of its own, in turns.

Shared machines drift: a step may take half as long again a minute later. So the processes take turns of a few steps,
each turn under a profiler is compared with the turns of the process without one beside it, and the median of those
ratios counts. A process of its own for each, since CUPTI stays where it was once attached and keeps costing a little.
Steps right after a start are not measured.

Usage: python overhead.py {resnet50,tiny} SECONDS [OPTIONS...]; prints a line of JSON for each of the options
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from typing import Any

OPTIONS: dict[str, dict[str, bool]] = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "memory": {"profile_memory": True},
    "all": {"record_shapes": True, "profile_memory": True, "with_stack": True},
}
STEPS = {"resnet50": 5, "tiny": 3}


def work(program: str, profiler: str) -> None:
    """A process that takes a turn for each line it reads, and answers with what it took."""
    import programs
    import torch
    import torch.profiler

    step = {"resnet50": programs.resnet50, "tiny": programs.tiny}[program]()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    profile: Any = None
    if profiler == "torch":
        profile = torch.profiler.profile
    elif profiler == "hotspan":
        import hotspan.profiler

        profile = hotspan.profiler.profile

    def seconds(steps: int) -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / steps

    seconds(10)
    print(json.dumps({"ready": profiler}), flush=True)
    asked: set[str] = set()
    for line in sys.stdin:
        options = line.strip()
        if profile is None:
            seconds(2)
            print(json.dumps({"seconds": seconds(STEPS[program])}), flush=True)
            continue
        recording = profile(activities=activities, **OPTIONS[options])
        recording.start()
        seconds(2)
        answer = {"seconds": seconds(STEPS[program])}
        start = time.perf_counter()
        recording.stop()
        if options not in asked:
            asked.add(options)
            assert "Self CUDA" in recording.key_averages().table(sort_by="cpu_time_total")
            answer["results"] = time.perf_counter() - start
        print(json.dumps(answer), flush=True)


class Worker:
    """Such a process, as the one that asks sees it."""

    def __init__(self, program: str, profiler: str) -> None:
        command = [sys.executable, __file__, "--work", program, profiler]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def hear(self) -> dict[str, Any]:
        """Its next answer."""
        assert self.process.stdout
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)  # type: ignore[no-any-return]
        raise SystemExit(f"a process ended with {self.process.wait()}")

    def turn(self, options: str) -> dict[str, Any]:
        """Let it take a turn."""
        assert self.process.stdin
        print(options, file=self.process.stdin, flush=True)
        return self.hear()


def compare(workers: dict[str, Worker], options: str, budget: float) -> dict[str, Any]:
    """Take turns for so many seconds."""
    nothing, times, ratios, results = [], {}, {}, {}
    end = time.monotonic() + budget
    before = workers["nothing"].turn(options)["seconds"]
    while time.monotonic() < end or len(nothing) < 3:
        for name in ("hotspan", "torch"):
            answer = workers[name].turn(options)
            after = workers["nothing"].turn(options)["seconds"]
            beside, before = (before + after) / 2, after
            nothing.append(after)
            times.setdefault(name, []).append(answer["seconds"])
            ratios.setdefault(name, []).append(answer["seconds"] / beside)
            if "results" in answer:
                results[name] = answer["results"]
    report: dict[str, Any] = {"options": options, "turns": len(ratios["torch"]), "results": results}
    report["nothing"], report["nothing best"] = statistics.median(nothing), min(nothing)
    for name, values in ratios.items():
        low, _, high = statistics.quantiles(values, n=4)
        report[name] = {
            "ratio": statistics.median(values),
            "quartiles": [low, high],
            "best": min(times[name]),
        }
    return report


def main() -> None:
    """Measure one program."""
    if sys.argv[1] == "--work":
        return work(*sys.argv[2:])
    program, budget = sys.argv[1], float(sys.argv[2])
    workers = {name: Worker(program, name) for name in ("nothing", "hotspan", "torch")}
    for worker in workers.values():
        worker.hear()
    for options in sys.argv[3:] or OPTIONS:
        print(json.dumps({"program": program, **compare(workers, options, budget)}), flush=True)
    for worker in workers.values():
        worker.process.communicate()
    return None


if __name__ == "__main__":
    main()
