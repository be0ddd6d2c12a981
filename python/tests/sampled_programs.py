"""Programs to be sampled, and the Pythons to run them with."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

MINORS = range(8, 15)

# Every thread stands where its function says; the last line of output tells that all have arrived.
STANDING = """
import asyncio, sys, threading, time

gate = threading.Lock()
gate.acquire()
arrived = threading.Semaphore(0)

class Worker:
    def sleeps(self):
        arrived.release()
        time.sleep(600)

    def waits(self):
        arrived.release()
        gate.acquire()

def numbers():
    arrived.release()
    time.sleep(600)
    yield 1

def generates():
    for number in numbers():
        print(number)

def recurses(depth):
    if depth == 0:
        arrived.release()
        time.sleep(600)
    else:
        recurses(depth - 1)

async def inner():
    arrived.release()
    time.sleep(600)

async def outer():
    await inner()

def reads():
    arrived.release()
    sys.stdin.buffer.raw.read(1)

targets = [Worker().sleeps, Worker().waits, generates, lambda: recurses(300), lambda: asyncio.run(outer()), reads]
names = ["sleeps", "waits", "generates", "recurses", "coroutine", "reads"]
for name, target in zip(names, targets):
    threading.Thread(target=target, name=name, daemon=True).start()

def spins(label):
    total = 0
    while True:
        total += 1

for _ in targets:
    arrived.acquire()
time.sleep(0.05)
print("ready", flush=True)
spins("the label")
"""

# 30, 50 and 20 percent of its own processor time, in turns of 10 ms. At the end it tells how long each took by the
# clock, waiting for a processor included, which on a busy machine is something else: what samples must agree with.
SHARES = """
import json, sys, time

took = {"thirty": 0.0, "fifty": 0.0, "twenty": 0.0}

def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

def thirty():
    spin(0.003)

def fifty():
    spin(0.005)

def twenty():
    spin(0.002)

print("ready", flush=True)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for part in (thirty, fifty, twenty):
        begun = time.perf_counter()
        part()
        took[part.__name__] += time.perf_counter() - begun
print(json.dumps(took))
"""


def python_of(minor: int) -> Path | None:
    """A CPython 3.`minor` of this machine, on the PATH or among those of pyenv."""
    if sys.version_info[:2] == (3, minor):
        return Path(sys.executable)
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = sorted(home.glob(f"versions/3.{minor}.*/bin/python3"))
    if found := shutil.which(f"python3.{minor}"):
        candidates.append(Path(found))
    for candidate in candidates:
        told = subprocess.run([candidate, "--version"], capture_output=True, text=True, check=False)
        if told.returncode == 0 and told.stdout.startswith(f"Python 3.{minor}."):
            return candidate
    return None


def each_python() -> list[object]:
    """A test parameter for each version; those that are not here are skipped by name."""
    parameters: list[object] = []
    for minor in MINORS:
        python = python_of(minor)
        missing = pytest.mark.skip(reason=f"there is no Python 3.{minor} here")
        parameters.append(pytest.param(python, id=f"3.{minor}", marks=() if python else missing))
    return parameters


@contextlib.contextmanager
def running(program: str, *arguments: str, python: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """Runs a program for as long as the block lasts; it is ready when the block begins."""
    command = [str(python or sys.executable), "-c", program, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        yield process
    finally:
        process.kill()
        process.communicate()
