"""The CPythons on this machine, for tests that run programs on each of them.

They are found among those of pyenv, on the PATH, and as archives in ``../shared/pythons`` beside the clone, which are
unpacked once into the user's cache. A version that ends in ``t`` is a free-threaded build.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from functools import cache
from pathlib import Path

import pytest

from conftest import REPOSITORY

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.14t", "3.15")

ARCHIVES = REPOSITORY.parent / "shared" / "pythons"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hotspan"


@cache
def interpreters() -> dict[str, str]:
    """The path of an interpreter of each version that is here."""
    own = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    found = {f"{sys.version_info.major}.{sys.version_info.minor}{own}": sys.executable}
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders = sorted((root / "versions").glob("3.*/bin"))
    for version in VERSIONS:
        paths = [folder / f"python{version}" for folder in folders]
        paths += [Path(found) for found in [shutil.which(f"python{version}")] if found]
        paths += [unpacked(path) for path in [ARCHIVES / f"python{version}.tar.xz"] if path.exists()]
        for path in paths:
            if version not in found and path.exists() and answers(path, version):
                found[version] = str(path)
    return found


def answers(path: Path, version: str) -> bool:
    """Whether it starts, and is that version."""
    question = (
        "import sys, sysconfig; "
        "print('%d.%d' % sys.version_info[:2] + 't' * bool(sysconfig.get_config_var('Py_GIL_DISABLED')))"
    )
    told = subprocess.run([path, "-c", question], capture_output=True, text=True, check=False)
    return told.stdout.strip() == version


def unpacked(archive: Path) -> Path:
    """The interpreter in an archive, which is unpacked into the cache the first time."""
    cache_folder = CACHE / "pythons"
    name = archive.name.removesuffix(".tar.xz")
    # Another archive of the same name is another Python.
    folder = cache_folder / f"{name}-{archive.stat().st_size}"
    if not folder.exists():
        cache_folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_folder) as temporary:
            with tarfile.open(archive) as content:
                content.extractall(temporary)
            try:
                (Path(temporary) / name).rename(folder)
            except OSError:
                # Another run of the tests was quicker.
                assert folder.exists()
    return folder / "bin" / "python3"


def python_or_skip(version: str) -> str:
    """The interpreter of a version; without one the test is skipped by name."""
    path = interpreters().get(version)
    if path is None:
        pytest.skip(f"there is no Python {version} here")
    return path


def importing_or_skip(version: str) -> str:
    """The interpreter of a version for which hotspan is built; without one the test is skipped by name."""
    path = python_or_skip(version)
    # One build serves all Pythons with a lock; those without have one each.
    built = REPOSITORY / "python" / "hotspan"
    if version.endswith("t") and not list(built.glob(f"_core.cpython-{version.replace('.', '')}-*.so")):
        pytest.skip(f"hotspan is not built for Python {version} here")
    return path


def torch_python_or_skip(version: str) -> str:
    """A Python of a version that has torch: in a virtual environment in the cache, made the first time.

    ``HOTSPAN_TEST_ENVS`` names another folder with environments, ``env3.14`` and so on.
    """
    base = importing_or_skip(version)
    given = os.environ.get("HOTSPAN_TEST_ENVS")
    folder = Path(given) / f"env{version}" if given else CACHE / "envs" / f"torch-{version}"
    python = folder / "bin" / "python"
    if not (folder / "pyvenv.cfg").exists():
        uv = shutil.which("uv", path=str(Path(sys.executable).parent))
        if uv is None or given:
            pytest.skip(f"there is no Python {version} with torch here, and no uv to make one")
        # Files of packages are linked from the cache of uv: quick, and small.
        made = [[uv, "venv", "--quiet", "--python", base, folder]]
        made.append([uv, "pip", "install", "--quiet", "--python", python, "torch", "numpy"])
        for command in made:
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            if ran.returncode != 0:
                shutil.rmtree(folder, ignore_errors=True)
                pytest.skip(f"torch could not be installed for Python {version}: {ran.stderr[-300:]}")
    return str(python)


@pytest.fixture(scope="module", params=VERSIONS)
def interpreter(request: pytest.FixtureRequest) -> str:
    """Each interpreter that is here and can import hotspan; the others are skipped by name."""
    return importing_or_skip(request.param)


def environment() -> dict[str, str]:
    """Variables with which any of them imports hotspan from this repository."""
    return {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY / "python"),
        "PYTHONDONTWRITEBYTECODE": "1",
        # Free-threaded builds have an allocator that keeps for a while what was freed; tests want to see it go.
        "MIMALLOC_PURGE_DELAY": "0",
    }


def run_python(path: str, *arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run an interpreter that finds this hotspan, and check its exit code."""
    command = [path, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(), timeout=60)
    assert ran.returncode == code, ran.stderr
    return ran


if __name__ == "__main__":
    # For the Makefile: where the interpreter of a version is; nothing when it is not here.
    print(interpreters().get(sys.argv[1], ""))
