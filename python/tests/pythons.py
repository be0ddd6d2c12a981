"""The CPythons on this machine that hotspan supports, for tests that run on each of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from conftest import REPOSITORY

MINORS = range(10, 15)


def find_python(minor: int) -> Path | None:
    """A CPython 3.`minor` with the GIL: this one, one on PATH, or one of pyenv's."""
    if sys.version_info[:2] == (3, minor):
        return Path(sys.executable)
    candidates = sorted((Path.home() / ".pyenv" / "versions").glob(f"3.{minor}.*/bin/python"))
    on_path = shutil.which(f"python3.{minor}")
    for candidate in [*candidates, *([Path(on_path)] if on_path else [])]:
        code = f"import sys; sys.exit(sys.version_info[:2] != (3, {minor}) or 't' in sys.abiflags)"
        if subprocess.run([candidate, "-c", code], capture_output=True, check=False).returncode == 0:
            return candidate
    return None


def environment() -> dict[str, str]:
    """Variables with which any of them imports hotspan from this repository."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
