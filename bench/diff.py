"""How often `hotspan diff` is wrong: pairs of equal runs on a busy machine, and an operator made slower by a fifth.

    python bench/diff.py [--pairs 20] [--load 2]

Records one program many times while other processes keep the processors busy. Neighbouring recordings are pairs of
equal runs: any claimed change is false. Then it compares them, alone and three at a time, with recordings in which one
product is larger by a fifth.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import hotspan
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
for _ in range(60):
    optimizer.zero_grad()
    torch.baddbmm(start, left, right).sum()
    torch.nn.functional.cross_entropy(model(pictures), labels).backward()
    optimizer.step()
"""
CHANGED = "aten::baddbmm"


def record(folder: Path, name: str, inner: int) -> hotspan.Trace:
    """Run the program once."""
    path = folder / f"{name}.hotspan"
    command = [sys.executable, "-m", "hotspan", "run", "-o", str(path), "program.py", str(inner)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return hotspan.open(path)


def claims(found: Diff) -> list[str]:
    """The rows that are said to differ."""
    return [row.name for row in [found.total, *found.rows] if row.verdict in ("change", "new", "gone")]


def main() -> None:
    """Record, compare, and say how often it was right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--load", type=int, default=2, help="processes that keep processors busy")
    options = parser.parse_args()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.load)]
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "program.py").write_text(PROGRAM)
            equal = [record(folder, f"equal{number}", 1000) for number in range(options.pairs + 1)]
            slower = [record(folder, f"slower{number}", 1200) for number in range(6)]
    finally:
        for process in busy:
            process.kill()
    pairs = list(pairwise(equal))
    wrong = [claims(compare([one], [other])) for one, other in pairs]
    print(
        f"equal runs: {sum(map(bool, wrong))} of {len(pairs)} pairs with a claim",
        [row for row in wrong if row],
    )
    alone = [claims(compare([one], [other])) for one, other in zip(equal, slower, strict=False)]
    print(
        f"{CHANGED} slower by a fifth: found in {sum(CHANGED in row for row in alone)} of {len(alone)} pairs"
    )
    together = [claims(compare(equal[at : at + 3], slower[at : at + 3])) for at in (0, 3)]
    found = sum(CHANGED in row for row in together)
    others = sum(any(name != CHANGED for name in row) for row in together)
    print(f"three recordings a side: found in {found} of {len(together)}, other claims in {others}")


if __name__ == "__main__":
    main()
