"""Runs one job in this process and reports seconds and memory as JSON; `run.py` starts a fresh one for each.

Usage: python bench/measure.py JOB FILE [--core N]

Memory is the growth of the peak from the moment the tool is imported: of this process or, where a tool works in child
processes, of the largest of them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import sys
import time
from pathlib import Path

from jobs import JOBS


def status_bytes(field: str) -> int:
    """A size of this process as the kernel tells it, such as VmRSS (now) or VmHWM (peak)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def measure(job: str, path: Path) -> dict[str, object]:
    """Imports, then works, and says what the work took."""
    with contextlib.redirect_stdout(sys.stderr):
        work = JOBS[job]()
        # Forget the peak that importing reached.
        Path("/proc/self/clear_refs").write_text("5")
        before = status_bytes("VmRSS")
        start = time.perf_counter()
        found = work(path)
        seconds = time.perf_counter() - start
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    peak = max(status_bytes("VmHWM"), children)
    return {"seconds": seconds, "peak_bytes": max(peak - before, 0), "found": found}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("path", type=Path)
    parser.add_argument("--core", type=int, help="stay on this core")
    arguments = parser.parse_args()
    if arguments.core is not None:
        os.sched_setaffinity(0, {arguments.core})
    print(json.dumps(measure(arguments.job, arguments.path)))


if __name__ == "__main__":
    main()
