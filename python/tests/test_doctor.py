"""``hotspan doctor`` says what is there, what is missing, and what to do about it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch")


def test_everything_is_there(hotspan_command: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    result = hotspan_command("doctor")
    assert result.returncode == 0, result.stdout
    for name in ("python", "torch", "C++ compiler", "torch hooks", "CUDA"):
        assert any(line.strip().startswith(name) for line in result.stdout.splitlines()), result.stdout


def test_as_json_and_as_a_module() -> None:
    command = [sys.executable, "-m", "hotspan.doctor", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    findings = {finding["name"]: finding for finding in json.loads(result.stdout)}
    assert findings["torch hooks"]["advice"] == ""
    assert findings["torch hooks"]["found"].endswith(".so")


def test_without_a_compiler_it_says_what_to_install(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": str(tmp_path), "HOTSPAN_CACHE_DIR": str(tmp_path / "cache")}
    environment["HOTSPAN_HOOKS_DIR"] = str(tmp_path)
    environment.pop("CXX", None)
    command = [sys.executable, "-m", "hotspan.doctor"]
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 1
    assert "hint: install g++ or clang++" in result.stdout
    assert "record through torch.profiler" in result.stdout
    assert "hotspan carries no hooks for this torch: none for torch" in result.stdout


def test_help_lists_it(hotspan_command: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    assert "doctor" in hotspan_command("--help").stdout
