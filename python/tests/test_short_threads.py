"""Threads that are born and gone between two looks of the sampler: all of their processor time is in the recording."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from hotspan import _core

PROGRAM = """
    import sys, threading, time
    used = 0.0
    def work():
        global used
        begin = time.thread_time()
        while time.thread_time() - begin < float(sys.argv[1]): pass
        used += time.thread_time() - begin
    while used < 1.0:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    print(used)
"""


def recorded(folder: Path, program: str, *arguments: str) -> tuple[str, list[tuple[int, str, list[str]]]]:
    """Run a program; what it said, and weight, thread and functions of the samples of running threads."""
    (folder / "program.py").write_text(textwrap.dedent(program))
    command = [sys.executable, "-m", "hotspan", "run", "-o", "x.hotspan", "program.py", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=True)
    rows = _core.sample_stacks(_core.open(str(folder / "x.hotspan")))
    return done.stdout, [(row[1], row[2], [f[0] for f in row[5]]) for row in rows if row[3] == "running"]


def test_a_thread_for_each_request_shows_where_its_time_went(tmp_path: Path) -> None:
    said, samples = recorded(tmp_path, PROGRAM, "0.002")
    used = float(said)
    of_work = [weight for weight, _, frames in samples if "work" in frames]
    # Each thread is shorter than a period, and most are never seen; what is seen stands for all.
    assert len(of_work) > 10
    assert 0.7 * used < sum(of_work) / 1e9 < 1.4 * used
    others = sum(weight for weight, _, frames in samples if "<module>" not in frames)
    assert others / 1e9 > 0.9 * used, "none of it is lost"


def test_threads_that_nobody_can_see_have_a_row(tmp_path: Path) -> None:
    program = """
        import ctypes
        libc = ctypes.CDLL(None)
        # A thread in C that does nothing but begin and end, which takes time too.
        thread = ctypes.c_ulong()
        for _ in range(20_000):
            assert libc.pthread_create(ctypes.byref(thread), None, libc.getpid, None) == 0
            libc.pthread_join(thread, None)
        import time
        print(time.process_time() - time.thread_time())
    """
    said, samples = recorded(tmp_path, program)
    others = sum(weight for weight, _, frames in samples if "<module>" not in frames)
    # Besides, the clock of the process has the recorder's own threads.
    assert 0 < others / 1e9 < float(said)


def test_a_program_with_one_thread_has_no_such_row(tmp_path: Path) -> None:
    program = """
        import time
        def work():
            end = time.thread_time() + 1
            while time.thread_time() < end: pass
        work()
    """
    _, samples = recorded(tmp_path, program)
    assert not [frames for _, _, frames in samples if "[threads that ended between samples]" in frames]
    assert len({thread for _, thread, _ in samples}) == 1
