"""The tools on every CPython: whole runs, stacks from outside beside what the interpreter says, operators of torch."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import hotspan
from hotspan import _core
from interpreters import VERSIONS, environment, importing_or_skip, torch_python_or_skip
from sampled_programs import each_python, running

# Burns processor time in a function that C calls, collects garbage, and ends with what it has counted itself.
PROGRAM = """
import gc, threading, time

calls = 0

def inner(number):
    total = 0
    for step in range(200):
        total += step * number
    return total

def burn():
    global calls
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        sorted(range(20), key=inner)
        calls += 20

def collect():
    for _ in range(3):
        kept = [[] for _ in range(50_000)]
        gc.collect()

burn()
collect()
thread = threading.Thread(target=collect, name="side")
thread.start()
thread.join()
print(calls)
"""


def run(python: str, folder: Path, program: str, *options: str) -> str:
    """Run a program under ``hotspan run``; what the program printed."""
    (folder / "program.py").write_text(program)
    command = [python, "-m", "hotspan", "run", "-o", "out.hotspan", *options, "program.py"]
    ran = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, env=environment(), check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("version", VERSIONS)
def test_a_run_has_functions_lines_and_pauses(version: str, tmp_path: Path) -> None:
    run(importing_or_skip(version), tmp_path, PROGRAM, "--rate", "1000")
    trace = hotspan.open(tmp_path / "out.hotspan")
    stacks = [
        [
            (name, line)
            for name, file, line, kind in reversed(frames)
            if kind == "python" and "program" in file
        ]
        for _, _, _, state, _, frames in _core.sample_stacks(trace._core)
        if state == "running"
    ]
    burning = [stack for stack in stacks if stack and stack[-1][0] == "inner"]
    # How many there are depends on the tick of the kernel and on who else wants the processor.
    assert len(burning) >= 20
    source = PROGRAM.splitlines()
    for stack in burning:
        assert [name for name, _ in stack] == ["<module>", "burn", "inner"]
        assert source[stack[0][1] - 1] == "burn()"
        assert source[stack[1][1] - 1].strip() == "sorted(range(20), key=inner)"
    lines = {source[stack[-1][1] - 1].strip() for stack in burning}
    assert {"total += step * number", "for step in range(200):"} & lines
    assert lines <= {line.strip() for line in source[5:10]}
    pauses = [event for event in trace.events() if event.name.startswith("gc gen")]
    assert len(pauses) >= 6


@pytest.mark.parametrize("version", VERSIONS)
def test_a_run_counts_calls_and_lines(version: str, tmp_path: Path) -> None:
    python = importing_or_skip(version)
    told = int(run(python, tmp_path, PROGRAM, "--functions", "--rate", "0"))
    trace = hotspan.open(tmp_path / "out.hotspan")
    stats = {key[2]: value[1] for key, value in _core.function_stats(trace._core).items()}
    assert (stats["inner"], stats["burn"], stats["collect"]) == (told, 1, 2)
    options = ["--lines", "program.py:inner", "--memory-lines", "--rate", "0"]
    told = int(run(python, tmp_path, PROGRAM.replace("range(200)", "range(5)"), *options))
    (row,) = _core.line_rows(hotspan.open(tmp_path / "out.hotspan")._core)
    hits = {line: count for line, count, *_ in row[3]}
    assert (hits[7], hits[9], hits[10]) == (told, 5 * told, told)


# Threads that stand still, and what the interpreter says about where they stand.
STANDING = """
import json, sys, threading, time, traceback

def waits(event, depth):
    return waits(event, depth - 1) if depth else event.wait()

def numbers(event):
    yield event.wait()

class Holder:
    def through_c(self, event):
        return list(map(lambda _: next(numbers(event)), [1]))

def stacks():
    return {
        ident: [[frame.f_code.co_name, line] for frame, line in traceback.walk_stack(top)]
        for ident, top in sys._current_frames().items()
        if ident != threading.get_ident()
    }

never = threading.Event()
targets = [(waits, (never, 20)), (waits, (never, 3)), (Holder().through_c, (never,))]
threads = [threading.Thread(target=target, args=arguments, daemon=True) for target, arguments in targets]
for thread in threads:
    thread.start()
told = stacks()
while True:
    time.sleep(0.05)
    before, told = told, stacks()
    if told == before and all("wait" in str(stack[:3]) for stack in told.values()):
        break
print("ready", flush=True)
print(json.dumps(told), flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("python", each_python())
def test_stacks_from_outside_are_those_of_the_interpreter(python: Path, hotspan_command: Any) -> None:
    with running(STANDING, python=python) as process:
        assert process.stdout is not None
        told = {int(ident): stack for ident, stack in json.loads(process.stdout.readline()).items()}
        dumped = hotspan_command("dump", "--pid", str(process.pid), "--hotspan-json")
    assert dumped.returncode == 0, dumped.stderr
    found = {
        thread["ident"]: [[frame["name"].rsplit(".", 1)[-1], frame["line"]] for frame in thread["frames"]]
        for thread in json.loads(dumped.stdout)["threads"]
        if thread["name"] != "MainThread"
    }
    assert len(told) == 3
    assert found == told


TORCH = """
import threading, torch

def add(count):
    total = torch.ones(8)
    for _ in range(count):
        total = torch.add(total, 1)

threads = [threading.Thread(target=add, args=(500,)) for _ in range(4)]
for thread in threads:
    thread.start()
for _ in range(30):
    torch.nn.functional.linear(torch.ones(4, 4), torch.ones(4, 4))
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize("version", ["3.14", "3.14t"])
def test_operators_of_torch(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = torch_python_or_skip(version)
    # Parts of torch ask for the lock; the threads of this program do without.
    monkeypatch.setenv("PYTHON_GIL", "0" if version.endswith("t") else "1")
    run(python, tmp_path, TORCH)
    rows = hotspan.open(tmp_path / "out.hotspan").key_averages()
    counts = {row.key: row.count for row in rows}
    assert (counts["aten::add"], counts["aten::linear"]) == (2_000, 30)
