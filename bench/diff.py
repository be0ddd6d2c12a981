"""How often `hotspan diff` is wrong: pairs of equal runs on a busy machine, and an operator made slower by a fifth.

    python bench/diff.py [--pairs 20] [--slower 6] [--load 2] [--keep FOLDER] [--write]

Records one program twice for each pair while other processes keep the processors busy: any claimed change is false.
Beside the first pairs it records the program with one product larger by a fifth, and compares these recordings with
their neighbours, alone and three at a time. `--pairs 3 --slower 3` takes two minutes and shows that it works; `--write`
puts what came out into bench/RESULTS.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import hotspan
import results
from hotspan.diff import Diff, compare

PROGRAM = """
import sys, torch
torch.manual_seed(0)
torch.set_num_threads(1)
convolution = [torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten()]
model = torch.nn.Sequential(*convolution, torch.nn.Linear(14400, 200), torch.nn.Linear(200, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
pictures, labels = torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,))
inner = int(sys.argv[1])
left, right, start = torch.randn(1, 300, inner), torch.randn(1, inner, 300), torch.zeros(1, 300, 300)
for _ in range(STEPS):
    optimizer.zero_grad()
    torch.baddbmm(start, left, right).sum()
    torch.nn.functional.cross_entropy(model(pictures), labels).backward()
    optimizer.step()
"""
CHANGED = "aten::baddbmm"


STEPS = 60
TOGETHER = 3


def record(folder: Path, name: str, inner: int) -> hotspan.Trace:
    """Run the program once; a recording that is there already is taken as it is."""
    path = folder / f"{name}.hotspan"
    if not path.exists():
        command = [sys.executable, "-m", "hotspan", "run", "-o", str(path), "program.py", str(inner)]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return hotspan.open(path)


def claims(found: Diff) -> list[str]:
    """The rows that are said to differ."""
    return [row.name for row in [found.total, *found.rows] if row.verdict in ("change", "new", "gone")]


def outcome(pairs: list[tuple[hotspan.Trace, hotspan.Trace]], slower: list[hotspan.Trace]) -> list[str]:
    """How often the comparison was right."""
    wrong = [claims(compare([one], [other])) for one, other in pairs]
    lines = [f"equal runs: {sum(map(bool, wrong))} of {len(pairs)} pairs with a claim (aim: at most 5 %)"]
    lines += [f"  a claim about {', '.join(rows)}" for rows in wrong if rows]

    beside = [one for one, _ in pairs][: len(slower)]
    alone = [claims(compare([one], [other])) for one, other in zip(beside, slower, strict=True)]
    lines += said("one recording a side", alone)
    starts = range(0, len(slower) - TOGETHER + 1, TOGETHER)
    threes = [slice(start, start + TOGETHER) for start in starts]
    lines += said(f"{TOGETHER} recordings a side", [claims(compare(beside[of], slower[of])) for of in threes])
    return lines


def said(sides: str, found: list[list[str]]) -> list[str]:
    """How often the slower operator was found, and what else was claimed: the step holds it and may differ too."""
    right = sum(CHANGED in rows for rows in found)
    others = sum(any(name not in (CHANGED, "step") for name in rows) for rows in found)
    return [
        f"{CHANGED} slower by a fifth, {sides}: found in {right} of {len(found)}, other claims in {others}"
    ]


def main() -> None:
    """Record, compare, and say how often it was right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--slower", type=int, default=6, help="recordings of the slower program")
    parser.add_argument("--load", type=int, default=2, help="processes that keep processors busy")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the recordings there, or use those")
    parser.add_argument("--write", action="store_true", help="write a section of bench/RESULTS.md")
    options = parser.parse_args()
    if options.slower > options.pairs:
        parser.error("--slower: each is recorded beside a pair, so there are as many pairs at least")
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.load)]
    pairs, slower, loads = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = options.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "program.py").write_text(PROGRAM.replace("STEPS", str(STEPS)))
        try:
            for number in range(options.pairs):
                one, other = (record(folder, f"equal{number}{side}", 1000) for side in "ab")
                pairs.append((one, other))
                if number < options.slower:
                    slower.append(record(folder, f"slower{number}", 1200))
                loads.append(os.getloadavg()[0])
        finally:
            for process in busy:
                process.kill()
        cores = len(os.sched_getaffinity(0))
        lines = [
            f"{STEPS} steps a recording; a load of {min(loads):.1f} to {max(loads):.1f} on {cores} cores"
        ]
        lines += outcome(pairs, slower)
    print("\n".join(lines))
    if options.write:
        results.write_lines("diff: claims about equal runs, and an operator slower by a fifth", lines)


if __name__ == "__main__":
    main()
