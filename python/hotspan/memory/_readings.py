"""How much memory a process has, as memory_profiler's backends measure it."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

from hotspan import _core

#: What memory_profiler calls the ways to measure. ``psutil`` and ``posix`` are both resident memory here.
BACKENDS = ("psutil", "psutil_pss", "psutil_uss", "posix", "tracemalloc")
RESIDENT = ("psutil", "posix")
MEBIBYTE = float(1 << 20)


def choose_backend(new_backend: str | None = None) -> str:
    """Return the name of a backend: ``psutil`` unless another is given."""
    backend = new_backend or "psutil"
    if backend not in BACKENDS:
        raise ValueError(f"there is no backend {backend!r}; there are {', '.join(BACKENDS)}")
    return backend


def memory_of(
    pid: int, backend: str = "psutil", include_children: bool = False, filename: str | None = None
) -> float | None:
    """Return the memory of a process in MiB; None when it is gone.

    ``tracemalloc`` knows only this process: all that Python allocated, or what the code in a file did.
    """
    pid = os.getpid() if pid == -1 else pid
    if backend == "tracemalloc":
        return _traced(filename) / MEBIBYTE
    memory = _one(pid, backend)
    if memory is not None and include_children:
        memory += sum(_one(child, backend) or 0.0 for child in children_of(pid))
    return memory


def children_of(pid: int) -> list[int]:
    """Return the processes that a process started, and those that they did."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            direct = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        for child in direct:
            found += [child, *children_of(child)]
    return found


def _one(pid: int, backend: str) -> float | None:
    if backend not in RESIDENT:
        return _detailed(pid, backend)
    if pid == os.getpid():
        return _core.resident_memory() / MEBIBYTE
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / MEBIBYTE or None


def _detailed(pid: int, backend: str) -> float | None:
    """The share of a process in memory that several have (PSS), or what it has alone (USS)."""
    wanted = (
        ("Pss:",) if backend == "psutil_pss" else ("Private_Clean:", "Private_Dirty:", "Private_Hugetlb:")
    )
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    kibibytes = [int(line.split()[1]) for line in lines if line.startswith(wanted)]
    return sum(kibibytes) / 1024 if kibibytes else None


def _traced(filename: str | None) -> int:
    if not tracemalloc.is_tracing():
        return 0
    if filename is None:
        return tracemalloc.get_traced_memory()[0]
    traces = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, filename)]).traces
    return sum(trace.size for trace in traces)
