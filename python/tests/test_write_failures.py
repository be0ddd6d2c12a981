"""A recording that cannot be written any more ends; the program does not notice, and a line says so, once."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

# Operators before and after writing fails; another profiler takes them, and gives them back.
_PROGRAM = """
import os, sys, time
import torch
x = torch.randn(32, 32, requires_grad=True)
def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: (x @ x).relu().sum().backward()
work(1.2)
{fail}
work(1.2)
with torch.profiler.profile() as profile: work(0.1)
work(0.5)
ours = [name for task in os.listdir("/proc/self/task")
        if (name := open(f"/proc/self/task/{{task}}/comm").read().strip()).startswith("hotspan")]
print("done", ours, len(profile.events()) > 0)
sys.exit(5)
"""

FAULTS = {
    "the folder is deleted": "import shutil; shutil.rmtree('x.hotspan.spool')",
    "files may not grow": (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))"
    ),
    "no file can be opened": "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (0, 4096))",
}
MEND = {"no file can be opened": "resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))"}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_recording_ends_and_the_program_goes_on(fault: str, tmp_path: Path) -> None:
    program = _PROGRAM.format(fail=FAULTS[fault])
    mended = MEND.get(fault, "")
    (tmp_path / "program.py").write_text(
        program.replace("with torch.profiler", f"{mended}\nwith torch.profiler")
    )
    seen = subprocess.run(
        [sys.executable, "-m", "hotspan", "run", "-o", "x.hotspan", "--shapes", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (seen.returncode, seen.stdout) == (5, "done [] True\n"), seen.stderr
    assert seen.stderr.count("the recording is not complete") == 1, seen.stderr
    assert "panicked" not in seen.stderr
    assert (tmp_path / "x.hotspan").exists()
