"""Much of nothing: a gigabyte in a file of a megabyte, opened in a process that has little memory."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

LIMITED = """
import resource, sys
import hotspan
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = held + 700 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    trace = hotspan.open(sys.argv[1])
    print("opened", len(trace.spans), sorted(trace.losses))
except hotspan.TraceFormatError as error:
    print("refused", error)
"""


def open_with_little_memory(path: Path) -> str:
    """Opens a file in a process that may take 700 MB beside what the interpreter takes."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def write_repeated(path: Path, head: bytes, block: bytes, times: int, tail: bytes = b"") -> Path:
    """A gzip file of a block many times over, made without compressing it more than once."""
    packed = gzip.compress(block, compresslevel=6)
    with path.open("wb") as file:
        file.write(gzip.compress(head))
        for _ in range(times):
            file.write(packed)
        file.write(gzip.compress(tail))
    return path


BLOCK = 1 << 24
GIGABYTE = (1 << 30) // BLOCK

ENDLESS = {
    "brackets": (b"", b"["),
    "brackets as events": (b'{"traceEvents": [', b"["),
    "braces": (b'{"traceEvents": [', b"{"),
    "nested objects": (b'{"traceEvents": [', b'{"a":'),
    "one string": (b'{"traceEvents": [{"ph": "X", "name": "', b"x"),
    "quotes": (b'{"traceEvents": [{"ph": "X", "name": ', b'"'),
    "backslashes": (b'{"traceEvents": [{"ph": "X", "name": "', b"\\"),
    "one number": (b'{"traceEvents": [{"ph": "X", "ts": ', b"9"),
    "metadata": (b'{"key": "', b"x"),
    "white space": (b'{"traceEvents": [', b" "),
    "commas": (b'{"traceEvents": [', b","),
    "nested args": (b'{"traceEvents": [{"ph": "X", "args": ', b'{"a":['),
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits its own memory")
@pytest.mark.parametrize(("head", "unit"), ENDLESS.values(), ids=ENDLESS)
def test_a_gigabyte_of_the_same(tmp_path: Path, head: bytes, unit: bytes) -> None:
    block = unit * (BLOCK // len(unit))
    path = write_repeated(tmp_path / "endless.json.gz", head, block, GIGABYTE)
    answer = open_with_little_memory(path)
    assert answer.startswith("refused") or "truncated_file" in answer
    if answer.startswith("refused"):
        assert "endless.json.gz" in answer
        assert "byte" in answer


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits its own memory")
def test_a_gigabyte_of_events_that_say_nothing(tmp_path: Path) -> None:
    event = b'{"ph": "X", "name": "same", "ts": 1},'
    block = event * (BLOCK // len(event))
    answer = open_with_little_memory(
        write_repeated(tmp_path / "same.json.gz", b'{"traceEvents": [', block, 4, b"]}")
    )
    assert answer.startswith(f"opened {BLOCK // len(event) * 4} ")
    assert "missing_duration" in answer
