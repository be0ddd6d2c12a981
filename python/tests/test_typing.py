"""The package is typed: a program that uses it right passes mypy, one that does not is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import hotspan

RIGHT = """
import hotspan
from pathlib import Path

trace: hotspan.Trace = hotspan.open(Path("trace.json"))
averages: hotspan.EventList = trace.key_averages(group_by_input_shape=True, group_by_stack_n=5)
text: str = averages.table(sort_by="self_cpu_time_total", row_limit=10, time_unit="ms")
for row in averages:
    key: str = row.key
    calls: int = row.count
    time: float = row.self_cpu_time_total + row.device_time_total
    flops: int = row.flops
first = averages[0]
total: float = averages.total_average().cpu_time_total
spans: int = len(trace.spans)
losses: dict[str, int] = trace.losses
trace.export_chrome_trace("out.json.gz")
trace.save(Path("out.hotspan"))
kernel: int = trace.kernels()[0].total_ns
row_of_a_table: hotspan.Row = trace.copies()[0]
idle: list[int] = [gap.length_ns for gap in trace.idle()]
steps: int | None = None if (compared := trace.diff(trace).steps) is None else compared.before
held: int = trace.memory_timeline()[0].held[-1].bytes
hits: list[int] = [line.hits for lines in hotspan.LineProfiler().get_stats().timings.values() for line in lines]
hotspan.lines.profile(print)
hotspan.memory.profile(print)
try:
    hotspan.open("x")
except hotspan.TraceFormatError as error:
    base: hotspan.HotspanError = error
"""

WRONG = {
    "hotspan.open(3)": "arg-type",
    "hotspan.open('x').key_averages(group_by_input_shape='no')": "arg-type",
    "hotspan.open('x').key_averages(1, 2, 3, 4)": "misc|call-arg",
    "hotspan.open('x').no_such_thing": "attr-defined",
    "hotspan.no_such_thing": "attr-defined",
    "hotspan.open('x').kernels()[0].no_such_thing": "attr-defined",
    "hotspan.open('x').key_averages().table(sort_by=3)": "arg-type",
}


def check(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mypy")
    path = tmp_path / "snippet.py"
    path.write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)


def test_the_package_says_that_it_is_typed() -> None:
    assert hotspan.__file__ is not None
    assert Path(hotspan.__file__).with_name("py.typed").exists()


def test_right_use_passes(tmp_path: Path) -> None:
    done = check(tmp_path, RIGHT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_wrong_use_is_told(tmp_path: Path) -> None:
    done = check(tmp_path, "\n".join(["import hotspan", *WRONG]))
    assert done.returncode == 1
    told = done.stdout.splitlines()
    for number, (line, codes) in enumerate(WRONG.items(), 2):
        here = [message for message in told if message.startswith(f"snippet.py:{number}:")]
        assert any(f"[{code}]" in message for message in here for code in codes.split("|")), (line, told)
