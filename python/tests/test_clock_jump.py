"""Wall time that is set while a program runs: all durations come from the monotonic clock."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

# Wall time as the C library tells it, an hour earlier as soon as there is a certain file.
_CLOCK = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift(void) {
  const char *file = getenv("CLOCK_JUMPED");
  return file != NULL && access(file, F_OK) == 0 ? -3600 : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  long result = syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += shift();
  return (int)result;
}

int gettimeofday(struct timeval *now, void *zone) {
  struct timespec time;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &time);
  now->tv_sec = time.tv_sec;
  now->tv_usec = time.tv_nsec / 1000;
  return 0;
}
"""

_PROGRAM = """
import os, pathlib, time
def busy(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: sum(range(1000))
before = time.time()
busy(0.7)
pathlib.Path(os.environ["CLOCK_JUMPED"]).touch()
assert time.time() < before, "the clock jumps"
busy(0.7)
if os.fork() == 0:
    busy(0.5)
    raise SystemExit(0)
os.wait()
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_clock_that_is_set_back_changes_no_duration(tmp_path: Path) -> None:
    (tmp_path / "clock.c").write_text(_CLOCK)
    (tmp_path / "program.py").write_text(_PROGRAM)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "clock.so", "clock.c"], cwd=tmp_path, check=True)
    variables = {"LD_PRELOAD": str(tmp_path / "clock.so"), "CLOCK_JUMPED": str(tmp_path / "jumped")}
    seen = subprocess.run(
        [sys.executable, "-m", "hotspan", "run", "program.py"],
        cwd=tmp_path,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert seen.returncode == 0, seen.stderr
    # The program is busy for 1.9 seconds in all, its child for half a second; an hour forth or back would show.
    for said in (r"ended with exit code 0 after ([\d.]+) s", r"\(([\d.]+) s in all\)"):
        found = re.search(said, seen.stderr)
        assert found is not None, seen.stderr
        assert 1.8 < float(found[1]) < 60, seen.stderr
