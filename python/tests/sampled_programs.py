"""Programs to be sampled, and the Pythons to run them with."""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interpreters import VERSIONS, interpreters

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


# Dies in one thread while another waits.
DIES = """
import os, threading

class Waiter:
    def waits(self):
        arrived.release()
        threading.Event().wait()

arrived = threading.Semaphore(0)
threading.Thread(target=Waiter().waits, name="the waiter", daemon=True).start()
arrived.acquire()

def dies(number, text="hello"):
    os.abort()

dies(3)
"""


def each_python() -> list[object]:
    """A test parameter for each version; those that are not here are skipped by name."""
    parameters: list[object] = []
    for version in VERSIONS:
        python = interpreters().get(version)
        missing = pytest.mark.skip(reason=f"there is no Python {version} here")
        marks = () if python else missing
        parameters.append(pytest.param(python and Path(python), id=version, marks=marks))
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


def core_of(python: Path, folder: Path) -> Path:
    """The core file of the program, where the system writes it into the folder of the program."""
    script = folder / "program.py"
    script.write_text(DIES)
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    done = subprocess.run(
        [str(python), str(script)],
        cwd=folder,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)),
        stderr=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == -6
    found = list(folder.glob("core*"))
    if not found:
        pytest.skip("the system writes no core files here")
    return found[0]
