"""The machine and the versions a benchmark ran with, in words: nothing that names a host or a path."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata
from pathlib import Path

PACKAGES = ("hotspan", "HolisticTraceAnalysis", "torch-tb-profiler", "torch", "numpy", "pandas")


def processor() -> str:
    """The processor's name, where the system tells it."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.machine()


def describe() -> str:
    """Cores, memory, system and Python."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores ({processor()}), {memory:.0f} GiB of memory, {platform.system()} "
        f"{platform.machine()}, Python {platform.python_version()}"
    )


def versions() -> str:
    """The versions of hotspan and of what it is compared with."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return ", ".join(found)
