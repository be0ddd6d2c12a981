"""``hotspan run`` of launchers: the report is about those that work, not about the one that waits for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch.distributed")

#: Rank 1 does more than rank 0, which waits for it in every step.
TRAINING = """
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(12):
    dist.barrier()
    if rank == 1:
        for _ in range(20):
            torch.randn(300, 300) @ torch.randn(300, 300)
    loss = model(torch.randn(8, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if rank == 0:
    print("world", dist.get_world_size())
dist.destroy_process_group()
"""
BUSY = "import time\nend = time.process_time() + 1\nwhile time.process_time() < end:\n    sum(range(1000))\n"


def hotspan(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hotspan", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=environment)


def report(folder: Path, file: str) -> dict[str, Any]:
    seen = hotspan(folder, "report", file, "--json")
    assert seen.returncode == 0, seen.stderr
    return json.loads(seen.stdout)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Two ranks, recorded once, by a launcher whose environment is not activated."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "train.py").write_text(TRAINING)
    seen = hotspan(folder, "run", "torchrun", "--nproc-per-node", "2", "train.py")
    assert (seen.returncode, seen.stdout) == (0, "world 2\n"), seen.stderr
    return folder, seen.stderr


def test_the_report_begins_with_the_ranks(trained: tuple[Path, str]) -> None:
    folder, text = trained
    found = report(folder, "train.hotspan")
    ranks = found["report"]["Ranks"]
    assert [row["rank"] for row in ranks] == ["0", "1"]
    assert len({row["process"] for row in ranks}) == 2
    assert [row["steps"] for row in ranks] == [ranks[0]["steps"]] * 2
    assert ranks[0]["last"] < ranks[1]["last"], "rank 0 waits for rank 1"
    assert ranks[1]["operators"] > 0
    (reductions,) = [row for row in found["report"]["Collectives"] if row["kind"] == "allreduce"]
    assert (reductions["last"], reductions["calls"]) == ("1", 12)
    assert "waited for rank 1" in found["about"]
    assert text.index("\nRanks\n") < text.index("\nThe others waited") < text.index("\nWhere the time went")
    assert text.startswith("\ntorchrun --nproc-per-node 2 train.py: ended with exit code 0 after ")


def test_the_rest_is_about_the_slowest_rank(trained: tuple[Path, str]) -> None:
    folder, _ = trained
    found = report(folder, "train.hotspan")
    parts = {row["activity"]: row["share"] for row in found["report"]["Where the time went"]}
    assert parts.get("sleeping", 0) < 10, "the launcher sleeps"
    assert sum(parts.values()) == pytest.approx(100, abs=1)
    assert "torch operators (CPU)" in parts
    operators = {row["name"]: row["count"] for row in found["report"]["Operators that cost most"]}
    # Of this rank alone: twenty products in each of twelve steps.
    assert operators["aten::mm"] < 2 * 12 * 20
    lines = [row["line"] for row in found["report"]["Lines of the program that cost most"]]
    number = 1 + TRAINING.splitlines().index("            torch.randn(300, 300) @ torch.randn(300, 300)")
    assert f"train.py:{number}" in lines
    assert not any("torchrun" in line for line in lines)
    assert len(found["report"]["Time by process"]) == 3


def test_ranks_of_one_file(trained: tuple[Path, str]) -> None:
    folder, _ = trained
    seen = hotspan(folder, "ranks", "train.hotspan", "--json")
    ranks = json.loads(seen.stdout)
    text = json.dumps(ranks)
    assert '"rank": "0"' in text
    assert '"rank": "1"' in text
    shown = hotspan(folder, "ranks", "train.hotspan").stdout
    assert "allreduce" in shown
    assert "Exposed communication" not in shown, "these ranks have no device"


def test_accelerate_and_a_single_process(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    program = "import torch\nfor _ in range(300):\n    torch.randn(300, 300) @ torch.randn(300, 300)\nprint('trained')"
    (tmp_path / "train.py").write_text(program)
    seen = hotspan(tmp_path, "run", "accelerate", "launch", "--cpu", "--num_processes", "1", "train.py")
    assert seen.returncode == 0, seen.stderr
    assert "trained\n" in seen.stdout
    found = report(tmp_path, "train.hotspan")
    assert "This report is about" in found["about"]
    assert "accelerate" in found["about"]
    operators = {row["name"]: row["count"] for row in found["report"]["Operators that cost most"]}
    assert operators["aten::mm"] == 300
    assert "train.py:3" in {row["line"] for row in found["report"]["Lines of the program that cost most"]}


@pytest.mark.parametrize("launcher", ["Python", "shell"])
def test_the_one_child_that_works(launcher: str, tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(BUSY)
    if launcher == "Python":
        program = "import subprocess, sys\nsubprocess.run([sys.executable, 'work.py'], check=True)"
        (tmp_path / "start.py").write_text(program)
        seen = hotspan(tmp_path, "run", "-o", "x.hotspan", "start.py")
    else:
        (tmp_path / "start.sh").write_text(f"{sys.executable} -c pass\n{sys.executable} work.py\ntrue\n")
        seen = hotspan(tmp_path, "run", "-o", "x.hotspan", "sh", "start.sh")
    assert seen.returncode == 0, seen.stderr
    found = report(tmp_path, "x.hotspan")
    assert "(work.py), which did the work" in found["about"]
    parts = found["report"]["Where the time went"]
    assert parts[0]["activity"] == "Python code"
    assert all(
        row["line"].startswith("work.py:") for row in found["report"]["Lines of the program that cost most"]
    )


def test_a_program_that_works_itself_keeps_its_report(tmp_path: Path) -> None:
    """A pool of workers is part of the program; so is a child that is not all of its work."""
    program = BUSY + (
        "import multiprocessing, subprocess, sys\n"
        "def work(_):\n    end = time.process_time() + 0.5\n    while time.process_time() < end: pass\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(2) as pool: pool.map(work, range(4), 1)\n"
        "    subprocess.run([sys.executable, '-c', 'sum(range(10 ** 6))'])\n"
    )
    (tmp_path / "program.py").write_text(program)
    seen = hotspan(tmp_path, "run", "program.py")
    assert seen.returncode == 0, seen.stderr
    found = report(tmp_path, "program.hotspan")
    assert found["about"] is None
    assert "Ranks" not in found["report"]
