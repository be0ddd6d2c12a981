"""Ctrl-C stops a long read, and other threads run during it."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import hotspan
from conftest import complete


@pytest.fixture(scope="module")
def huge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty million spans in a small file: one compressed block of events, many times over."""
    events = "".join(json.dumps(complete("aten::add", start, 1)) + "," for start in range(20_000))
    block = gzip.compress(events.encode(), compresslevel=1)
    path = tmp_path_factory.mktemp("huge") / "huge.json.gz"
    with path.open("wb") as file:
        file.write(gzip.compress(b'{"traceEvents": ['))
        for _ in range(2_000):
            file.write(block)
        file.write(gzip.compress(b"]}"))
    return path


CHILD = """
import sys, threading, hotspan
print("opening", flush=True)
try:
    hotspan.open(sys.argv[1])
    print("finished")
except KeyboardInterrupt:
    print("interrupted")
"""


def interrupt(command: list[str]) -> tuple[int, str, str]:
    """Starts a command, presses Ctrl-C once it is at work, and says how it ended."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        # At work: more memory than the interpreter alone takes.
        while resident_megabytes(child.pid) < 80 and child.poll() is None:
            threading.Event().wait(0.02)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
    return child.returncode, out, err


def resident_megabytes(pid: int) -> float:
    """Memory of a running process; none when it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * 4096 / 1e6


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_control_c_stops_open(huge: Path) -> None:
    code, out, err = interrupt([sys.executable, "-c", CHILD, str(huge)])
    assert out.split() == ["opening", "interrupted"], err
    assert code == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_control_c_stops_the_command(huge: Path) -> None:
    code, out, err = interrupt([str(Path(sys.executable).with_name("hotspan")), "stats", str(huge)])
    assert code in {-signal.SIGINT, 130}
    assert out == ""
    assert "Traceback" not in err


def test_other_threads_run_during_open(tmp_path: Path) -> None:
    events = ",".join(json.dumps(complete("aten::add", start, 1)) for start in range(300_000))
    path = tmp_path / "trace.json"
    path.write_text(f'{{"traceEvents": [{events}]}}')
    done = threading.Event()
    opened: list[hotspan.Trace] = []

    def work() -> None:
        opened.append(hotspan.open(path))
        opened[0].key_averages()
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    turns = 0
    # Each turn is a bytecode of this thread that ran while the other one was in Rust.
    while not done.is_set():
        turns += 1
    thread.join()
    assert len(opened[0].spans) == 300_000
    assert turns > 1_000
