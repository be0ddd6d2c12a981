"""Hooks that are compiled here: by the launcher, before the program starts, into a folder of nobody else's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch")

import hotspan

Command = Callable[..., "subprocess.CompletedProcess[str]"]

PROGRAM = """
import json, os, sys
print("begins", file=sys.stderr)
import torch
for _ in range(10):
    torch.ones(4).add(1)
print(os.environ["HOTSPAN_HOOKS"])
print("ends", file=sys.stderr)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def cold(tmp_path: Path, **variables: str) -> dict[str, str]:
    """An environment in which no hooks are ready."""
    places = {"HOTSPAN_CACHE_DIR": str(tmp_path / "cache"), "HOTSPAN_HOOKS_DIR": str(tmp_path / "none")}
    return {**os.environ, "NO_COLOR": "1", **places, **variables}


def test_the_launcher_compiles_before_the_program_starts(
    hotspan_command: Command, program: Path, tmp_path: Path
) -> None:
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    output = tmp_path / "program.hotspan"
    result = hotspan_command("run", "-o", output, program, env=cold(tmp_path))
    assert result.returncode == 0, result.stderr
    order = [
        mark
        for line in result.stderr.splitlines()
        for mark in ("compiling the hooks for torch", "that took", "begins", "ends")
        if line.startswith(mark)
    ]
    assert order == ["compiling the hooks for torch", "that took", "begins", "ends"], result.stderr
    # The program was told which, and had nothing to look for.
    library = Path(json.loads(result.stdout)["library"])
    assert library.parent == tmp_path / "cache"
    assert library.stat().st_mode & 0o022 == 0
    rows = {row.key: row.count for row in hotspan.open(output).key_averages()}
    assert rows["aten::add"] == 10

    again = hotspan_command("run", "-o", output, program, env=cold(tmp_path))
    assert "compiling" not in again.stderr
    assert Path(json.loads(again.stdout)["library"]) == library


def test_a_cache_that_others_can_write_to_is_not_used(
    hotspan_command: Command, program: Path, tmp_path: Path
) -> None:
    """What lies there would be loaded into the program."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    result = hotspan_command("run", "-o", tmp_path / "program.hotspan", program, env=cold(tmp_path))
    assert result.returncode == 0, result.stderr
    assert "other users can write to it" in result.stderr
    assert json.loads(result.stdout).keys() == {"torch", "stamp", "reason"}
    assert list((tmp_path / "cache").iterdir()) == []
