"""The CPythons on this machine, for benchmarks that run in each of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

MINORS = range(10, 15)
QUESTION = "import sys; print(sys.version_info[:2] == (3, {}) and 't' not in sys.abiflags)"


def found() -> list[str]:
    """This interpreter first, then one of each other version with a GIL, on PATH or of pyenv's."""
    pythons = [sys.executable]
    for minor in MINORS:
        if minor == sys.version_info.minor:
            continue
        candidates = [shutil.which(f"python3.{minor}") or ""]
        candidates += map(str, sorted((Path.home() / ".pyenv" / "versions").glob(f"3.{minor}.*/bin/python")))
        for candidate in filter(None, candidates):
            command = [candidate, "-c", QUESTION.format(minor)]
            if subprocess.run(command, check=False, capture_output=True, text=True).stdout.strip() == "True":
                pythons.append(candidate)
                break
    return pythons


def measured(python: str, script: str, *arguments: str) -> Any:
    """What a benchmark prints as JSON when it runs in that interpreter."""
    path = os.pathsep.join(
        filter(None, [str(Path(__file__).parents[1] / "python"), os.environ.get("PYTHONPATH")])
    )
    told = subprocess.run(
        [python, script, "--json", *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    return json.loads(told.stdout.splitlines()[-1])
