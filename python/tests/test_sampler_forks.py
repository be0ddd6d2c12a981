"""Forks of a program that samples itself: its children start without our thread, and Python does not warn of it."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path

import pytest

from interpreters import environment, importing_or_skip

#: Forks while it is sampled; its children begin a recording of their own.
PROGRAM = """
    import gc, os, threading, time, warnings
    import hotspan

    def burn(seconds):
        end = time.thread_time() + seconds
        while time.thread_time() < end: pass

    def before(): burn(0.2)
    def after(): burn(0.2)
    def in_child(): burn(0.2)

    def names(sampler):
        return {frame.name for sample in sampler.samples() for frame in sample.frames}

    def fork(sampler):
        process = os.fork()
        if process == 0:
            gc.collect()
            sampler.stop()
            was_empty = sampler.samples() == []
            with hotspan.sample(rate=500) as own:
                in_child()
            seen = names(own)
            os._exit(3 if was_empty and "in_child" in seen and "before" not in seen else 4)
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

    def fork_often(codes):
        for _ in range(10):
            process = os.fork()
            if process == 0: os._exit(3)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with hotspan.sample(rate=500) as sampler:
            before()
            print(*(fork(sampler) for _ in range(3)))
            after()
        print({"before", "after"} <= names(sampler), "in_child" in names(sampler))
        dropped = hotspan.sample(rate=500).start()
        del dropped
        fork_often([])
    print([str(warning.message) for warning in seen])
    codes = []
    with hotspan.sample(rate=500) as sampler:
        threads = [threading.Thread(target=fork_often, args=(codes,)) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        after()
    print(codes == [3] * 40, "after" in names(sampler))
"""


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14", "3.14t", "3.15"])
def test_a_fork_of_a_sampled_program(version: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    command = [importing_or_skip(version), "-W", "ignore", "program.py"]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["3 3 3", "True False", "[]", "True True"], ran.stderr
