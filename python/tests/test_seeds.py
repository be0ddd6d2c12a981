"""The programs people write with torch.profiler run with their imports changed, and print the columns they expect."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hotspan
from conftest import REPOSITORY
from table_text import columns

pytest.importorskip("torch")
pytest.importorskip("torchvision")

TIMES = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
PLAIN = [*TIMES, "# of Calls"]
SHAPES = [*PLAIN, "Input Shapes"]
MEMORY = [*TIMES, "CPU Mem", "Self CPU Mem", "# of Calls"]
STACKS = [*PLAIN, "Source Location"]
FLOPS = [*PLAIN, "Total FLOPs"]

# What each program prints, and what it leaves behind.
PROGRAMS: dict[str, tuple[list[list[str]], list[str]]] = {
    "forward_pass": ([PLAIN, SHAPES, SHAPES], []),
    "time_and_memory": ([PLAIN, SHAPES, MEMORY], []),
    "autograd_interface": ([PLAIN, SHAPES, MEMORY], []),
    "labels_and_stacks": ([STACKS, STACKS], []),
    "scheduled": ([], ["*.pt.trace.json"] * 2),
    "exports": ([PLAIN], ["trace.json", "log_dir/*.pt.trace.json"]),
    "long_jobs": ([PLAIN, PLAIN, FLOPS], ["trace_6.json", "trace_10.json"]),
    "with_accelerate": (
        [PLAIN, SHAPES, MEMORY, PLAIN, PLAIN, FLOPS],
        ["trace/profile_0.json", "trace_6.json", "trace_10.json"],
    ),
}


def titles_of_tables(text: str) -> list[list[str]]:
    """The titles of each table in a program's output."""
    lines = text.splitlines()
    found = []
    for number, line in enumerate(lines[:-2]):
        # A table begins with a line of dashes, titles, and dashes again.
        if line.startswith("---") and lines[number + 2] == line:
            found.append([lines[number + 1][start:end].strip() for start, end in columns(line)])
    return found


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_a_program_runs_and_prints_its_columns(program: str, tmp_path: Path) -> None:
    if program == "with_accelerate":
        pytest.importorskip("accelerate")
    script = REPOSITORY / "examples" / "seeds" / f"{program}.py"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    result = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    tables, files = PROGRAMS[program]
    assert titles_of_tables(result.stdout) == [
        # FLOPs come in units that fit.
        titles if titles is not FLOPS else [*PLAIN, titles_of_tables(result.stdout)[-1][-1]]
        for titles in tables
    ]
    if FLOPS in tables:
        assert titles_of_tables(result.stdout)[-1][-1].endswith("FLOPs")
    for pattern in files:
        found = sorted(tmp_path.glob(pattern))
        assert len(found) == files.count(pattern), (pattern, result.stderr)
        for path in found:
            assert hotspan.open(path).counts["spans"] > 10


def test_labels_are_rows(tmp_path: Path) -> None:
    script = REPOSITORY / "examples" / "seeds" / "time_and_memory.py"
    result = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    rows = [line.split()[0] for line in result.stdout.splitlines() if line.strip()]
    assert "model_inference" in rows
    assert "aten::conv2d" in rows
