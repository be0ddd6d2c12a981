"""Most of memory_profiler's tests are scripts, which its Makefile runs under the profiler; here each is one test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


class Script(pytest.Item):
    """A script that must end well under ``python -m memory_profiler``."""

    def runtest(self) -> None:
        """Run it."""
        command = [sys.executable, "-m", "memory_profiler", str(self.path)]
        done = subprocess.run(command, cwd=self.path.parent, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


class ScriptFile(pytest.File):
    """The file of a script."""

    def collect(self) -> Iterator[Script]:
        """Yield the one test."""
        yield Script.from_parent(self, name="script")


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> ScriptFile | None:
    """Take the files that have neither test cases nor tests without arguments for scripts."""
    text = module_path.read_text(encoding="utf-8")
    has_tests = "unittest" in text or "def test_memory_usage()" in text
    return None if has_tests else ScriptFile.from_parent(parent, path=module_path)
