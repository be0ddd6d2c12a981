"""Signals to a launcher, a group or a whole job: the program gets each of them once, as without hotspan."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# Counts what reaches it until it is told the end. SIGUSR2 is that, and counted too.
COUNTS = """
import os, signal, sys, time
got = {}
def count(number, frame):
    got[number] = got.get(number, 0) + 1
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT):
    signal.signal(number, count)
if "own group" in sys.argv:
    os.setpgid(0, 0)
print("ready", os.getpid(), flush=True)
while signal.SIGUSR2 not in got:
    time.sleep(0.05)
time.sleep(0.3)
print({signal.Signals(number).name: times for number, times in sorted(got.items())}, flush=True)
"""

# Who runs the tests in the background may have them ignore signals, which programs inherit.
AS_USUAL = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""

SENT = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT, signal.SIGUSR2]


def members(group: int) -> list[int]:
    """All processes of a group, in the order in which systemd and Slurm would find them."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            found.append(int(folder.name))
    return sorted(found)


def one_by_one(launcher: int, number: int) -> None:
    for process in members(launcher):
        os.kill(process, number)


WAYS: dict[str, Callable[[int, int], None]] = {
    "the launcher alone": os.kill,
    "the group": os.killpg,
    "each process of the job": one_by_one,
}


@contextmanager
def counting_program(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The launcher in a group of its own, and the number of the program, which ends in any case."""
    (folder / "program.py").write_text(COUNTS)
    recorder = ["-m", "hotspan", "run", "-o", "x.hotspan", "program.py", *words]
    command = [sys.executable, "-c", AS_USUAL, *recorder]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    launcher = subprocess.Popen(command, cwd=folder, start_new_session=True, **pipes)  # type: ignore[call-overload]
    assert launcher.stdout is not None
    program = int(launcher.stdout.readline().split()[1])
    try:
        yield launcher, program
    finally:
        if launcher.poll() is None:
            os.kill(program, signal.SIGKILL)
            launcher.communicate()


@pytest.mark.parametrize("words", [[], ["own group"]], ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_each_signal_arrives_once(way: str, words: list[str], tmp_path: Path) -> None:
    with counting_program(tmp_path, *words) as (launcher, _):
        for number in SENT:
            WAYS[way](launcher.pid, number)
            time.sleep(0.2)  # so that no two become one
        output, errors = launcher.communicate(timeout=60)
    assert launcher.returncode == 0, errors
    assert output.startswith(str({number.name: 1 for number in sorted(SENT)})), output
    assert members(launcher.pid) == []


def test_pkill_by_the_words_of_the_launcher_reaches_the_program(tmp_path: Path) -> None:
    """The process that watches signals has the program's words, so that it does not answer to the launcher's."""
    with counting_program(tmp_path) as (launcher, program):
        children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
        words = {int(child): command_line(child) for child in children}
        assert len(words) == 2
        assert words.pop(program) == f"{sys.executable} program.py"
        assert list(words.values()) == [f"signals of {sys.executable} program.py"]
        os.kill(launcher.pid, signal.SIGUSR2)
        output, errors = launcher.communicate(timeout=60)
    assert output.startswith("{'SIGUSR2': 1}"), errors


def command_line(process: str) -> str:
    return Path(f"/proc/{process}/cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ").decode()
