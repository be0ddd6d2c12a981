"""Environments with other people's libraries, one per purpose and Python, made once and kept in the user's cache.

A folder beside this file says what is in them by its ``requirements.txt``: ``real`` has the libraries of the real
programs, ``peers`` what the test suites of other profilers need, ``ray_jobs`` a Ray that takes jobs.
``python environments.py`` makes those that are missing; the tests look for them and skip what is not there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

#: The Pythons that each kind of environment is made for.
VERSIONS = {"real": ("3.11", "3.14"), "peers": ("3.11",), "ray_jobs": ("3.11",)}
#: Where all of them are kept.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hotspan"
# A Python from the head of a branch calls itself "3.14.2+", which several libraries refuse to read.
_PLAIN_VERSION = 'import sys; sys.version = sys.version.replace("+ (", " (", 1)\n'


def environment(kind: str, version: str) -> Path:
    """The interpreter of an environment, which may not be there."""
    return _folder(kind, version) / "bin" / "python"


def _requirements(kind: str) -> Path:
    return Path(__file__).parent / kind / "requirements.txt"


def _folder(kind: str, version: str) -> Path:
    """A change of the requirements makes a new environment."""
    content = hashlib.sha256(_requirements(kind).read_bytes() + _PLAIN_VERSION.encode()).hexdigest()[:12]
    return CACHE / kind / f"{version}-{content}"


def make(kind: str, version: str, python: str) -> None:
    """Make an environment, complete or not at all; older ones of its kind and version go."""
    folder = _folder(kind, version)
    if folder.exists():
        return
    for old in folder.parent.glob(f"{version}-*"):
        shutil.rmtree(old)
    uv = str(Path(sys.executable).with_name("uv"))
    print(f"installing the libraries of {kind}/requirements.txt for Python {version}", flush=True)
    unfinished = folder.with_suffix(".unfinished")
    subprocess.run(
        [uv, "venv", "--quiet", "--clear", "--relocatable", "--python", python, unfinished], check=True
    )
    install = [uv, "pip", "install", "--quiet", "--python", unfinished / "bin" / "python"]
    subprocess.run([*install, "--requirement", _requirements(kind)], check=True)
    packages = next((unfinished / "lib").glob("python*/site-packages"))
    (packages / "plain_version.pth").write_text(_PLAIN_VERSION)
    unfinished.rename(folder)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from interpreters import interpreters

    for kind, versions in VERSIONS.items():
        for wanted in versions:
            found = interpreters().get(wanted)
            if found is None:
                print(
                    f"there is no Python {wanted} here: what needs {kind}/requirements.txt is not tried on it"
                )
            else:
                make(kind, wanted, found)
