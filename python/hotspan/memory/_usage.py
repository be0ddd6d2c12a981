"""``memory_usage``: the memory of a process, or of this one while a function runs, sampled over time."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from hotspan.memory._readings import children_of, choose_backend, memory_of


class MemoryReading(NamedTuple):
    """The memory of a process in MiB at a moment of Unix time in seconds: memory_profiler's units and order."""

    memory_mib: float
    unix_time: float


class _Sampler:
    """Samples until told to stop, a limit is reached or the process has ended."""

    def __init__(
        self,
        pid: int,
        interval: float,
        timestamps: bool,
        max_usage: bool,
        include_children: bool,
        backend: str,
        apart: bool = False,
        stream: Any = None,
    ) -> None:
        self.pid, self.interval, self.backend = pid, interval, backend
        self.timestamps, self.max_usage, self.include_children = timestamps, max_usage, include_children
        self.apart, self.stream = apart, stream
        self.samples: list[Any] = []

    def sample(self) -> bool:
        """Take one; False when the process is gone."""
        memory = memory_of(self.pid, self.backend, self.include_children)
        if memory is None:
            return False
        reading = MemoryReading(memory, time.time())
        if self.stream is not None:
            self.stream.write(f"MEM {memory:.6f} {reading.unix_time:.4f}\n")
            for pid, child in self._children():
                self.stream.write(f"CHLD {pid} {child:.6f} {time.time():.4f}\n")
        elif self.max_usage:
            self.samples = [max([*self.samples, reading])]
        else:
            self.samples.append([reading, *self._children()] if self.apart else reading)
        return True

    def _children(self) -> list[tuple[int, float]]:
        if not self.apart:
            return []
        found = [(child, memory_of(child, self.backend)) for child in children_of(self.pid)]
        return [(child, memory) for child, memory in found if memory is not None]

    def _shown(self, sample: Any) -> Any:
        if isinstance(sample, list):
            return [self._shown(sample[0]), *(memory for _, memory in sample[1:])]
        return sample if self.timestamps else sample.memory_mib

    def result(self) -> Any:
        """What was sampled, in the form asked for."""
        shown = [self._shown(sample) for sample in self.samples]
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
    function is then called once, and this process sampled meanwhile. ``include_children`` adds the memory of children,
    ``multiprocess`` lists it apart. ``stream`` gets lines of mprof's form instead.
    """
    backend = choose_backend(backend)
    if callable(proc) or (isinstance(proc, tuple | list) and proc and callable(proc[0])):
        parts: tuple[Any, ...] = tuple(proc) if isinstance(proc, tuple | list) else (proc,)
        if len(parts) > 3:
            raise ValueError("a call is (function, args, kwargs)")
        children = include_children or multiprocess
        sampler = _Sampler(os.getpid(), interval, timestamps, max_usage, children, backend)
        value = _sample_call(sampler, *parts, *((), {})[len(parts) - 1 :])
        result = sampler.result()
        return (result, value) if retval else result
    pid = proc.pid if isinstance(proc, subprocess.Popen) else int(proc)
    sampler = _Sampler(
        os.getpid() if pid == -1 else pid,
        interval,
        timestamps,
        max_usage,
        include_children,
        backend,
        apart=multiprocess and not max_usage,
        stream=stream,
    )
    # Without a limit, this process or one that is not ours to wait for is sampled once.
    limit = max_iterations or (max(1, round(timeout / interval)) if timeout else None)
    if limit is None and not isinstance(proc, subprocess.Popen):
        limit = 1
    while limit is None or limit > 0:
        if isinstance(proc, subprocess.Popen) and proc.poll() is not None:
            break
        if not sampler.sample():
            break
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
