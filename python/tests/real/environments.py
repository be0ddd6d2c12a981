"""Environments with the libraries of the real programs, one per Python, made once and kept in the user's cache.

``python real/environments.py`` makes those that are missing; the tests look for them and skip what is not there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

#: The Pythons that real programs are tried on.
VERSIONS = ("3.11", "3.14")
_REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hotspan" / "real"
# A Python from the head of a branch calls itself "3.14.2+", which several libraries refuse to read.
_PLAIN_VERSION = 'import sys; sys.version = sys.version.replace("+ (", " (", 1)\n'


def environment(version: str) -> Path:
    """The interpreter of a version's environment, which may not be there."""
    return _folder(version) / "bin" / "python"


def _folder(version: str) -> Path:
    """A change of the requirements makes a new environment."""
    content = hashlib.sha256(_REQUIREMENTS.read_bytes() + _PLAIN_VERSION.encode()).hexdigest()[:12]
    return _CACHE / f"{version}-{content}"


def make(version: str, python: str) -> None:
    """Make the environment of a version, complete or not at all; older ones of it go."""
    folder = _folder(version)
    if folder.exists():
        return
    for old in _CACHE.glob(f"{version}-*"):
        shutil.rmtree(old)
    uv = str(Path(sys.executable).with_name("uv"))
    print(f"installing the libraries of the real programs for Python {version}", flush=True)
    unfinished = folder.with_suffix(".unfinished")
    subprocess.run(
        [uv, "venv", "--quiet", "--clear", "--relocatable", "--python", python, unfinished], check=True
    )
    install = [uv, "pip", "install", "--quiet", "--python", unfinished / "bin" / "python"]
    subprocess.run([*install, "--requirement", _REQUIREMENTS], check=True)
    packages = next((unfinished / "lib").glob("python*/site-packages"))
    (packages / "plain_version.pth").write_text(_PLAIN_VERSION)
    unfinished.rename(folder)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from interpreters import interpreters

    for wanted in VERSIONS:
        found = interpreters().get(wanted)
        if found is None:
            print(f"there is no Python {wanted} here: the real programs are not tried on it")
        else:
            make(wanted, found)
