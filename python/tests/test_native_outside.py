"""Native frames of a program that runs already: merged with its Python frames, and nobody in it notices."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from sampled_programs import each_python, running

# Python, the C library, Python again; the innermost function stands or runs.
SORTING = """
import ctypes, sys, time

libc = ctypes.CDLL(None)
kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

def stays():
    print("ready", flush=True)
    INNERMOST

def compares(left, right):
    stays()
    return 0

def sorts():
    numbers = (ctypes.c_int * 4)(3, 1, 2, 0)
    libc.qsort(numbers, 4, 4, kind(compares))

sorts()
"""
STANDS = SORTING.replace("INNERMOST", "time.sleep(600)")
RUNS = SORTING.replace("INNERMOST", "\n    while True: sum(range(1000))")


def frames(dumped: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert dumped.returncode == 0, dumped.stderr
    (thread,) = json.loads(dumped.stdout)
    found: list[dict[str, Any]] = thread["frames"]
    return found


def check_order(found: list[dict[str, Any]], innermost: str) -> None:
    names = [frame["name"] for frame in found]
    libraries = [frame["filename"] for frame in found]
    compares, sorts = names.index("compares"), names.index("sorts")
    assert names[compares - 1] == "stays"
    assert names[sorts + 1 :] == ["<module>"]
    between = libraries[compares + 1 : sorts]
    assert any("/libc." in library for library in between), found
    assert any("_ctypes" in library for library in between), found
    assert any(innermost in text for text in (*names[: compares - 1], *libraries[: compares - 1])), found


@pytest.mark.parametrize("python", each_python())
@pytest.mark.parametrize(("program", "innermost"), [(STANDS, "[kernel]"), (RUNS, "python")])
def test_native_and_python_frames_are_one_stack(
    python: Path, program: str, innermost: str, hotspan_command: Any
) -> None:
    with running(program, python=python) as process:
        for _ in range(20):
            found = frames(hotspan_command("dump", "--native", "--json", "--pid", str(process.pid)))
            # Between two calls of `sum` the interpreter itself runs, which is no frame of its own.
            if found[0]["name"] != "stays":
                break
    check_order(found, innermost)


def test_a_recording_and_top_have_them_too(hotspan_command: Any, tmp_path: Path) -> None:
    with running(RUNS) as process:
        pid = str(process.pid)
        options = ["-d", "1", "-f", "raw", "-o", str(tmp_path / "x.txt")]
        recorded = hotspan_command("record", "-n", "--pid", pid, *options)
        shown = hotspan_command("top", "-n", "--pid", pid, "--once", "-d", "1")
    assert recorded.returncode == 0, recorded.stderr
    lines = [line for line in (tmp_path / "x.txt").read_text().splitlines() if "compares" in line]
    assert lines
    for line in lines:
        assert (
            line.index("sorts (") < line.index("libc.so") < line.index("compares (") < line.index("stays (")
        )
    assert shown.returncode == 0, shown.stderr
    assert "/libc." in shown.stdout


# Sends itself signals, waits in calls that a stop would interrupt, and counts both.
COUNTING = """
import ctypes, os, signal, sys, threading, time
got = failed = 0
def count(number, frame):
    global got
    got += 1
signal.signal(signal.SIGUSR1, count)
libc = ctypes.CDLL(None, use_errno=True)
epoll = libc.epoll_create(1)
events = (ctypes.c_char * 64)()
stop = threading.Event()
def waits():
    global failed
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    while not stop.is_set():
        failed += libc.epoll_wait(epoll, events, 1, 50) != 0
waiting = threading.Thread(target=waits)
waiting.start()
print("ready", flush=True)
sent = 0
end = time.monotonic() + 3
while time.monotonic() < end:
    os.kill(os.getpid(), signal.SIGUSR1)
    sent += 1
    sum(range(2000))
    time.sleep(0)
stop.set()
waiting.join()
print(sent == got, failed, flush=True)
"""


def test_signals_and_waits_are_as_without(hotspan_command: Any, tmp_path: Path) -> None:
    with running(COUNTING) as process:
        options = ["-n", "-i", "-r", "500", "-d", "2", "-o", str(tmp_path / "x.txt")]
        recorded = hotspan_command("record", "--pid", str(process.pid), *options)
        assert recorded.returncode == 0, recorded.stderr
        assert process.stdout is not None
        assert process.stdout.readline().split() == ["True", "0"]
        assert process.wait(timeout=60) == 0


def state(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0]


def tracer(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("TracerPid:")))


def test_whoever_ends_the_recording_leaves_the_program_alone(tmp_path: Path, hotspan_command: Any) -> None:
    program = Path(hotspan_command.__closure__[0].cell_contents)
    with running(RUNS) as process:
        command = [str(program), "record", "-n", "-r", "1000", "-o", str(tmp_path / "x.txt")]
        for _ in range(5):
            recorder = subprocess.Popen([*command, "--pid", str(process.pid)], stderr=subprocess.DEVNULL)
            time.sleep(0.5)
            recorder.kill()
            recorder.wait()
            assert tracer(process.pid) == 0
            assert state(process.pid) == "R"


def test_a_stopped_program_is_shown_and_stays_stopped(hotspan_command: Any) -> None:
    with running(RUNS) as process:
        os.kill(process.pid, signal.SIGSTOP)
        while state(process.pid) != "T":
            time.sleep(0.01)
        for _ in range(3):
            check_order(frames(hotspan_command("dump", "-n", "-j", "--pid", str(process.pid))), "")
            assert state(process.pid) == "T"
        os.kill(process.pid, signal.SIGCONT)
        while state(process.pid) == "T":
            time.sleep(0.01)
        check_order(frames(hotspan_command("dump", "-n", "-j", "--pid", str(process.pid))), "")


def test_a_program_that_a_debugger_has_shows_what_can_be_read(hotspan_command: Any) -> None:
    seize, detach, interrupt = 0x4206, 17, 0x4207
    libc = ctypes.CDLL(None, use_errno=True)
    with running(RUNS) as process:
        assert libc.ptrace(seize, process.pid, None, None) == 0, os.strerror(ctypes.get_errno())
        found = frames(hotspan_command("dump", "-n", "-j", "--pid", str(process.pid)))
        assert [frame["name"] for frame in found] == ["stays", "compares", "sorts", "<module>"]
        libc.ptrace(interrupt, process.pid, None, None)
        os.waitpid(process.pid, 0)
        libc.ptrace(detach, process.pid, None, None)
