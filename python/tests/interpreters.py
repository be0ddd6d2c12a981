"""The CPythons on this machine, for tests that run programs on each of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from conftest import REPOSITORY

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")


@cache
def interpreters() -> dict[str, str]:
    """The path of an interpreter of each version that is here."""
    found = {f"{sys.version_info.major}.{sys.version_info.minor}": sys.executable}
    folders = sorted((Path.home() / ".pyenv" / "versions").glob("3.*/bin"))
    for version in VERSIONS:
        paths = [folder / f"python{version}" for folder in folders]
        paths += [Path(found) for found in [shutil.which(f"python{version}")] if found]
        for path in paths:
            if version not in found and path.exists() and answers(path, version):
                found[version] = str(path)
    return found


def answers(path: Path, version: str) -> bool:
    """Whether it starts, and is that version."""
    # hotspan is not built for interpreters without a GIL.
    question = (
        "import sys; print('%d.%d' % sys.version_info[:2], getattr(sys, '_is_gil_enabled', lambda: True)())"
    )
    asked = [str(path), "-c", question]
    told = subprocess.run(asked, capture_output=True, text=True, check=False)
    return told.stdout.split() == [version, "True"]


@pytest.fixture(scope="module", params=VERSIONS)
def interpreter(request: pytest.FixtureRequest) -> str:
    """Each interpreter that is here; the others are skipped by name."""
    path = interpreters().get(request.param)
    if path is None:
        pytest.skip(f"there is no Python {request.param} here")
    return path


def environment() -> dict[str, str]:
    """Variables with which any of them imports hotspan from this repository."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), "PYTHONDONTWRITEBYTECODE": "1"}


def run_python(path: str, *arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run an interpreter that finds this hotspan, and check its exit code."""
    command = [path, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(), timeout=60)
    assert ran.returncode == code, ran.stderr
    return ran
