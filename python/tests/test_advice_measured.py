"""The gain of advice that is no processor time of a step: waits, threads, memory, collections.

Other programs on the machine only add time. So the least or the middle one of many is compared, and only its sign.
"""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader

from advice_programs import SlowFiles, cores, multiplying, threads


def least(measure: Callable[[], object], clock: Callable[[], float], times: int) -> float:
    """The least time of many calls."""
    best = float("inf")
    for _ in range(times):
        start = clock()
        measure()
        best = min(best, clock() - start)
    return best


def waits(workers: int) -> list[float]:
    """How long a loop that does something else for most of the time waits for each batch."""
    loader = DataLoader(SlowFiles(), batch_size=4, num_workers=workers, persistent_workers=workers > 0)
    batches: Iterator[torch.Tensor] = iter(loader)
    next(batches)
    found = []
    for _ in range(40):
        time.sleep(0.02)
        start = time.perf_counter()
        next(batches)
        found.append(time.perf_counter() - start)
    return found


def test_data_loading_bound() -> None:
    """Workers load while the loop does something else."""
    assert statistics.median(waits(2)) < statistics.median(waits(0))


@pytest.mark.skipif(cores() < 2, reason="one core has one thread")
def test_one_thread() -> None:
    """The main thread has less to do where others help it."""
    step = multiplying()
    alone, helped = float("inf"), float("inf")
    for _ in range(5):
        with threads(1):
            alone = min(alone, least(step, time.thread_time, 8))
        with threads(cores()):
            helped = min(helped, least(step, time.thread_time, 8))
    assert helped < alone


# Of a process of its own: in one that has run much else, what is kept finds room that is there already.
GROWN = """
import sys
from pathlib import Path
from advice_programs import keeping, threads

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])

with threads(1):
    step = keeping(sys.argv[1] == "True")
    step()
    before = resident()
    for _ in range(200):
        step()
    print(resident() - before)
"""


def grown(graph: bool) -> int:
    """By how many pages a program grows that keeps its losses, with their graphs or without."""
    command = [sys.executable, "-c", GROWN, str(graph)]
    folder = Path(__file__).parent
    return int(subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout)


def test_memory_growth() -> None:
    """Losses without their graphs hold no activations."""
    assert grown(graph=False) < grown(graph=True)


class Node:
    """Something that the collector has to visit."""

    def __init__(self) -> None:
        self.others = [self]


def test_garbage_collection() -> None:
    """What is frozen is not visited again."""
    held = [Node() for _ in range(100_000)]
    gc.collect()
    visited = least(gc.collect, time.process_time, 5)
    gc.freeze()
    try:
        frozen = least(gc.collect, time.process_time, 5)
    finally:
        gc.unfreeze()
        held.clear()
        gc.collect()
    assert frozen < visited
