"""The other tools on every CPython: top and record from outside, and the profilers that a program calls itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hotspan
from interpreters import VERSIONS, importing_or_skip, run_python, torch_python_or_skip
from sampled_programs import each_python, running

#: Burns processor time in one function until it is ended.
BURNING = """
def inner(number):
    total = 0
    for step in range(500):
        total += step * number
    return total

def burn():
    while True:
        inner(3)

print("ready", flush=True)
burn()
"""


@pytest.mark.parametrize("python", each_python())
def test_top_and_record_from_outside(python: Path, hotspan_command: Any, tmp_path: Path) -> None:
    with running(BURNING, python=python) as process:
        pid = str(process.pid)
        seen = hotspan_command("top", "--pid", pid, "--once", "-d", "1", "--json")
        options = ["-d", "1", "-f", "hotspan", "-o", str(tmp_path / "x.hotspan")]
        recorded = hotspan_command("record", "--pid", pid, *options)
    assert seen.returncode == 0, seen.stderr
    assert recorded.returncode == 0, recorded.stderr
    assert "inner" in seen.stdout
    assert "burn" in seen.stdout
    trace = hotspan.open(tmp_path / "x.hotspan")
    stacks = [[frame[0] for frame in row[5]] for row in hotspan._core.sample_stacks(trace._core)]
    innermost = [stack[:3] for stack in stacks if stack[0] == "inner"]
    assert innermost
    assert all(stack == ["inner", "burn", "<module>"] for stack in innermost)


#: Uses each profiler, and prints what it found beside what was done.
FROM_WITHIN = """
import io, json, pstats, sys, time
import hotspan, hotspan.cprofile, hotspan.lines

def inner(number):
    total = 0
    for step in range(5):
        total += step * number
    return total

def work(count):
    for number in range(count):
        inner(number)

def burn():
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        inner(3)

found = {}
with hotspan.sample(rate=500) as sampler:
    burn()
found["sampled"] = any({"inner", "burn"} <= {frame.name for frame in one.frames} for one in sampler.samples())
profile = hotspan.cprofile.Profile()
profile.runcall(work, 70)
profile.dump_stats("calls.prof")
counts = {name: row[1] for (_, _, name), row in pstats.Stats("calls.prof", stream=io.StringIO()).stats.items()}
found["calls"] = [counts["work"], counts["inner"]]
lines = hotspan.lines.LineProfiler(inner)
lines.runcall(work, 40)
(timings,) = lines.get_stats().timings.values()
found["hits"] = [hits for _, hits, _ in timings]
print(json.dumps(found))
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_profilers_from_within(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = importing_or_skip(version)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(FROM_WITHIN)
    found = json.loads(run_python(python, "program.py").stdout)
    assert found == {"sampled": True, "calls": [1, 70], "hits": [40, 240, 200, 40]}


TORCH = """
import json, torch, hotspan.profiler

with hotspan.profiler.profile() as profile:
    total = torch.ones(8)
    for _ in range(300):
        total = torch.add(total, 1)
print(json.dumps({row.key: row.count for row in profile.key_averages()}["aten::add"]))
"""


# An environment with torch takes gigabytes: the newest, with a lock and without.
@pytest.mark.parametrize("version", ["3.14", "3.14t"])
def test_the_profiler_of_operators(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = torch_python_or_skip(version)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(TORCH)
    assert json.loads(run_python(python, "program.py").stdout) == 300
