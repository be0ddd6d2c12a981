"""The test suites of other profilers, run with hotspan in the place of the profiler they test.

A suite's source is fetched from the registry and unpacked in the user's cache; nothing of it is in this repository.
``place/<suite>`` comes first on its path: modules with the peer's names that are hotspan's, and a ``conftest.py`` for
tests that pytest does not find by itself. ``expected/<suite>.txt`` lists the tests that differ, one on a line:
``test: reason``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

from environments import CACHE

FOLDER = Path(__file__).resolve().parent
PACKAGE = FOLDER.parents[1]


@dataclass(frozen=True)
class Suite:
    """A peer's tests, and where they come from."""

    name: str
    #: What pip or cargo call the source, ``name==1.0`` or ``name@1.0``; None for tests that come with Python.
    source: str | None
    #: Files and folders of tests inside the source, or names of modules of the standard library.
    tests: tuple[str, ...]

    def fetch(self) -> Path:
        """The folder of the source, which is downloaded once."""
        if self.source is None:
            return Path(os.__file__).parent
        if "@" in self.source:
            return _crate(self.source)
        kept = CACHE / "peers" / "sources" / self.source
        if not kept.exists():
            unfinished = kept.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            command = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--no-binary",
                ":all:",
            ]
            subprocess.run([*command, self.source, "--dest", str(unfinished)], check=True)
            archive = next(unfinished.glob("*.tar.gz"))
            with tarfile.open(archive) as content:
                content.extractall(unfinished, filter="data")
            archive.unlink()
            unfinished.rename(kept)
        return next(path for path in kept.iterdir() if path.is_dir())

    def run(self, python: Path, folder: Path) -> dict[str, str]:
        """Runs the suite on a copy of its tests in a folder; the first line of what went wrong for each test, or ""."""
        source = self.fetch()
        for name in self.tests:
            copy = shutil.copytree if (source / name).is_dir() else shutil.copy
            copy(source / name, folder / Path(name).name)
        settings = FOLDER / "place" / self.name / "conftest.py"
        if settings.exists():
            shutil.copy(settings, folder)
        results = folder / "results.xml"
        place = [str(FOLDER / "place" / self.name), str(PACKAGE)]
        # The peer's commands, and the Python that they start.
        commands = [str(FOLDER / "place" / self.name / "bin"), str(python.parent), os.environ.get("PATH", "")]
        environment = {
            **os.environ,
            "PATH": os.pathsep.join(commands),
            "PYTHONPATH": os.pathsep.join(place),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder)]
        options = ["--timeout", "120", "--continue-on-collection-errors", f"--junitxml={results}"]
        options += [Path(name).name for name in self.tests]
        done = subprocess.run(
            [*command, *options], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert results.exists(), done.stdout + done.stderr
        return outcomes(results)

    def expected(self) -> dict[str, str]:
        """The tests that are known to differ, with the reason for each."""
        lines = (FOLDER / "expected" / f"{self.name}.txt").read_text().splitlines()
        listed = [line for line in lines if line and not line.startswith("#")]
        # The parameters of a test may hold a colon too.
        parts = [re.fullmatch(r"([^\[:]*(?:\[.*\])?): (.+)", line) for line in listed]
        assert None not in parts, "each line is a test and a reason"
        return {part[1]: part[2] for part in parts if part is not None}


def _crate(source: str) -> Path:
    """The folder of a crate: cargo keeps its source once it was asked about it."""
    subprocess.run(["cargo", "info", "--quiet", source], stdout=subprocess.DEVNULL, check=True)
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    return next((home / "registry" / "src").glob(f"*/{source.replace('@', '-')}"))


def outcomes(results: Path) -> dict[str, str]:
    """What went wrong in each test that was not skipped, or ""."""
    seen = {}
    for case in ElementTree.parse(results).iter("testcase"):
        if case.find("skipped") is not None:
            continue
        wrong = [*case.findall("failure"), *case.findall("error")]
        message = wrong[0].get("message", "") if wrong else ""
        name = f"{case.get('classname')}.{case.get('name')}"
        seen[name] = (message.splitlines() or ["failed"])[0] if wrong else ""
    return seen


SUITES = (
    Suite("line_profiler", "line_profiler==5.1.0", ("tests",)),
    Suite("memory_profiler", "memory_profiler==0.61.0", ("test",)),
    Suite("py_spy", "py-spy@0.4.3", ("tests/integration_test.py", "tests/scripts")),
    Suite("cpython", None, ("test/test_cprofile.py", "test/test_profile.py")),
)
