"""Sampling the running program from within: Python and native frames of all threads, running and waiting.

    with hotspan.sample(rate=100) as sampler:
        work()
    sampler.save("work.hotspan")

Rust does it; here are the names. ``docs/native.md`` says how it works and what it costs.
"""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from hotspan import _core
from hotspan.trace import Trace

# The sampler that runs, while somebody has it; one can per process.
_latest: weakref.ref[Sampler] | None = None
_knows_forks = False


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
        global _latest
        self._trace = None
        _watch_forks()
        self._running = _core.NativeSampler.start(
            self._rate, self._native, self._waiting, self._gc, self._path
        )
        _latest = weakref.ref(self)
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


def _watch_forks() -> None:
    """Have our thread rest while the program forks: Python counts threads, and a child would find locks held."""
    global _knows_forks
    if not _knows_forks:
        _knows_forks = True
        os.register_at_fork(before=_pause, after_in_parent=_resume, after_in_child=_forget)


# What rests, by the thread that forks: the sampler may be another one afterwards.
_resting: dict[int, _core.NativeSampler] = {}


def _pause() -> None:
    sampler = None if _latest is None else _latest()
    running = None if sampler is None else sampler._running
    if running is not None:
        _resting[threading.get_ident()] = running
        running.pause()


def _resume() -> None:
    resting = _resting.pop(threading.get_ident(), None)
    if resting is not None:
        resting.resume()


def _forget() -> None:
    """Forget the sampler in a forked child: it is the parent's."""
    global _latest
    _latest = None
    _resting.clear()


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
