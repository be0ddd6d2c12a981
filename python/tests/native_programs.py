"""Programs that the sampler is tested on, as text, and what runs them on every CPython found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from conftest import REPOSITORY

# Burns processor time, not wall time: the machine may be busy with other things.
BURN = """
import time

def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(i * i for i in range(1000))
"""

# Prints the samples of a sampler called `s` as JSON.
PRINT = """
import json
print(json.dumps([x._replace(frames=[f._asdict() for f in x.frames])._asdict() for x in s.samples()]))
"""


def run(
    program: str, *arguments: str, python: Path | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program text in a fresh interpreter that can import hotspan."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), **options.pop("env", {})}
    command = [str(python or sys.executable), "-c", program, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=environment, check=False, **options
    )


def samples(program: str, *arguments: str, python: Path | None = None) -> list[dict[str, Any]]:
    """Run a program that leaves a sampler `s`, and return its samples."""
    done = run(program + PRINT, *arguments, python=python)
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return rows


def names(sample: dict[str, Any]) -> list[str]:
    """The functions of a sample, from the outermost."""
    return [frame["name"].rpartition(".")[2] for frame in reversed(sample["frames"])]


def weight(rows: list[dict[str, Any]]) -> float:
    """The seconds that samples stand for."""
    return float(sum(row["weight_ns"] for row in rows)) / 1e9
