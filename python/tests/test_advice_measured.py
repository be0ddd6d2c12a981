"""The gain of advice that is no processor time of a step: waits, threads, memory, collections.

Other programs on the machine only add time. So the least or the middle one of many is compared, and only its sign.
"""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

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


def test_workers_restarted() -> None:
    """Workers that stay are not started again for each epoch."""
    data = TensorDataset(torch.zeros(64, 8))
    loaders = [
        DataLoader(data, batch_size=16, num_workers=2, persistent_workers=stay) for stay in (False, True)
    ]
    epochs: list[list[float]] = [[], []]
    for _ in range(6):
        for loader, times in zip(loaders, epochs, strict=True):
            start = time.perf_counter()
            for _batch in loader:
                pass
            times.append(time.perf_counter() - start)
    # The first epoch starts them in any case.
    restarted, kept = (statistics.median(times[1:]) for times in epochs)
    assert kept < restarted


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


# Computes on two cores with as many threads as each line says. Answers with its processor time, and that of the
# cheapest step.
DIVIDED = """
import os, sys, time, torch
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
matrix, numbers = torch.randn(700, 700), torch.randn(400, 400)
step = {"product": lambda: matrix @ matrix, "exponential": lambda: numbers.exp().sum()}[sys.argv[1]]
print("ready", flush=True)
for line in sys.stdin:
    torch.set_num_threads(int(line))
    step()
    times = []
    for _ in range(15):
        start = time.process_time()
        step()
        times.append(time.process_time() - start)
    print(sum(times), min(times), flush=True)
"""


class Ranks:
    """Processes that do the same side by side."""

    def __init__(self, count: int, work: str, **variables: str) -> None:
        command = [sys.executable, "-c", DIVIDED, work]
        environment = {**os.environ, **variables}
        self.started = [
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
            )
            for _ in range(count)
        ]
        assert self._answers() == ["ready"] * count

    def _answers(self) -> list[str]:
        return [rank.stdout.readline().strip() for rank in self.started if rank.stdout is not None]

    def compute(self, threads: int) -> tuple[float, float]:
        """The processor time of all ranks, and of the cheapest step."""
        for rank in self.started:
            assert rank.stdin is not None
            rank.stdin.write(f"{threads}\n")
            rank.stdin.flush()
        times = [[float(word) for word in answer.split()] for answer in self._answers()]
        return sum(whole for whole, _ in times), min(least for _, least in times)

    def end(self) -> None:
        for rank in self.started:
            rank.communicate(timeout=60)


@pytest.mark.skipif(cores() < 2, reason="one core has one thread")
def test_thread_oversubscription_of_ranks() -> None:
    """Two ranks on two cores: with two threads each they spin while they wait for each other."""
    ranks = Ranks(2, "product")
    turns = [[ranks.compute(threads)[0] for threads in (2, 1)] for _ in range(3)]
    ranks.end()
    all_cores, shared = (statistics.median(times) for times in zip(*turns, strict=True))
    assert shared < all_cores


@pytest.mark.skipif(cores() < 2, reason="one core has one thread")
def test_thread_oversubscription_of_one_process() -> None:
    """Sixteen threads on two cores, as in a container on a large machine: all of them are woken for each operator."""
    # Threads that sleep while they wait: how long others spin depends on what else runs on the machine.
    process = Ranks(1, "exponential", OMP_WAIT_POLICY="passive")
    turns = [[process.compute(threads)[1] for threads in (16, 2)] for _ in range(3)]
    process.end()
    many, fitting = (min(times) for times in zip(*turns, strict=True))
    assert fitting < many


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
