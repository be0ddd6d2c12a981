"""``hotspan run`` in rough places: full disks, closed files, many children; the program never notices."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import hotspan
from hotspan import _core


def run(folder: Path, program: str, *command: str, **more: object) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(textwrap.dedent(program))
    return subprocess.run(
        [sys.executable, "-m", "hotspan", "run", "-o", "x.hotspan", *(command or ("program.py",))],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        **more,
    )  # type: ignore[call-overload, no-any-return]


def test_files_of_the_program_are_its_own(tmp_path: Path) -> None:
    """A program that closes all files, as daemons do, gets their numbers again: nobody else may use them."""
    program = """
        import os, threading, time
        os.chdir("/")
        threads = [threading.Thread(target=time.sleep, args=(1.5,)) for _ in range(4)]
        for thread in threads: thread.start()
        time.sleep(0.5)
        os.closerange(3, 200)
        own = [open(f"{FOLDER}/{number}.txt", "w") for number in range(40)]
        for thread in threads: thread.join()
        time.sleep(1.5)
        for number, file in enumerate(own):
            file.write(f"{number}")
            file.close()
        print("written")
    """
    seen = run(tmp_path, f"FOLDER = {str(tmp_path)!r}" + textwrap.dedent(program))
    assert (seen.returncode, seen.stdout) == (0, "written\n"), seen.stderr
    assert [(tmp_path / f"{number}.txt").read_text() for number in range(40)] == [
        str(number) for number in range(40)
    ]
    assert "truncated_file" not in hotspan.open(tmp_path / "x.hotspan").losses


def test_a_full_disk_ends_the_recording_only(tmp_path: Path) -> None:
    program = """
        import signal, sys, time, resource
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        end = time.monotonic() + 3
        functions = [eval(f"lambda: sum(range({number}))") for number in range(500, 900)]
        while time.monotonic() < end:
            for function in functions: function()
        print("done")
        sys.exit(5)
    """
    seen = run(tmp_path, program)
    assert (seen.returncode, seen.stdout) == (5, "done\n")
    assert "the recording is not complete" in seen.stderr
    assert hotspan.open(tmp_path / "x.hotspan").losses["truncated_file"] == 1


def test_many_short_children(tmp_path: Path) -> None:
    program = """
        import os
        for _ in range(100):
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
        print("done")
    """
    seen = run(tmp_path, program)
    assert (seen.returncode, seen.stdout) == (0, "done\n"), seen.stderr
    assert "truncated_file" not in hotspan.open(tmp_path / "x.hotspan").losses


def test_children_that_outlive_the_program(tmp_path: Path) -> None:
    """What ends soon after is waited for; what goes on is recorded until then, and never speaks of it."""
    program = """
        import subprocess, sys
        code = "import sys, time; print(1, flush=True); time.sleep(float(sys.argv[1])); open(sys.argv[1], 'w').close()"
        for seconds in ("0.3", "3"):
            with open(f"stderr-{seconds}", "w") as errors:
                child = [sys.executable, "-c", code, seconds]
                subprocess.Popen(child, stdout=subprocess.PIPE, stderr=errors).stdout.readline()
    """
    seen = run(tmp_path, program)
    assert seen.returncode == 0, seen.stderr
    assert (tmp_path / "0.3").exists()
    assert not (tmp_path / "3").exists()
    assert hotspan.open(tmp_path / "x.hotspan").losses["truncated_file"] == 1, "the one that goes on"
    deadline = time.monotonic() + 60
    while not (tmp_path / "3").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    assert [(tmp_path / f"stderr-{seconds}").read_text() for seconds in ("0.3", "3")] == ["", ""]


def test_out_of_memory(tmp_path: Path) -> None:
    program = """
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (4_000_000_000, 4_000_000_000))
        try:
            blocks = []
            while True: blocks.append(bytearray(200_000_000))
        except MemoryError:
            blocks.clear()
            print("survived")
    """
    seen = run(tmp_path, program)
    assert (seen.returncode, seen.stdout) == (0, "survived\n"), seen.stderr


def test_threads_that_outlive_main(tmp_path: Path) -> None:
    program = """
        import threading, time
        def later():
            time.sleep(0.3); print("later", flush=True)
        threading.Thread(target=later).start()
    """
    seen = run(tmp_path, program)
    assert (seen.returncode, seen.stdout) == (0, "later\n"), seen.stderr


def test_programs_without_a_file(tmp_path: Path) -> None:
    seen = run(tmp_path, "", sys.executable, "-c", "import sys; print(sys.argv)", "x")
    assert (seen.returncode, seen.stdout) == (0, "['-c', 'x']\n")
    seen = run(tmp_path, "", sys.executable, "-", "x", input="import sys; print(sys.argv)")
    assert (seen.returncode, seen.stdout) == (0, "['-', 'x']\n")
    assert hotspan.open(tmp_path / "x.hotspan").counts["counters"] > 0


def test_isolated_python_is_said_not_to_be_seen(tmp_path: Path) -> None:
    seen = run(tmp_path, "", sys.executable, "-I", "-c", "print(1)")
    assert (seen.returncode, seen.stdout) == (0, "1\n")
    assert "no Python process was recorded" in seen.stderr


def test_own_threads_are_not_sampled(tmp_path: Path) -> None:
    program = """
        import os, time
        time.sleep(1.5)
        print(sorted(open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")))
    """
    seen = run(tmp_path, program)
    assert seen.returncode == 0, seen.stderr
    assert "'hotspan'" in seen.stdout, "the agent runs under this name"
    threads = {sample[2] for sample in _core.sample_stacks(hotspan.open(tmp_path / "x.hotspan")._core)}
    assert len(threads) == 1, threads
