"""A recording that is limited in size or time keeps the latest stretch, and says what it dropped."""

import subprocess
import sys
from pathlib import Path

import pytest

import hotspan

# Two processes that write spans for a while, each numbered by its name, some files of the smallest size each.
PROGRAM = """
import os, sys, time
child = os.fork()
import torch
from torch.profiler import record_function
a = torch.ones(4)
end = time.monotonic() + 8
number = 0
while time.monotonic() < end:
    with record_function(f"round {number}"):
        for _ in range(500):
            a.relu()
    number += 1
    time.sleep(0.01)
if child:
    os.waitpid(child, 0)
    print("all ran")
"""


def _run(tmp_path: Path, *options: str) -> tuple[subprocess.CompletedProcess[str], hotspan.Trace]:
    script, output = tmp_path / "program.py", tmp_path / "out.hotspan"
    script.write_text(PROGRAM)
    command = [
        sys.executable,
        "-m",
        "hotspan",
        "run",
        "--rate",
        "0",
        "-o",
        str(output),
        *options,
        str(script),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done, hotspan.open(output)


def test_the_latest_stretch_is_kept(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    done, trace = _run(tmp_path, "--max-size", "1500KB", "--max-time", "1h")
    assert (done.returncode, done.stdout) == (0, "all ran\n"), done.stderr
    assert "s are recorded: what was before was dropped" in done.stderr
    assert trace.losses["dropped_events"] > 1_000
    rounds: dict[str, list[int]] = {}
    for span in pyarrow.table(trace.spans).to_pylist():
        if span["name"].startswith("round "):
            rounds.setdefault(span["process"], []).append(int(span["name"].split()[1]))
    assert len(rounds) == 2, "both processes are there"
    for numbers in rounds.values():
        assert numbers[0] > 0, "the beginning was dropped"
        assert numbers == list(range(numbers[0], numbers[-1] + 1)), "without a gap, to the end"
    assert not list(tmp_path.glob("*.spool"))


def test_without_a_limit_all_is_kept(tmp_path: Path) -> None:
    done, trace = _run(tmp_path, "--max-size", "none")
    assert done.returncode == 0, done.stderr
    assert "are recorded: what was before" not in done.stderr
    assert not trace.losses
