"""Hooks made for the installed torch as a release makes them, and a machine that has nothing but them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch

from hotspan import _core

TORCH = Path(torch.__file__).parent


def make(folder: Path) -> Path:
    """Make the hooks for the installed torch; returns their file."""
    return Path(_core.carry_torch_hooks(str(TORCH), str(folder)))


def copy_of_torch(hooks: Path, folder: Path) -> Path:
    """Return a torch of which there is only what hooks are chosen by, its headers copied."""
    folder.mkdir()
    shutil.copy(TORCH / "version.py", folder)
    (folder / "lib").symlink_to(TORCH / "lib")
    headers = hooks.with_suffix(".headers").read_text().splitlines()[2:]
    for header in headers:
        target = folder / "include" / header
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TORCH / "include" / header, target)
    return folder


class BareMachine:
    """No compiler, no network, no home, and nothing can be written but one folder for the results."""

    def __init__(self, folder: Path) -> None:
        self.results = folder / "results"
        self.results.mkdir()
        self.home = folder / "home"
        self.home.mkdir()
        self.home.chmod(0o555)
        self._tools = folder / "bin"
        self._tools.mkdir()
        (self._tools / "python3").symlink_to(sys.executable)

    def run(self, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the hotspan command there, in a network namespace without devices where that is allowed."""
        environment = {
            "PATH": str(self._tools),
            "HOME": str(self.home),
            "TMPDIR": str(self.home),
            **variables,
        }
        # Root writes to everything: a folder below a file cannot be made by anybody.
        if os.geteuid() == 0:
            environment["HOME"] = environment["TMPDIR"] = "/dev/null"
        for name in ("LD_LIBRARY_PATH", "PYTHONPATH"):
            if name in os.environ:
                environment[name] = os.environ[name]
        command = [sys.executable, "-m", "hotspan", *map(str, arguments)]
        return subprocess.run(
            [*_without_network(), *command],
            env=environment,
            cwd=self.results,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )


def _without_network() -> list[str]:
    unshare = shutil.which("unshare")
    if unshare is None:
        return []
    command = [unshare, "--user", "--map-current-user", "--net", "--"]
    works = subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    return command if works else []
