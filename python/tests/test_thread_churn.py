"""Threads by the thousand, and threads that end at the moment when the recording does: all that they did is there."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import torch

import hotspan
from hotspan.profiler import ProfilerActivity, profile

if TYPE_CHECKING:
    from pathlib import Path


def counts(recorded: profile) -> dict[str, int]:
    """Return how often each operator was called."""
    return {row.key: row.count for row in recorded.key_averages()}


def add(count: int) -> None:
    """Call an operator so many times."""
    x = torch.ones(4)
    for _ in range(count):
        torch.sigmoid(x)


def test_the_last_thread_before_the_end_is_recorded() -> None:
    """Python's ``join`` returns a moment before the thread has ended."""
    for _ in range(60):
        with profile(activities=[ProfilerActivity.CPU]) as recorded:
            thread = threading.Thread(target=add, args=(100,))
            thread.start()
            thread.join()
        assert counts(recorded)["aten::sigmoid"] == 100


def test_a_pool_that_ends_with_the_recording_loses_nothing() -> None:
    for _ in range(5):
        with profile(activities=[ProfilerActivity.CPU]) as recorded, ThreadPoolExecutor(64) as pool:
            list(pool.map(add, [200] * 128))
        assert counts(recorded)["aten::sigmoid"] == 128 * 200


_CHURN = """
import re, sys, threading, torch
from hotspan.profiler import ProfilerActivity, profile
torch.set_num_threads(1)
x = torch.ones(4)
def resident(): return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1])
def churn(count):
    for _ in range(count):
        thread = threading.Thread(target=lambda: torch.sigmoid(x))
        thread.start()
        thread.join()
with profile(activities=[ProfilerActivity.CPU]) as recorded:
    churn(500)
    before = resident()
    churn(4000)
    grown = resident() - before
assert {row.key: row.count for row in recorded.key_averages()}["aten::sigmoid"] == 4500
print(grown / 4000)
"""


def test_a_thread_that_has_ended_takes_little_memory() -> None:
    seen = subprocess.run(
        [sys.executable, "-c", _CHURN], capture_output=True, text=True, timeout=300, check=True
    )
    assert float(seen.stdout) < 4, "kilobytes a thread"


_RUN = """
import threading, torch
torch.set_num_threads(1)
x = torch.ones(4)
def work(count):
    for _ in range(count): torch.sigmoid(x)
# Each fills its first chunks: 500 threads at once would take more than there is.
for _ in range(250):
    threads = [threading.Thread(target=work, args=(500,)) for _ in range(2)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
for _ in range(9000):
    thread = threading.Thread(target=work, args=(1,))
    thread.start()
    thread.join()
work(1000)
"""


def test_nine_thousand_threads_do_not_end_a_recording(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_RUN)
    command = [sys.executable, "-m", "hotspan", "run", "program.py"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=300, check=True)
    trace = hotspan.open(tmp_path / "program.hotspan")
    called = {row.key: row.count for row in trace.key_averages()}
    assert called["aten::sigmoid"] == 500 * 500 + 9000 + 1000
    assert not any("dropped" in loss or "full" in loss for loss in trace.losses), trace.losses
