"""hotspan beside torch.profiler on the same program: the same kernels, as often, as long, and for the same operators.

Both export a Chrome trace; both exports are read here with the json module, and nothing of hotspan.

Usage: python parity.py PROGRAM... [--steps 3] [--rounds 2]; prints a line of JSON for each program
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import torch
import torch.profiler
from programs import PROGRAMS, Step

import hotspan.profiler

DEVICE_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
# Kernels that overlap take longer or shorter from run to run; more runs even that out.
MORE_ROUNDS = {"streams": 5}
ACTIVITIES = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]


def record(profile: Any, step: Step, steps: int, folder: str) -> list[dict[str, Any]]:
    """The events of a few steps."""
    torch.cuda.synchronize()
    with profile(activities=ACTIVITIES) as recording:
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
    path = Path(folder) / "trace.json"
    recording.export_chrome_trace(str(path))
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded["traceEvents"]  # type: ignore[no-any-return]


def work_of(events: list[dict[str, Any]]) -> list[tuple[str, float, str]]:
    """Name, microseconds and operator of all device work."""
    owners = {
        event["args"]["External id"]: event["name"]
        for event in events
        if event.get("cat") in ("cpu_op", "user_annotation") and "External id" in event.get("args", {})
    }
    return [
        (event["name"], float(event["dur"]), owners.get(event["args"].get("External id"), "(nobody)"))
        for event in events
        if event.get("cat") in DEVICE_WORK
    ]


def arrows_of(events: list[dict[str, Any]]) -> int:
    """How many arrows end at device work."""
    return sum(
        event.get("cat") == "ac2g" and event.get("ph") == "f" and event["pid"] == 0 for event in events
    )


def compare(step: Step, steps: int, rounds: int) -> dict[str, Any]:
    """What both saw, and how it differs."""
    seen: dict[str, list[tuple[str, float, str]]] = {"torch": [], "hotspan": []}
    arrows = Counter[str]()
    annotations: dict[str, Counter[str]] = {"torch": Counter(), "hotspan": Counter()}
    with tempfile.TemporaryDirectory() as folder:
        for profile in (torch.profiler.profile, hotspan.profiler.profile):
            record(profile, step, 1, folder)  # the first recording of a process loads modules
        for _ in range(rounds):
            for name, profile in (("torch", torch.profiler.profile), ("hotspan", hotspan.profiler.profile)):
                events = record(profile, step, steps, folder)
                seen[name] += work_of(events)
                arrows[name] += arrows_of(events)
                marks = (event["name"] for event in events if event.get("cat") == "gpu_user_annotation")
                annotations[name].update(marks)
    kernels = {name: Counter(work[0] for work in all_work) for name, all_work in seen.items()}
    owners = {name: Counter((work[0], work[2]) for work in all_work) for name, all_work in seen.items()}
    total = {name: sum(work[1] for work in all_work) for name, all_work in seen.items()}
    missing = kernels["torch"] - kernels["hotspan"]
    extra = kernels["hotspan"] - kernels["torch"]
    return {
        "work": {name: len(all_work) for name, all_work in seen.items()},
        "distinct": len(kernels["torch"]),
        "same_kernels": not missing and not extra,
        "missing": dict(missing.most_common(3)),
        "extra": dict(extra.most_common(3)),
        "total_us": total,
        "duration_ratio": total["hotspan"] / max(total["torch"], 1e-9),
        "same_owners": owners["torch"] == owners["hotspan"],
        "other_owners": [
            *(("torch", *key, count) for key, count in (owners["torch"] - owners["hotspan"]).most_common(3)),
            *(
                ("hotspan", *key, count)
                for key, count in (owners["hotspan"] - owners["torch"]).most_common(3)
            ),
        ],
        "arrows": dict(arrows),
        "same_annotations": annotations["torch"] == annotations["hotspan"],
        "annotations": {name: dict(marks.most_common(3)) for name, marks in annotations.items()},
    }


def main() -> None:
    """Run some programs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="+", choices=PROGRAMS)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    for program in options.programs:
        torch.manual_seed(0)
        try:
            step = PROGRAMS[program]()
            for _ in range(3):
                step()
            found = compare(step, options.steps, options.rounds * MORE_ROUNDS.get(program, 1))
        except Exception as error:  # the others go on
            found = {"failed": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps({"program": program, **found}), flush=True)


if __name__ == "__main__":
    main()
