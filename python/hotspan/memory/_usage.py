"""``memory_usage``: the memory of a process, or of this one while a function runs, sampled over time."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from hotspan import _core

_MEBIBYTE = float(1 << 20)


class MemoryReading(NamedTuple):
    """The memory of a process in MiB at a moment of Unix time in seconds: memory_profiler's units and order."""

    memory_mib: float
    unix_time: float


def _resident(pid: int) -> float | None:
    """Resident memory of a process in MiB; None when it is gone."""
    if pid == os.getpid():
        return _core.resident_memory() / _MEBIBYTE
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / _MEBIBYTE or None


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            direct = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        for child in direct:
            found += [child, *_children(child)]
    return found


class _Sampler:
    """Samples until told to stop, a limit is reached or the process has ended."""

    def __init__(self, pid: int, interval: float, timestamps: bool, max_usage: bool, children: bool) -> None:
        self.pid, self.interval = pid, interval
        self.timestamps, self.max_usage, self.children = timestamps, max_usage, children
        self.samples: list[MemoryReading] = []

    def sample(self) -> bool:
        """Take one; False when the process is gone."""
        memory = _resident(self.pid)
        if memory is None:
            return False
        if self.children:
            memory += sum(_resident(child) or 0.0 for child in _children(self.pid))
        reading = MemoryReading(memory, time.time())
        if self.max_usage and self.samples:
            self.samples = [max(self.samples[0], reading)]
        else:
            self.samples.append(reading)
        return True

    def result(self) -> Any:
        """What was sampled, in the form asked for."""
        shown: list[Any] = self.samples if self.timestamps else [memory for memory, _ in self.samples]
        if self.max_usage:
            return shown[0] if shown else 0.0
        return shown


def memory_usage(
    proc: Any = -1,
    interval: float = 0.1,
    timeout: float | None = None,
    timestamps: bool = False,
    include_children: bool = False,
    multiprocess: bool = False,
    max_usage: bool = False,
    retval: bool = False,
    stream: Any = None,
    backend: str | None = None,
    max_iterations: int | None = None,
) -> Any:
    """Return memory in MiB over time, with memory_profiler's arguments; ``interval`` and ``timeout`` are seconds.

    ``proc`` is a pid (-1 is this process), a running ``subprocess.Popen``, or ``(function, args, kwargs)``: the
    function is then called, and this process sampled meanwhile. ``backend`` is accepted; resident memory is what is
    measured.
    """
    del backend
    if callable(proc) or (isinstance(proc, tuple) and proc and callable(proc[0])):
        parts: tuple[Any, ...] = proc if isinstance(proc, tuple) else (proc,)
        sampler = _Sampler(os.getpid(), interval, timestamps, max_usage, include_children or multiprocess)
        called = [*parts, (), {}][:3] if len(parts) == 1 else [*parts, {}][:3]
        value = _sample_call(sampler, *called)
        result = sampler.result()
        return (result, value) if retval else result
    pid = proc.pid if isinstance(proc, subprocess.Popen) else int(proc)
    sampler = _Sampler(
        os.getpid() if pid == -1 else pid, interval, timestamps, max_usage, include_children or multiprocess
    )
    # Without a limit, this process or one that is not ours to wait for is sampled once.
    limit = max_iterations or (int(timeout / interval) if timeout else None)
    if limit is None and not isinstance(proc, subprocess.Popen):
        limit = 1
    while limit is None or limit > 0:
        if isinstance(proc, subprocess.Popen) and proc.poll() is not None:
            break
        if not sampler.sample():
            break
        if stream is not None:
            memory, now = sampler.samples[-1]
            stream.write(f"MEM {memory:.6f} {now:.4f}\n")
        limit = None if limit is None else limit - 1
        if limit is None or limit > 0:
            time.sleep(interval)
    return None if stream is not None else sampler.result()


def _sample_call(sampler: _Sampler, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call the function and sample meanwhile; before and after it too, so that a short one has two samples."""
    done = threading.Event()

    def work() -> None:
        while not done.wait(sampler.interval):
            sampler.sample()

    sampler.sample()
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        return function(*args, **kwargs)
    finally:
        done.set()
        thread.join()
        sampler.sample()
