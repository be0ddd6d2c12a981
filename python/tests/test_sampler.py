"""Samples of real processes: every thread where it stands, shares that are true, and ends of all kinds."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sampled_programs import SHARES, STANDING, each_python, running

HOTSPAN = Path(sys.executable).with_name("hotspan")


def functions(thread: dict[str, Any]) -> list[str]:
    """The functions of a thread, outermost first, without their classes."""
    return [frame["name"].rsplit(".", 1)[-1] for frame in reversed(thread["frames"])]


def go_first(pid: int = 0) -> None:
    """Lets a process, or this one, run before others, where that is allowed."""
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, pid, -20)


def collapsed(path: Path) -> list[tuple[list[str], int]]:
    """The stacks of a file with their counts."""
    rows = [line.rsplit(" ", 1) for line in path.read_text().splitlines()]
    return [(stack.split(";"), int(count)) for stack, count in rows]


@pytest.mark.parametrize("python", each_python())
def test_every_thread_is_found_where_it_stands(python: Path, hotspan_command: Any) -> None:
    with running(STANDING, python=python) as process:
        told = hotspan_command("dump", "--pid", str(process.pid), "--json", "--locals")
        assert told.returncode == 0, told.stderr
        dump = json.loads(told.stdout)
        threads = {thread["name"]: thread for thread in dump["threads"]}
        assert set(threads) == {
            "MainThread",
            "sleeps",
            "waits",
            "generates",
            "recurses",
            "coroutine",
            "reads",
        }
        assert threads["MainThread"]["id"] == process.pid
        assert functions(threads["MainThread"]) == ["<module>", "spins"]
        assert threads["MainThread"]["gil"]
        spins = threads["MainThread"]["frames"][0]
        assert {"name": "label", "value": '"the label"'} in spins["locals"]
        assert functions(threads["sleeps"])[-1] == "sleeps"
        assert functions(threads["waits"])[-1] == "waits"
        assert functions(threads["generates"])[-2:] == ["generates", "numbers"]
        assert functions(threads["coroutine"])[-2:] == ["outer", "inner"]
        assert functions(threads["recurses"])[-301:] == ["recurses"] * 301
        states = {name: thread["state"] for name, thread in threads.items()}
        assert states["sleeps"] == "sleep"
        assert states["waits"] == "lock"
        assert states["reads"] == "i/o"
        lines = {name: thread["frames"][0]["line"] for name, thread in threads.items()}
        source = STANDING.splitlines()
        assert source[lines["waits"] - 1].strip() == "gate.acquire()"
        assert source[lines["generates"] - 1].strip() == "time.sleep(600)"
        text = hotspan_command("dump", "--pid", str(process.pid)).stdout
        assert '"coroutine"' in text


@pytest.mark.parametrize("python", each_python())
def test_stacks_equal_those_of_py_spy(python: Path, hotspan_command: Any) -> None:
    py_spy = Path(sys.executable).with_name("py-spy")
    if not py_spy.exists():
        pytest.skip("py-spy is not installed")
    with running(STANDING, python=python) as process:
        command = [py_spy, "dump", "--json", "--nonblocking", "--pid", str(process.pid)]
        theirs = subprocess.run(command, capture_output=True, text=True, check=False)
        if theirs.returncode != 0:
            pytest.skip(f"py-spy cannot: {theirs.stderr.splitlines()[:1]}")
        ours = json.loads(hotspan_command("dump", "--pid", str(process.pid), "--json").stdout)

    def stacks(
        threads: list[dict[str, Any]], number: str, file: str
    ) -> dict[str, list[tuple[str, str, int]]]:
        # The thread that spins is somewhere else each time.
        return {
            thread[number]: [(f["name"].rsplit(".", 1)[-1], f[file], f["line"]) for f in thread["frames"]]
            for thread in threads
            if thread["frames"][0]["name"] != "spins"
        }

    expected = stacks(json.loads(theirs.stdout), "os_thread_id", "filename")
    found = stacks(ours["threads"], "id", "file")
    if None in expected:
        expected = stacks(json.loads(theirs.stdout), "thread_id", "filename")
        found = stacks(ours["threads"], "ident", "file")
    assert found == expected


@pytest.mark.parametrize("python", each_python())
def test_sampled_shares_are_true(python: Path, tmp_path: Path, hotspan_command: Any) -> None:
    expected = {"thirty": 0.3, "fifty": 0.5, "twenty": 0.2}
    seconds = "5" if python == Path(sys.executable) else "1"
    output = tmp_path / "shares.txt"
    counts: Counter[str] = Counter()
    with running(SHARES, "120", python=python) as process:
        # While the target itself has no processor, all samples are of one place. On a busy machine chance then weighs
        # more than truth, so both go first, and it may take longer until the shares show; false ones never come right.
        go_first(process.pid)
        for _ in range(6):
            told = hotspan_command(
                "record",
                "-r",
                "1000",
                "-d",
                seconds,
                "-o",
                output,
                "--pid",
                str(process.pid),
                preexec_fn=go_first,
            )
            assert told.returncode == 0, told.stderr
            for stack, count in collapsed(output):
                counts.update({name: count for name in expected if any(name in frame for frame in stack)})
            samples = sum(counts.values())
            errors = {name: abs(counts[name] / max(samples, 1) - share) for name, share in expected.items()}
            if max(errors.values()) <= 0.03:
                break
    assert max(errors.values()) <= 0.03, counts


def test_the_exit_code_and_the_record_of_a_command_are_kept(tmp_path: Path, hotspan_command: Any) -> None:
    output = tmp_path / "run.hotspan"
    program = "import sys, time\nend = time.time() + 0.5\nwhile time.time() < end: pass\nsys.exit(7)"
    told = hotspan_command("record", "-o", output, "--", sys.executable, "-c", program)
    assert told.returncode == 7, told.stderr
    tree = json.loads(hotspan_command("tree", output, "--json").stdout)
    assert tree[0]["rows"][0]["function"] == "<module>"
    killed = "import os, signal, time\nend = time.time() + 0.3\nwhile time.time() < end: pass\nos.kill(os.getpid(), 9)"
    told = hotspan_command("record", "-o", output, "--", sys.executable, "-c", killed)
    assert told.returncode == 128 + signal.SIGKILL
    missing = hotspan_command("record", "-o", output, "--", "no-such-program-at-all")
    assert missing.returncode == 127
    assert "failed to run no-such-program-at-all" in missing.stderr


def test_a_signal_is_passed_on_to_the_command(tmp_path: Path) -> None:
    output = tmp_path / "run.hotspan"
    program = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        "print('ready', flush=True)\n"
        "while True: pass\n"
    )
    command = [HOTSPAN, "record", "-o", output, "--", sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 5, errors
    assert output.exists()


def test_a_target_that_dies_leaves_its_record(tmp_path: Path) -> None:
    output = tmp_path / "dead.txt"
    with running(SHARES, "60") as target:
        command = [HOTSPAN, "record", "-r", "200", "-o", output, "--pid", str(target.pid)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(1)
            target.kill()
            _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert sum(count for _, count in collapsed(output)) > 0


def test_an_interrupt_ends_the_recording_and_writes_it(tmp_path: Path) -> None:
    output = tmp_path / "stopped.txt"
    with running(SHARES, "60") as target:
        command = [HOTSPAN, "record", "-o", output, "--pid", str(target.pid)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(1.5)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        assert target.poll() is None, "the target goes on"
    assert process.returncode == 0, errors
    assert collapsed(output)


def test_children_and_threads_are_told_apart(tmp_path: Path, hotspan_command: Any) -> None:
    child = (
        "import time\ndef child():\n    end = time.time() + 1.5\n    while time.time() < end: pass\nchild()"
    )
    program = (
        f"import subprocess, sys, threading\nchild = {child!r}\n"
        "process = subprocess.Popen([sys.executable, '-c', child])\n"
        "def spins():\n    while process.poll() is None: pass\n"
        "thread = threading.Thread(target=spins, name='the spinner')\nthread.start()\nthread.join()\n"
    )
    output = tmp_path / "both.txt"
    told = hotspan_command("record", "-s", "-t", "-o", output, "--", sys.executable, "-c", program)
    assert told.returncode == 0, told.stderr
    roots = {stack[0] for stack, _ in collapsed(output)}
    assert any("the spinner" in root for root in roots), roots
    assert any("child" in frame for stack, _ in collapsed(output) for frame in stack)
    assert len({root.split(",")[0] for root in roots if root.startswith("process ")}) == 2, roots


def test_only_the_holder_of_the_gil_is_kept_on_request(tmp_path: Path, hotspan_command: Any) -> None:
    with running(STANDING) as process:
        idle, gil = tmp_path / "idle.txt", tmp_path / "gil.txt"
        record = ("record", "-d", "0.5", "-t", "--pid", str(process.pid))
        assert hotspan_command(*record, "-i", "-o", idle).returncode == 0
        assert hotspan_command(*record, "-g", "-o", gil).returncode == 0
    assert len({stack[0] for stack, _ in collapsed(idle)}) == 7
    assert {stack[0].split("(")[1].rstrip(")") for stack, _ in collapsed(gil)} == {"MainThread"}


def test_a_process_that_cannot_be_sampled_says_why(tmp_path: Path, hotspan_command: Any) -> None:
    output = tmp_path / "none.svg"
    for command in (("record", "-o", output), ("dump",), ("top", "--once")):
        gone = hotspan_command(*command, "--pid", "4194200")
        assert gone.returncode == 1
        assert "there is no process 4194200" in gone.stderr
        assert "hint:" in gone.stderr
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        other = hotspan_command("dump", "--pid", str(sleeper.pid))
        sleeper.kill()
    assert other.returncode == 1
    assert f"process {sleeper.pid} is not Python" in other.stderr
    assert not output.exists()
    assert hotspan_command("record", "-o", output).returncode == 2
    nowhere = hotspan_command(
        "record", "-o", tmp_path / "no" / "x.svg", "--", sys.executable, "-c", "print('ran')"
    )
    assert nowhere.returncode == 1
    assert "ran" not in nowhere.stdout, "said before the program runs"
    assert hotspan_command("record", "-o", output, "-d", "-1", "--pid", "1").returncode == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_lack_of_permission_says_what_to_do() -> None:
    with running(SHARES, "60") as target:
        # The module itself must be readable for the other user, so it is loaded before becoming them.
        program = (
            "import os, sys\nfrom hotspan._core import run_cli\n"
            f"os.setgid(65534); os.setuid(65534)\nsys.exit(run_cli(['hotspan', 'dump', '--pid', '{target.pid}']))"
        )
        told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert told.returncode == 1, told.stdout
    assert "not permitted" in told.stderr
    assert "sudo hotspan" in told.stderr
    assert "SYS_PTRACE" in told.stderr


def test_top_shows_what_costs_the_time(hotspan_command: Any) -> None:
    with running(SHARES, "60") as process:
        told = hotspan_command("top", "--pid", str(process.pid), "--once", "-d", "1", "--json")
        assert told.returncode == 0, told.stderr
        top = json.loads(told.stdout)
        assert top["rows"][0]["function"] == "spin"
        assert top["gil_percent"] > 50
        text = hotspan_command("top", "--pid", str(process.pid), "--once", "-d", "0.5").stdout
        assert "Own %" in text
        assert hotspan_command("top", "--pid", str(process.pid)).returncode == 2


def test_the_live_screen_is_drawn_and_left_with_q() -> None:
    pty = pytest.importorskip("pty")
    with running(SHARES, "60") as target:
        ours, theirs = pty.openpty()
        command = [HOTSPAN, "top", "--pid", str(target.pid), "--delay", "0.2"]
        with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            screen = b""
            deadline = time.monotonic() + 30
            while b"spin (" not in screen and time.monotonic() < deadline:
                screen += os.read(ours, 65536)
            for key in (b"t", b"l", b"q"):
                os.write(ours, key)
            with contextlib.suppress(OSError):
                while chunk := os.read(ours, 65536):
                    screen += chunk
            process.wait(timeout=30)
        os.close(ours)
    assert process.returncode == 0
    assert b"GIL" in screen
    assert b"q quit" in screen
    assert screen.rstrip().endswith(b"\x1b[?1049l")
