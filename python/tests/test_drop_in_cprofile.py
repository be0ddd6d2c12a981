"""What CPython's own tests of cProfile look at, and programs rely on: names, wording, widths, identity, the end."""

from __future__ import annotations

import io
import os
import pstats
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpreters import interpreters

PROFILE_FUNCTIONS = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="from 3.12 on, profilers have events of their own"
)


@pytest.fixture
def cprofile() -> Iterator[Any]:
    import hotspan.cprofile

    yield hotspan.cprofile
    assert sys.getprofile() is None


@PROFILE_FUNCTIONS
def test_the_profiler_is_the_profile_function_of_its_thread(cprofile: Any) -> None:
    profiler = cprofile.Profile()
    elsewhere: list[Any] = []
    profiler.enable()
    try:
        assert sys.getprofile() is profiler
        thread = threading.Thread(target=lambda: elsewhere.append(sys.getprofile()))
        thread.start()
        thread.join()
        profiler.clear()
        assert sys.getprofile() is profiler
    finally:
        profiler.disable()
    assert elsewhere != [profiler]
    with profiler:
        assert sys.getprofile() is profiler


@PROFILE_FUNCTIONS
def test_threads_give_the_profiler_back(cprofile: Any) -> None:
    profiler = cprofile.Profile()
    before = sys.getrefcount(profiler)
    for _ in range(10):
        profiler.enable()
        profiler.disable()
    assert sys.getrefcount(profiler) == before


LEFT_RUNNING = """
import sys, threading
import hotspan.cprofile as cProfile
profiler = cProfile.Profile()
if sys.argv[1] == "thread":
    started = threading.Event()
    def work():
        profiler.enable()
        started.set()
        threading.Event().wait()
    threading.Thread(target=work, daemon=True).start()
    started.wait()
else:
    profiler.enable()
if sys.argv[2] == "dropped":
    del profiler
print("done")
"""


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.14"])
@pytest.mark.parametrize("who", ["main", "thread"])
@pytest.mark.parametrize("what", ["kept", "dropped"])
def test_python_ends_well_under_a_profiler(version: str, who: str, what: str) -> None:
    python = interpreters().get(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    command = [str(python), "-X", "dev", "-c", LEFT_RUNNING, who, what]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_columns_are_as_wide_as_those_of_cprofile(cprofile: Any) -> None:
    import cProfile

    def widths(profiler: Any) -> set[int]:
        profiler.runctx("[].append(1)", {}, {})
        text = io.StringIO()
        pstats.Stats(profiler, stream=text).print_callers()
        return {line.index("<-") for line in text.getvalue().splitlines() if "<-" in line}

    assert widths(cprofile.Profile()) == widths(cProfile.Profile())


def test_a_wrong_key_is_refused_in_cprofiles_words() -> None:
    said = []
    for module in ("cProfile", "hotspan.cprofile"):
        command = [sys.executable, "-m", module, "-s", "demo"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said.append((done.returncode, "option -s: invalid choice: 'demo'" in done.stderr))
    assert said == [(2, True)] * 2


def test_labels_and_units(cprofile: Any) -> None:
    import cProfile

    code = test_labels_and_units.__code__
    for thing in (code, "<built-in method builtins.len>"):
        assert cprofile.label(thing) == cProfile.label(thing)  # type: ignore[attr-defined]
    ticks = iter(range(1000))
    profiler = cprofile.Profile(lambda: next(ticks), None)
    profiler.runcall(len, [])
    assert profiler.getstats()
