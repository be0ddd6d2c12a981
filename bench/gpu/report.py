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
PROFILED = ("resnet50", "tiny")
# The most that hotspan may add: to a training step, and to the smallest operator as a share of torch.profiler's.
STEP_TARGET, TINY_TARGET, RESULTS_TARGET, DURATION_TARGET = 0.12, 0.4, 50.0, 0.02


def run(*arguments: str, limit: float) -> tuple[list[dict[str, Any]], list[str]]:
    """The lines of JSON that a program prints, and what went wrong or was said."""
    command = [sys.executable, str(FOLDER / arguments[0]), *arguments[1:]]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=max(limit, 1))
        output, errors = done.stdout, done.stderr
        said = [] if done.returncode == 0 else [f"exit {done.returncode}: {errors.strip().splitlines()[-1:]}"]
    except subprocess.TimeoutExpired as expired:
        output, errors = ((text or b"").decode() for text in (expired.stdout, expired.stderr))
        said = ["ran out of time"]
    said += sorted({line for line in errors.splitlines() if line.startswith("hotspan:")})
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")], said


def verdict(reached: bool) -> str:
    """A word for it."""
    return "reached" if reached else "missed"


def parity(deadline: float) -> list[dict[str, Any]]:
    """Compare what both record."""
    rows, said = run("parity.py", *PROGRAMS, limit=deadline - time.monotonic())
    print(
        "\n| program | device work | same kernels | duration to torch's | same operators | arrows | annotations |"
    )
    print("|---|--:|---|--:|---|--:|---|")
    for row in rows:
        if "failed" in row:
            print(f"| {row['program']} | {row['failed']} | | | | | |")
            continue
        ratio = row["duration_ratio"]
        print(
            f"| {row['program']} | {row['work']['hotspan']:,} | {'yes' if row['same_kernels'] else 'no'} "
            f"| {ratio:.4f} ({verdict(abs(ratio - 1) <= DURATION_TARGET)}) | {'yes' if row['same_owners'] else 'no'} "
            f"| {row['arrows']['hotspan']:,} of {row['arrows']['torch']:,} "
            f"| {'same' if row['same_annotations'] else 'differ'} |"
        )
    for row in rows:
        for key in ("missing", "extra", "other_owners"):
            if row.get(key):
                print(f"- {row['program']}: {key}: {json.dumps(row[key])[:500]}")
        if not row.get("same_annotations", True):
            print(f"- {row['program']}: annotations: {json.dumps(row['annotations'])[:400]}")
    for line in said:
        print(f"- {line}")
    sys.stdout.flush()
    return rows


def overhead(deadline: float, turns: float) -> list[dict[str, Any]]:
    """Measure what both cost, each in a process of its own, one after the other."""
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    print(
        "\n| program | options | profiler | turns | adds (median of pairs) | quartiles "
        "| best step: fresh, attached, recorded | results |"
    )
    print("|---|---|---|--:|--:|--:|--:|--:|")
    for program in PROFILED:
        for profiler in ("hotspan", "torch"):
            arguments = ("overhead.py", program, profiler, str(turns), "plain", "shapes", "memory", "all")
            found, said = run(*arguments, limit=deadline - time.monotonic())
            notes += [f"{program}, {profiler}: {line}" for line in said]
            rows += found
            # A step of the tiny program is a thousand operators.
            unit = "ms" if program == "resnet50" else "us"
            for row in found:
                best = ", ".join(f"{row[kind] * 1e3:.2f}" for kind in ("fresh", "without", "recorded"))
                print(
                    f"| {program} | {row['options']} | {profiler} | {row['turns']} | {row['adds']:+.1%} "
                    f"| {row['adds_low']:+.0%} to {row['adds_high']:+.0%} | {best} {unit} | {row['results']:.3f} s |",
                    flush=True,
                )
    for note in [*notes, *verdicts(rows)]:
        print(f"- {note}", flush=True)
    return rows


def verdicts(rows: list[dict[str, Any]]) -> list[str]:
    """What the issue asks for, and what was found."""
    plain = {(row["program"], row["profiler"]): row for row in rows if row["options"] == "plain"}
    found = []
    if both := [plain[key] for key in (("resnet50", "hotspan"), ("resnet50", "torch")) if key in plain]:
        beside, fresh = both[0]["adds"], both[0]["recorded"] / both[0]["fresh"] - 1
        found.append(
            f"a training step: {beside:+.1%} over steps beside it without a profiler, {fresh:+.1%} best to best over a "
            f"fresh process (target {STEP_TARGET:+.0%}: {verdict(max(beside, fresh) <= STEP_TARGET)})"
        )
        if len(both) == 2:
            sooner = both[1]["results"] / both[0]["results"]
            found.append(
                f"results of 7 steps: {sooner:.0f} times sooner "
                f"(target {RESULTS_TARGET:.0f}: {verdict(sooner >= RESULTS_TARGET)})"
            )
    if both := [plain[key] for key in (("tiny", "hotspan"), ("tiny", "torch")) if key in plain]:
        added = [row["adds"] * row["without"] for row in both]
        if len(both) == 2 and added[1] > 0:
            share = added[0] / added[1]
            found.append(
                f"the smallest operator: {share:.2f} of what torch.profiler adds "
                f"(target {TINY_TARGET}: {verdict(share <= TINY_TARGET)})"
            )
    return found


def main() -> None:
    """Run everything that fits into the budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", choices=("parity", "overhead"))
    parser.add_argument(
        "--turns", type=float, default=20.0, help="seconds for each row of the table of costs"
    )
    parser.add_argument("--budget", type=float, default=600.0, help="seconds in all")
    options = parser.parse_args()
    deadline = time.monotonic() + options.budget
    device = torch.cuda.get_device_name()
    print(f"{device}, torch {torch.__version__}, Python {sys.version.split()[0]}")
    report: dict[str, Any] = {"device": device, "torch": torch.__version__}
    if options.only != "parity":
        report["overhead"] = overhead(deadline, options.turns)
    if options.only != "overhead":
        report["parity"] = parity(deadline)
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
