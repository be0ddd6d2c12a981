"""The limits of a program are its own: descriptors and address space that hotspan needs inside it are few."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def run(folder: Path, program: str, *, hotspan: bool) -> str:
    """Run a program and return what it printed."""
    (folder / "program.py").write_text(program)
    command = [sys.executable, *(("-m", "hotspan", "run") if hotspan else ()), "program.py"]
    seen = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert seen.returncode == 0, seen.stderr
    return seen.stdout


_MANY_THREADS = """
import json, os, resource, threading, time
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
is_over = threading.Event()
def wait_or_work(number):
    while not is_over.wait(0.05 if number % 10 == 0 else None): sum(range(2000))
threads = [threading.Thread(target=wait_or_work, args=(number,)) for number in range(300)]
for thread in threads: thread.start()
most, failed, end = 0, 0, time.monotonic() + 2
while time.monotonic() < end:
    try:
        most = max(most, len(os.listdir("/proc/self/fd")))
        opened = [open("/dev/null") for _ in range(200)]
        for file in opened: file.close()
    except OSError:
        failed += 1
    time.sleep(0.01)
is_over.set()
for thread in threads: thread.join()
print(json.dumps([most, failed]))
"""


def test_three_hundred_threads_take_no_more_than_eight_descriptors(tmp_path: Path) -> None:
    without, _ = json.loads(run(tmp_path, _MANY_THREADS, hotspan=False))
    most, failed = json.loads(run(tmp_path, _MANY_THREADS, hotspan=True))
    assert failed == 0
    assert most <= without + 8


_ADDRESS_SPACE = """
import re, time
import torch
x = torch.ones(10)
end = time.monotonic() + 2
while time.monotonic() < end: x + x
print(re.search(r"VmPeak:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""

#: What the C library sets aside for the memory of a thread, whatever that needs: two threads are ours.
_ARENAS = 2 * 64


def test_address_space_is_left_to_the_program(tmp_path: Path) -> None:
    without = int(run(tmp_path, _ADDRESS_SPACE, hotspan=False))
    recorded = int(run(tmp_path, _ADDRESS_SPACE, hotspan=True))
    assert (recorded - without) / 1024 <= _ARENAS + 130


def test_a_program_with_a_limit_of_address_space_runs(tmp_path: Path) -> None:
    needed = int(run(tmp_path, _ADDRESS_SPACE, hotspan=False)) * 1024
    limit = needed + ((_ARENAS + 150) << 20)
    limited = f"import resource\nresource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))\n"
    run(tmp_path, limited + _ADDRESS_SPACE, hotspan=True)
