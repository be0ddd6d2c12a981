"""Memory by line: the tables of memory_profiler, with known allocations on known lines."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hotspan.memory import MemoryProfiler, memory_usage, show_results
from interpreters import environment, interpreter

__all__ = ["interpreter"]

PROGRAM = """\
@profile
def work():
    small = 1
    large = bytearray(50 << 20)
    for i in range(3):
        small += i
    def inner(x):
        return x + 1
    inner(3)
    del large
    return small


@profile
def numbers(n):
    for i in range(n):
        yield i


work()
list(numbers(2))
work()
"""
ROW = re.compile(r"^ *(\d+) +(-?[0-9.]+) MiB +(-?[0-9.]+) MiB +(\d+)   ", re.MULTILINE)


def run(python: Path | str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [str(python), *arguments]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=60, cwd=cwd, env=environment()
    )


def table(text: str) -> dict[int, tuple[float, float, int]]:
    return {
        int(line): (float(memory), float(more), int(count)) for line, memory, more, count in ROW.findall(text)
    }


def test_known_allocations_are_on_their_lines(interpreter: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    ended = run(interpreter, "-m", "hotspan.memory", "program.py", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    rows = table(ended.stdout)
    assert rows[4][1] == pytest.approx(100, abs=2), "twice 50 MiB"
    assert rows[10][1] == pytest.approx(-100, abs=2)
    assert rows[4][0] == pytest.approx(rows[3][0] + 50, abs=3)
    counts = {line: count for line, (_, _, count) in rows.items()}
    assert counts == {1: 2, 3: 2, 4: 2, 5: 8, 6: 6, 7: 4, 8: 2, 9: 2, 10: 2, 11: 2, 14: 1, 16: 3, 17: 4}


GROWING = """\
import os

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20

@profile
def work(n):
    kept, total = [], 0
    for i in range(n):
        total += i
        kept.append(bytearray(600))
        total -= i
    grown = resident()
    kept.clear()
    return grown

before = resident()
print(work(50_000) - before, resident())
"""


def test_quick_lines_lose_no_growth(interpreter: str, tmp_path: Path) -> None:
    """Memory is not read after lines that were too quick to change it; what the others did must be all there is."""
    (tmp_path / "program.py").write_text(GROWING)
    ended = run(interpreter, "-m", "hotspan.memory", "program.py", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    said, tables = ended.stdout.split("\n", 1)
    grown, last = map(float, said.split())
    assert grown > 28, "50,000 times 600 bytes"
    rows = table(tables)
    increments = {line: more for line, (_, more, _) in rows.items()}
    assert increments[12] == pytest.approx(grown, rel=0.1)
    assert abs(increments[11]) + abs(increments[13]) < grown / 10
    assert sum(increments.values()) == pytest.approx(last, abs=2), "the first row begins with what there was"
    assert (rows[10][2], rows[11][2], rows[12][2]) == (50_001, 50_000, 50_000)


def test_the_table_is_memory_profilers(tmp_path: Path) -> None:
    pytest.importorskip("memory_profiler")
    # memory_profiler sees a generator only while another profiled function runs.
    (tmp_path / "program.py").write_text(PROGRAM.replace("list(numbers(2))\n", ""))
    theirs = run(sys.executable, "-m", "memory_profiler", "program.py", cwd=tmp_path)
    ours = run(sys.executable, "-m", "hotspan.memory", "program.py", cwd=tmp_path)
    assert theirs.returncode == ours.returncode == 0, ours.stderr

    def without_amounts(text: str) -> str:
        return re.sub(r" +-?[0-9.]+ MiB", lambda found: "?".rjust(len(found[0])), text)

    assert without_amounts(ours.stdout) == without_amounts(theirs.stdout)


DECORATED = """\
import hotspan

@hotspan.memory.profile(precision=4)
def work(size):
    block = b"x" * size
    return len(block)

assert work(40 << 20) == 40 << 20
assert work(50 << 20) == 50 << 20
"""


def test_the_decorator_prints_after_each_call(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(DECORATED)
    ended = run(sys.executable, "program.py", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    tables = ended.stdout.split("Filename: ")[1:]
    grown = [table(text)[5][1] for text in tables]
    assert grown == [pytest.approx(40, abs=1), pytest.approx(50, abs=1)]
    assert re.search(r"\d\.\d{4} MiB", tables[0])


def test_a_profiler_can_be_asked() -> None:
    def work() -> int:
        return 1

    profiler = MemoryProfiler()
    profiler(work)()
    with profiler:
        work()
    trace = profiler.trace()
    assert trace.counts["spans"] == 0
    stream = io.StringIO()
    show_results(profiler, stream)
    assert [count for _, _, count in table(stream.getvalue()).values()] == [2, 2]
    with pytest.raises(ValueError, match="no backend"):
        MemoryProfiler(backend="shark")


def test_saved_and_shown_again(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    ended = run(sys.executable, "-m", "hotspan.memory", "-o", "out.hotspan", "program.py", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    shown = run(sys.executable, "-m", "hotspan", "stats", "out.hotspan", cwd=tmp_path)
    assert table(shown.stdout)[4][1] == pytest.approx(100, abs=2), shown.stderr


USAGE = """\
import json
from hotspan.memory import memory_usage

def work(size, factor=1):
    block = b"x" * (size * factor)
    memory_usage(-1, interval=0.02, timeout=0.1)
    return len(block)

samples, value = memory_usage((work, (40 << 20,), {"factor": 2}), interval=0.01, retval=True)
highest = memory_usage((work, (40 << 20,)), interval=0.01, max_usage=True)
print(json.dumps([samples, value, highest]))
"""


def test_memory_usage_of_a_call(tmp_path: Path) -> None:
    """In a process of its own: this one may hold freed memory, which a new block then takes without growing."""
    (tmp_path / "program.py").write_text(USAGE)
    ended = run(sys.executable, "program.py", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    samples, value, highest = json.loads(ended.stdout)
    assert value == 80 << 20
    assert max(samples) - samples[0] == pytest.approx(80, abs=3)
    assert highest - samples[0] == pytest.approx(40, abs=3)


def test_memory_usage_of_a_process() -> None:
    assert len(memory_usage(-1, interval=0.01, timeout=0.05)) == 5
    child = subprocess.Popen([sys.executable, "-c", "import time; x = bytearray(30 << 20); time.sleep(0.3)"])
    with child:
        assert max(memory_usage(child, interval=0.02)) > 30
    (memory, moment), *_ = memory_usage(-1, timestamps=True)
    assert memory > 1
    assert moment > 1.7e9


def test_programs_end_as_they_would(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys\n@profile\ndef f():\n    sys.exit(9)\nf()\n")
    ended = run(sys.executable, "-m", "hotspan.memory", "script.py", cwd=tmp_path)
    assert ended.returncode == 9
    assert 4 in table(ended.stdout)
    assert run(sys.executable, "-m", "hotspan.memory", "missing.py", cwd=tmp_path).returncode == 2
    script.write_text("def f(:\n")
    ended = run(sys.executable, "-m", "hotspan.memory", "script.py", cwd=tmp_path)
    assert ended.returncode == 1
    assert "SyntaxError" in ended.stderr
