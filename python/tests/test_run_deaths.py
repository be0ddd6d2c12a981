"""``hotspan run`` of programs that come to a bad end: what they did is there, and the report says what is not."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import hotspan
from test_run_operators import WAIT, counts, run


def report(folder: Path, file: str) -> dict[str, object]:
    """The report again, as JSON."""
    seen = subprocess.run(
        [sys.executable, "-m", "hotspan", "report", file, "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found: dict[str, object] = json.loads(seen.stdout)
    return found


def says_it_was_cut_off(folder: Path, file: str = "program.hotspan") -> bool:
    missing = report(folder, file)["missing"]
    assert isinstance(missing, list)
    return any("was cut off" in text for text in missing)


@pytest.fixture
def small_memory() -> Iterator[Path]:
    """A control group whose processes may have 200 MB, for a real visit of the kernel's killer."""
    home = Path("/sys/fs/cgroup/memory")
    group = (home if home.is_dir() else Path("/sys/fs/cgroup")) / f"hotspan-test-{os.getpid()}"
    limit = "memory.limit_in_bytes" if home.is_dir() else "memory.max"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("control groups cannot be made here")
    try:
        (group / limit).write_text(str(200_000_000))
    except OSError:
        group.rmdir()
        pytest.skip("memory cannot be limited here")
    yield group
    for _ in range(100):
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.05)
        else:
            break


def test_killed_for_want_of_memory(tmp_path: Path, small_memory: Path) -> None:
    program = f"""
        import os, time
        def fill(blocks):
            while True:
                blocks.append(bytearray(b"x" * 4_000_000))
        time.sleep(1.2)
        open({str(small_memory / "cgroup.procs")!r}, "w").write(str(os.getpid()))
        fill([])
    """
    seen = run(tmp_path, program)
    assert seen.returncode == -signal.SIGKILL, seen.stderr
    assert says_it_was_cut_off(tmp_path)
    assert hotspan.open(tmp_path / "program.hotspan").metadata["hotspan.run"]["ended"] == "by signal 9"


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """A real file system of 64 KB, which holds neither the spool nor the recording."""
    small = tmp_path / "small"
    small.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "hotspan-test", str(small)]
    if not shutil.which("mount") or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    program = """
        import sys, time
        end = time.monotonic() + 2.5
        functions = [eval(f"lambda: sum(range({number}))") for number in range(500, 1500)]
        while time.monotonic() < end:
            for function in functions: function()
        print("done")
        sys.exit(5)
    """
    try:
        (tmp_path / "program.py").write_text(textwrap.dedent(program))
        (small / "taken").write_bytes(b"x" * 40_000)
        seen = subprocess.run(
            [sys.executable, "-m", "hotspan", "run", "--rate", "400", "-o", "small/x.hotspan", "program.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (seen.returncode, seen.stdout) == (5, "done\n"), seen.stderr
        assert "the recording is not complete" in seen.stderr
        assert "Where the time went" in seen.stderr
        assert says_it_was_cut_off(small, next(path.name for path in small.glob("x.hotspan*")))
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_hotspan_itself_is_killed(tmp_path: Path) -> None:
    """The program goes on, and the folder it wrote to is a recording."""
    program = "import time\nprint('ready', flush=True)\nend = time.time() + 2\n"
    program += "while time.time() < end: sum(range(999))\nopen('ended', 'w').close()"
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, "-m", "hotspan", "run", "program.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.kill()
    for _ in range(600):
        if (tmp_path / "ended").exists():
            break
        time.sleep(0.05)
    time.sleep(0.2)
    found = report(tmp_path, "program.hotspan.spool")["report"]
    assert isinstance(found, dict)
    assert found["Program"][0] == {"fact": "Command", "value": "program.py"}
    parts = {row["activity"]: row["time"] for row in found["Where the time went"]}
    assert max(parts, key=lambda part: parts[part]) == "Python code", parts


LAUNCH = """
import ctypes, torch
fake, name = ctypes.CDLL({library!r}), ctypes.create_string_buffer(b"my_kernel")
def launch(count):
    for _ in range(count):
        torch.ones(2).exp2()
        fake.fake_launch(name, 7, ctypes.c_uint64(1000))
"""


def test_device_work_before_a_kill_is_there(tmp_path: Path, fake_cupti: Path) -> None:
    pytest.importorskip("torch")
    program = LAUNCH.format(library=str(fake_cupti)) + WAIT
    # What is new waits for one more look, so that calls and their work come together.
    program += "launch(5)\nwait_for_the_agent()\nwait_for_the_agent()\nimport os; os.kill(os.getpid(), 9)"
    seen = run(tmp_path, program, "--rate", "0", HOTSPAN_CUPTI=str(fake_cupti))
    assert seen.returncode == -signal.SIGKILL
    trace = hotspan.open(tmp_path / "program.hotspan")
    assert [(kernel.name, kernel.calls) for kernel in trace.kernels()] == [("my_kernel", 5)]
    averages = {row.key: row for row in trace.key_averages()}
    assert averages["aten::exp2"].count == 5
    assert says_it_was_cut_off(tmp_path)


def test_devices_and_memory_come_back_after_torch_profiler(tmp_path: Path, fake_cupti: Path) -> None:
    pytest.importorskip("torch")
    program = LAUNCH.format(library=str(fake_cupti)) + textwrap.dedent("""
        import warnings
        from torch.profiler import ProfilerActivity, profile
        warnings.simplefilter("ignore")
        launch(2)
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
            torch.ones(100)
        launch(3)
        kept = torch.empty(1_234_567)
    """)
    seen = run(tmp_path, program, "--memory", "--rate", "0", HOTSPAN_CUPTI=str(fake_cupti))
    assert seen.returncode == 0, seen.stderr
    trace = hotspan.open(tmp_path / "program.hotspan")
    assert [(kernel.name, kernel.calls) for kernel in trace.kernels()] == [("my_kernel", 5)]
    assert counts(tmp_path / "program.hotspan")["aten::exp2"] == 5
    rows = report(tmp_path, "program.hotspan")["report"]
    assert isinstance(rows, dict)
    (tensors,) = [row for row in rows["Memory at its peak"] if row["what"] == "CPU tensors"]
    assert tensors["bytes"] >= 4 * 1_234_567
