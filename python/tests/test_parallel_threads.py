"""Threads that run Python code side by side, as free-threaded builds let them: counts are exact, and nothing breaks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import hotspan
from hotspan import _core
from interpreters import environment, importing_or_skip, interpreter, run_python

__all__ = ["interpreter"]

# Eight threads that begin together. On a build with a lock they take turns, and the counts are the same.
TOGETHER = """
import threading

def together(target, count=8):
    barrier = threading.Barrier(count)
    failures = []
    def begin(number):
        barrier.wait()
        try:
            target(number)
        except BaseException as error:
            failures.append(error)
    threads = [threading.Thread(target=begin, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
"""


def told(python: str, program: str) -> object:
    return eval(run_python(python, "-c", TOGETHER + program).stdout)


@pytest.fixture(scope="module")
def free_threaded() -> str:
    """A Python without a GIL."""
    return importing_or_skip("3.14t")


def test_calls_of_threads_are_all_counted(interpreter: str) -> None:
    program = """
import hotspan.cprofile

def leaf(number):
    return abs(number)

def branch(number):
    return leaf(number) + leaf(-number)

def work(_):
    for number in range(5_000):
        branch(number)

profile = hotspan.cprofile.Profile()
profile.enable()
together(work)
profile.disable()
profile.create_stats()
calls = {name: row[1] for (_, _, name), row in profile.stats.items()}
callers = {name: [row[0] for row in rows[4].values()] for (_, _, name), rows in profile.stats.items()}
print(([calls[name] for name in ("leaf", "branch", "work")], callers["leaf"]))
"""
    assert told(interpreter, program) == ([80_000, 40_000, 8], [80_000])


def test_lines_of_threads_are_all_counted(interpreter: str, tmp_path: Path) -> None:
    (tmp_path / "watched.py").write_text(
        "def down(n):\n    if n == 0:\n        return 0\n    return down(n - 1)\n\n"
        "def work(_):\n    total = 0\n    for number in range(20_000):\n        total += number\n    return down(3)\n"
    )
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import watched, hotspan.lines
recorder = hotspan.lines.LineProfiler(watched.work, watched.down)
# Before 3.12 threads are watched from their beginning on.
recorder.enable()
together(watched.work)
recorder.disable()
from hotspan import _core
rows = {{row[2]: {{line: hits for line, hits, *_ in row[3]}} for row in _core.line_rows(recorder._recorder.snapshot())}}
print(rows)
"""
    rows = told(interpreter, program)
    assert rows == {
        "work": {7: 8, 8: 8 * 20_001, 9: 160_000, 10: 8},
        "down": {2: 32, 3: 8, 4: 24},
    }


def test_switching_while_threads_call(free_threaded: str) -> None:
    # One thread starts and stops, the others call, begin and end: no crash, and what a session saw adds up.
    program = """
import hotspan.cprofile, threading, time

def leaf(number):
    return abs(number)

def work():
    for number in range(300):
        leaf(number)

ended = threading.Event()
def churn(number):
    if number == 0:
        profile = hotspan.cprofile.Profile()
        for _ in range(60):
            profile.enable()
            work()
            profile.disable()
            profile.create_stats()
            rows = {name: row for (_, _, name), row in profile.stats.items()}
            assert rows["leaf"][1] >= 300
            # What called it is what it was called by.
            callers = rows["leaf"][4]
            assert sum(row[0] for row in callers.values()) <= rows["leaf"][1]
            profile.clear()
        ended.set()
    while not ended.is_set():
        if number % 2:
            work()
        else:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()

together(churn)
print("done")
"""
    assert run_python(free_threaded, "-c", TOGETHER + program).stdout == "done\n"


def test_profilers_that_start_at_once(free_threaded: str) -> None:
    # One gets it and the others are refused, each time.
    program = """
import hotspan.cprofile

refused, begun = [], []
def start(number):
    for _ in range(30):
        profile = hotspan.cprofile.Profile()
        try:
            profile.enable()
        except ValueError:
            refused.append(number)
        else:
            begun.append(number)
            profile.disable()

together(start)
print(len(refused) + len(begun), len(begun) > 0)
profile = hotspan.cprofile.Profile()
profile.enable()
profile.disable()
"""
    assert run_python(free_threaded, "-c", TOGETHER + program).stdout == "240 True\n"


def test_recorders_of_lines_come_and_go(free_threaded: str, tmp_path: Path) -> None:
    (tmp_path / "watched.py").write_text(
        "\n".join(f"def work_{number}(n):\n    for i in range(n):\n        n += i\n" for number in range(8))
    )
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import watched, hotspan.lines
from hotspan import _core

def record(number):
    function = getattr(watched, f"work_{{number}}")
    for _ in range(25):
        recorder = hotspan.lines.LineProfiler(function)
        recorder.enable()
        function(20)
        recorder.disable()
        ((*_, rows),) = _core.line_rows(recorder._recorder.snapshot())
        assert [hits for _, hits, *_ in rows] == [21, 20], rows

together(record)
print("done")
"""
    assert run_python(free_threaded, "-c", TOGETHER + program).stdout == "done\n"


def test_children_that_are_forked_while_threads_run(free_threaded: str) -> None:
    program = """
import os, threading, hotspan.cprofile, hotspan.lines

def work(n=50):
    for number in range(n):
        abs(number)

recorder = hotspan.lines.LineProfiler(work)
recorder.enable()
profile = hotspan.cprofile.Profile()
profile.enable()
ended = threading.Event()
def spin():
    while not ended.is_set():
        work()
threads = [threading.Thread(target=spin) for _ in range(3)]
for thread in threads:
    thread.start()
codes = []
for _ in range(30):
    child = os.fork()
    if child == 0:
        work()
        os._exit(7)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
ended.set()
for thread in threads:
    thread.join()
profile.disable()
recorder.disable()
print(set(codes))
"""
    ran = run_python(free_threaded, "-W", "ignore", "-c", program)
    assert ran.stdout == "{7}\n"


def test_the_lock_stays_off(free_threaded: str, tmp_path: Path) -> None:
    modules = (
        "hotspan.cprofile, hotspan.lines, hotspan.memory, hotspan.sampling, hotspan.trace, hotspan._agent"
    )
    code = f"import sys, {modules}; print(sys._is_gil_enabled())"
    assert run_python(free_threaded, "-W", "error", "-c", code).stdout == "False\n"
    (tmp_path / "program.py").write_text(
        TOGETHER
        + """
import sys
def work(number):
    for _ in range(20_000):
        number = inner(number)
def inner(number):
    return number + 1
together(work)
print(sys._is_gil_enabled())
"""
    )
    command = [free_threaded, "-W", "error", "-m", "hotspan", "run", "-o", "out.hotspan", "--functions"]
    command += ["--lines", "program.py:work", "--rate", "1000", "program.py"]
    ran = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=60, env=environment(), check=False
    )
    assert (ran.returncode, ran.stdout.splitlines()[:1]) == (0, ["False"]), ran.stderr
    trace = hotspan.open(tmp_path / "out.hotspan")._core
    stats = {key[2]: value[1] for key, value in _core.function_stats(trace).items()}
    assert (stats["work"], stats["inner"]) == (8, 160_000)
    ((*_, rows),) = _core.line_rows(trace)
    assert [hits for _, hits, *_ in rows] == [8 * 20_001, 160_000]
    # Threads that run side by side are sampled each on its own lines, not on those of their neighbour's copy.
    frames = [
        (name, line)
        for *_, stack in _core.sample_stacks(trace)
        for name, file, line, kind in stack
        if kind == "python" and file.endswith("program.py")
    ]
    source = (tmp_path / "program.py").read_text().splitlines()
    expected = {"work": {"def work", "for _ in", "number ="}, "inner": {"def inne", "return n"}}
    for name, line in frames:
        assert source[line - 1].strip()[:8] in expected.get(name, {source[line - 1].strip()[:8]})
    assert {"work", "inner"} & {name for name, _ in frames}
