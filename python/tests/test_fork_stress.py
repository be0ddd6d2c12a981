"""Forks at the worst moment: while other threads run their first operator, and take a lock of torch's for it.

``HOTSPAN_FORKS`` says how many; ``make stress`` tries two thousand.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

FORKS = int(os.environ.get("HOTSPAN_FORKS", "120"))

# Threads are born all the time, each for one operator. A child that does not end within a minute hangs.
_FORK = """
import contextlib, os, signal, sys, threading, time
import torch
torch.set_num_threads(1)
x = torch.randn(8, 8)
is_over = False
def give_birth():
    while not is_over:
        thread = threading.Thread(target=lambda: x + x)
        thread.start()
        thread.join()
parents = [threading.Thread(target=give_birth, daemon=True) for _ in range(3)]

@contextlib.contextmanager
def profiled(kind):
    if kind == "run":
        yield
        return
    from hotspan.profiler import profile, ProfilerActivity
    with profile(activities=[ProfilerActivity.CPU]):
        yield

def in_child(kind, number):
    signal.alarm(60)
    for _ in range(20): x @ x
    if kind == "profiler in the child":
        with profiled(kind):
            for _ in range(20): x @ x
    os._exit(3)

kind, count = sys.argv[1], int(sys.argv[2])
for thread in parents: thread.start()
ends = {}
with profiled("run" if kind == "profiler in the child" else kind):
    for number in range(count):
        child = os.fork()
        if child == 0:
            in_child(kind, number)
        status = os.waitpid(child, 0)[1]
        ends[status] = ends.get(status, 0) + 1
is_over = True
for thread in parents: thread.join()
print({os.waitstatus_to_exitcode(status): count for status, count in ends.items()}, flush=True)
os._exit(0)
"""

_LOAD = """
import sys, threading
import torch
from torch.utils.data import DataLoader, Dataset
torch.set_num_threads(1)
class Numbers(Dataset):
    def __len__(self): return 16
    def __getitem__(self, index): return torch.randn(4)
is_over = False
x = torch.randn(4)
def give_birth():
    while not is_over:
        threads = [threading.Thread(target=lambda: x + x) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
parent = threading.Thread(target=give_birth, daemon=True)
parent.start()
batches = 0
for epoch in range(int(sys.argv[1])):
    batches += sum(1 for _ in DataLoader(Numbers(), batch_size=4, num_workers=4, timeout=60))
is_over = True
parent.join()
print(batches, flush=True)
"""


def run(folder: Path, program: str, *words: str, hotspan: bool) -> str:
    """Run a program to its end and return what it printed."""
    (folder / "program.py").write_text(program)
    command = [sys.executable, *(("-m", "hotspan", "run") if hotspan else ()), "program.py", *words]
    seen = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300 + 3 * FORKS, check=False
    )
    assert seen.returncode == 0, seen.stderr
    return seen.stdout


@pytest.mark.parametrize("kind", ["run", "profiler", "profiler in the child"])
def test_no_forked_child_hangs(kind: str, tmp_path: Path) -> None:
    said = run(tmp_path, _FORK, kind, str(FORKS), hotspan=kind == "run")
    assert said == f"{{3: {FORKS}}}\n"


def test_no_worker_of_a_data_loader_hangs(tmp_path: Path) -> None:
    epochs = max(FORKS // 16, 1)
    assert run(tmp_path, _LOAD, str(epochs), hotspan=True) == f"{4 * epochs}\n"
