"""Sampling the running program from within: Python and native frames of all threads, running and waiting.

    with hotspan.sample(rate=100) as sampler:
        work()
    sampler.save("work.hotspan")

Rust does it; here are the names. ``docs/native.md`` says how it works and what it costs.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from hotspan import _core
from hotspan.trace import Trace


class Frame(NamedTuple):
    """A function in a stack; ``kind`` is "python" or "native", ``file`` a source file or a library."""

    name: str
    file: str
    line: int
    kind: str


class Sample(NamedTuple):
    """What one thread did from ``time_ns`` (since the start of the trace) on, for ``weight_ns``.

    ``state`` is "running", "io", "lock", "sleep" or "waiting"; ``frames`` begin with the innermost.
    """

    time_ns: int
    weight_ns: int
    thread: str
    state: str
    has_gil: bool
    frames: list[Frame]


class Sampler:
    """A recording of samples: a context manager, or :meth:`start` and :meth:`stop`.

    One can run per process. With ``path`` the samples go to that file while the program runs, so that a crash leaves
    what there was.
    """

    def __init__(
        self,
        rate: int = 100,
        *,
        native: bool = True,
        waiting: bool = True,
        gc: bool = True,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        self._rate = rate
        self._native = native
        self._waiting = waiting
        self._gc = gc
        self._path = None if path is None else os.fspath(path)
        self._running: _core.NativeSampler | None = None
        self._trace: _core.Trace | None = None

    def start(self) -> Sampler:
        """Begin to sample every thread."""
        if self._running is not None:
            raise _core.CollectError("this sampler is running already. hint: stop it first")
        self._trace = None
        self._running = _core.NativeSampler.start(
            self._rate, self._native, self._waiting, self._gc, self._path
        )
        return self

    def stop(self) -> None:
        """End the recording. Nothing happens when it has ended before."""
        running, self._running = self._running, None
        if running is not None:
            self._trace = running.stop()

    def __enter__(self) -> Sampler:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _recorded(self) -> _core.Trace:
        if self._running is not None:
            raise _core.CollectError(
                "the recording is still running. hint: stop it, or leave its `with` block"
            )
        if self._trace is None and self._path is not None and Path(self._path).exists():
            self._trace = _core.open(self._path)
        if self._trace is None:
            raise _core.CollectError("nothing was recorded yet. hint: use the sampler in a `with` block")
        return self._trace

    @property
    def trace(self) -> Trace:
        """What was recorded."""
        return Trace(self._recorded())

    def samples(self) -> list[Sample]:
        """The samples one by one, in the order of time."""
        rows = _core.sample_stacks(self._recorded())
        return [Sample(*row[:5], [Frame(*frame) for frame in row[5]]) for row in rows]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.hotspan`` file, which ``hotspan.open`` and the command line read."""
        self._recorded().save(os.fspath(path))


def sample(
    rate: int = 100,
    *,
    native: bool = True,
    waiting: bool = True,
    gc: bool = True,
    path: str | os.PathLike[str] | None = None,
) -> Sampler:
    """Sample this process in a ``with`` block: ``rate`` times a second of each thread's processor time.

    ``native`` adds C, C++ and Rust frames, ``waiting`` threads that do not run, ``gc`` the pauses of the garbage
    collector; ``path`` makes a file that grows as the program runs.
    """
    return Sampler(rate, native=native, waiting=waiting, gc=gc, path=path)
