"""Runs all comparisons on a GPU, each in a process of its own, and prints one table; the figures also as JSON.

Usage: python report.py [--json FILE] [--only parity|overhead] [--budget SECONDS]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from programs import PROGRAMS

FOLDER = Path(__file__).parent
# The most that hotspan may add: to a training step, and to the smallest operator as a share of what torch.profiler adds.
STEP_TARGET, TINY_TARGET, RESULTS_TARGET, DURATION_TARGET = 0.12, 0.4, 50.0, 0.02
CASES = [
    (program, options) for program in ("resnet50", "tiny") for options in ("plain", "shapes", "memory", "all")
]


def run(*arguments: str, limit: float) -> dict[str, Any]:
    """The JSON that a program prints on its last line."""
    command = [sys.executable, str(FOLDER / arguments[0]), *arguments[1:]]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=max(limit, 1))
    except subprocess.TimeoutExpired:
        return {"failed": "ran out of time"}
    try:
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return {"failed": done.stderr.strip().splitlines()[-1:] or f"exit {done.returncode}"}
    said = [line for line in done.stderr.splitlines() if line.startswith("hotspan:")]
    return {**result, "said": said} if said else result


def verdict(reached: bool) -> str:
    """A word for it."""
    return "reached" if reached else "missed"


def parity(deadline: float) -> list[dict[str, Any]]:
    """Compare what both record."""
    print(
        "\n| program | device work | same kernels | duration to torch's | same operators | arrows | annotations |"
    )
    print("|---|--:|---|--:|---|--:|---|")
    rows = []
    for program in PROGRAMS:
        row = {"program": program, **run("parity.py", program, limit=deadline - time.monotonic())}
        rows.append(row)
        if "failed" in row:
            print(f"| {program} | {row['failed']} | | | | | |", flush=True)
            continue
        ratio = row["duration_ratio"]
        within = verdict(abs(ratio - 1) <= DURATION_TARGET)
        print(
            f"| {program} | {row['work']['hotspan']:,} | {'yes' if row['same_kernels'] else 'no'} "
            f"| {ratio:.4f} ({within}) | {'yes' if row['same_owners'] else 'no'} "
            f"| {row['arrows']['hotspan']:,} of {row['arrows']['torch']:,} "
            f"| {'same' if row['same_annotations'] else 'differ'} |",
            flush=True,
        )
    for row in rows:
        for key in ("missing", "extra", "other_owners", "said"):
            if row.get(key):
                print(f"- {row['program']}: {key}: {json.dumps(row[key])[:400]}")
        if not row.get("same_annotations", True):
            print(f"- {row['program']}: annotations: {json.dumps(row['annotations'])[:400]}")
    return rows


def overhead(deadline: float) -> list[dict[str, Any]]:
    """Measure what both cost."""
    print(
        "\n| program | options | nothing | hotspan adds | torch.profiler adds | share | results: hotspan | torch |"
    )
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    rows = []
    for program, options in CASES:
        pair = {
            name: run("overhead.py", program, name, options, limit=deadline - time.monotonic())
            for name in ("hotspan", "torch")
        }
        rows.append({"program": program, "options": options, **pair})
        failed = [f"{name}: {case['failed']}" for name, case in pair.items() if "failed" in case]
        if failed:
            print(f"| {program} | {options} | {'; '.join(failed)} | | | | | |", flush=True)
            continue
        key = "median" if program == "resnet50" else "best"
        nothing = {name: case["nothing"][key] for name, case in pair.items()}
        added = {name: case["recorded"][key] - nothing[name] for name, case in pair.items()}
        share = added["hotspan"] / max(added["torch"], 1e-12)
        if program == "resnet50":
            shown = f"{nothing['hotspan'] * 1e3:.2f} ms"
            cells = [f"{added[name] / nothing[name]:+.1%}" for name in ("hotspan", "torch")]
        else:
            shown = f"{nothing['hotspan'] * 1e3:.2f} us"  # a thousand operators a step
            cells = [f"{added[name] * 1e3:+.2f} us" for name in ("hotspan", "torch")]
        times = [f"{pair[name]['results']:.3f} s" for name in ("hotspan", "torch")]
        through = (
            " (through torch.profiler)"
            if any("through torch" in line for line in pair["hotspan"].get("said", []))
            else ""
        )
        print(
            f"| {program} | {options}{through} | {shown} | {cells[0]} | {cells[1]} | {share:.2f}x "
            f"| {times[0]} | {times[1]} |",
            flush=True,
        )
    plain = {
        row["program"]: row for row in rows if row["options"] == "plain" and "failed" not in row["hotspan"]
    }
    if "resnet50" in plain and "failed" not in plain["resnet50"]["torch"]:
        case = plain["resnet50"]
        adds = case["hotspan"]["recorded"]["median"] / case["hotspan"]["nothing"]["median"] - 1
        sooner = case["torch"]["results"] / case["hotspan"]["results"]
        print(f"- a training step: {adds:+.1%} (target {STEP_TARGET:+.0%}: {verdict(adds <= STEP_TARGET)})")
        print(
            f"- results: {sooner:.0f} times sooner (target {RESULTS_TARGET:.0f}: {verdict(sooner >= RESULTS_TARGET)})"
        )
    if "tiny" in plain and "failed" not in plain["tiny"]["torch"]:
        adds = {
            name: plain["tiny"][name]["recorded"]["best"] - plain["tiny"][name]["nothing"]["best"]
            for name in ("hotspan", "torch")
        }
        share = adds["hotspan"] / max(adds["torch"], 1e-12)
        print(
            f"- the smallest operator: {share:.2f} of torch's (target {TINY_TARGET}: {verdict(share <= TINY_TARGET)})"
        )
    return rows


def main() -> None:
    """Run everything that fits into the budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", choices=("parity", "overhead"))
    parser.add_argument("--budget", type=float, default=600.0, help="seconds in all")
    options = parser.parse_args()
    deadline = time.monotonic() + options.budget
    device = torch.cuda.get_device_name()
    print(f"{device}, torch {torch.__version__}, Python {sys.version.split()[0]}")
    report: dict[str, Any] = {"device": device, "torch": torch.__version__}
    if options.only != "overhead":
        report["parity"] = parity(deadline)
    if options.only != "parity":
        report["overhead"] = overhead(deadline)
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
