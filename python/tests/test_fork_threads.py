"""Forks of a recorded program: it forks without our threads, so Python warns about the program's own only."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hotspan import _core
from interpreters import environment, python_or_skip

PROGRAM = """
    import multiprocessing, os, sys, threading, time, warnings

    def burn(seconds):
        end = time.thread_time() + seconds
        while time.thread_time() < end: pass

    def child():
        burn(0.1)

    def after():
        burn(0.3)

    stop = threading.Event()
    own = [threading.Thread(target=stop.wait) for _ in range(int(sys.argv[1]))]
    for thread in own: thread.start()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(10):
            process = os.fork()
            if process == 0: os._exit(3)
            print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
            burn(0.01)
        worker = multiprocessing.get_context("fork").Process(target=child)
        worker.start()
        worker.join()
        print(worker.exitcode)
    print(len([warning for warning in seen if "multi-threaded" in str(warning.message)]))
    stop.set()
    after()
"""


@pytest.mark.parametrize("threads", [0, 1])
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14", "3.15"])
def test_a_fork_warns_as_without_hotspan(version: str, threads: int, tmp_path: Path) -> None:
    python = python_or_skip(version)
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    command = [python, "program.py", str(threads)]
    recorder = [sys.executable, "-m", "hotspan", "run", "-o", "x.hotspan", "--"]
    bare, recorded = (
        subprocess.run(
            [*before, *command],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        for before in ([], recorder)
    )
    assert (recorded.returncode, recorded.stdout) == (bare.returncode, bare.stdout), recorded.stderr
    warned = 11 if threads and version != "3.11" else 0
    assert bare.stdout.splitlines() == ["3"] * 10 + ["0", str(warned)]
    # The parent goes on to be sampled, and children are.
    rows = _core.sample_stacks(_core.open(str(tmp_path / "x.hotspan")))
    functions = [{frame[0] for frame in row[5]} for row in rows if row[3] == "running"]
    assert sum("after" in names for names in functions) > 3
    assert sum("child" in names for names in functions) > 1


def test_threads_that_fork_at_the_same_time_are_left_alone(tmp_path: Path) -> None:
    program = """
        import os, threading
        codes = []
        def forks():
            for _ in range(15):
                process = os.fork()
                if process == 0: os._exit(3)
                codes.append(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
        threads = [threading.Thread(target=forks) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(codes == [3] * 60)
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    command = [sys.executable, "-m", "hotspan", "run", "-o", "x.hotspan", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
