"""Samples of real processes: every thread where it stands, shares that are true, and ends of all kinds."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
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
        told = hotspan_command("dump", "--pid", str(process.pid), "--hotspan-json", "--locals")
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
        # A free-threaded build has no such lock.
        is_free_threaded = "python3.14t" in str(python)
        assert threads["MainThread"]["gil"] is not is_free_threaded
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
        if any(thread["os_thread_id"] == 0 for thread in json.loads(theirs.stdout)):
            pytest.skip("py-spy does not know this Python, and reads nonsense")
        ours = json.loads(hotspan_command("dump", "--pid", str(process.pid), "--hotspan-json").stdout)

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
    seconds = "5" if python == Path(sys.executable) else "1.5"
    output = tmp_path / "shares.txt"
    # The program inherits the priority.
    told = hotspan_command(
        "record", "-r", "1000", "-o", output, "--", python, "-c", SHARES, seconds, preexec_fn=go_first
    )
    assert told.returncode == 0, told.stderr
    took = json.loads(told.stdout.splitlines()[-1])
    counts = dict.fromkeys(took, 0)
    for stack, count in collapsed(output):
        for name in took:
            counts[name] += count * any(frame.startswith(f"{name} (") for frame in stack)
    shares = {name: count / sum(counts.values()) for name, count in counts.items()}
    truth = {name: time / sum(took.values()) for name, time in took.items()}
    # Where the machine gave the sampler no processor, nobody knows what ran; it says how often that was.
    missed = re.search(r"(\d+) x missed_samples", told.stderr)
    unknown = int(missed[1]) / sum(counts.values()) if missed else 0.0
    assert shares == pytest.approx(truth, abs=0.03 + unknown), told.stderr
    # Samples stand for those that could not be taken in time, though not for longer than 100 ms, and for no more time
    # than there was.
    assert 0.5 < sum(counts.values()) / 1000 / sum(took.values()) < 1.1, told.stderr


def test_a_program_in_step_with_the_sampler_is_seen_whole(tmp_path: Path, hotspan_command: Any) -> None:
    # Half of each period of the sampler is spent here, half there, by the same clock: samples at one distance
    # from each other would see only one of them.
    program = (
        "import time\n"
        "def here(until):\n    while time.monotonic() < until: pass\n"
        "def there(until):\n    while time.monotonic() < until: pass\n"
        "start = time.monotonic()\n"
        "for turn in range(200):\n"
        "    here(start + turn * 0.01 + 0.005)\n    there(start + turn * 0.01 + 0.01)\n"
    )
    output = tmp_path / "step.txt"
    command = ("record", "-r", "100", "-o", output, "--", sys.executable, "-c", program)
    told = hotspan_command(*command, preexec_fn=go_first)
    assert told.returncode == 0, told.stderr
    counts = Counter(
        {
            name: sum(
                count for stack, count in collapsed(output) if any(f.startswith(f"{name} (") for f in stack)
            )
            for name in ("here", "there")
        }
    )
    assert min(counts.values()) > 0.25 * sum(counts.values()), counts


def test_a_recording_that_is_killed_leaves_what_there_was(tmp_path: Path, hotspan_command: Any) -> None:
    output = tmp_path / "killed.svg"
    with running(SHARES, "60") as target:
        command = [HOTSPAN, "record", "-r", "500", "-o", output, "--pid", str(target.pid)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            spool = tmp_path / "killed.svg.spool.hotspan"
            deadline = time.monotonic() + 30
            grown = size = 0
            while grown < 3 and time.monotonic() < deadline:
                time.sleep(0.3)
                before = size
                size = spool.stat().st_size if spool.exists() else 0
                grown += size > before
            process.kill()
            process.communicate()
    assert not output.exists()
    tree = hotspan_command("tree", spool, "--json")
    assert tree.returncode == 0, tree.stderr
    assert "fifty" in tree.stdout
    # The next recording to the same name takes another file, and leaves this one alone.
    told = hotspan_command("record", "-o", output, "--", sys.executable, "-c", "pass")
    assert told.returncode == 0, told.stderr
    assert output.exists()
    assert [path.name for path in tmp_path.iterdir() if "spool" in path.name] == [spool.name]


def test_memory_does_not_grow_with_the_number_of_samples(tmp_path: Path) -> None:
    def resident(pid: int) -> int:
        text = Path(f"/proc/{pid}/statm").read_text()
        return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")

    output = tmp_path / "long.hotspan"
    with running(STANDING) as target:
        # Seven threads 5,000 times a second: 32 bytes each would be a megabyte a second.
        command = [HOTSPAN, "record", "-i", "-r", "5000", "-o", output, "--pid", str(target.pid)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(2)
            early = resident(process.pid)
            time.sleep(2.5)
            late = resident(process.pid)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert late - early < 1 << 20, (early, late)
    assert output.exists()
    assert list(tmp_path.iterdir()) == [output]


def test_a_child_of_a_moment_is_seen(tmp_path: Path, hotspan_command: Any) -> None:
    child = "def brief():\n    sum(number * number for number in range(1_500_000))\nbrief()"
    program = (
        "import subprocess, sys, time\ntime.sleep(0.3)\n"
        f"subprocess.run([sys.executable, '-S', '-c', {child!r}])\ntime.sleep(0.1)\n"
    )
    output = tmp_path / "children.txt"
    told = hotspan_command("record", "-s", "-r", "200", "-o", output, "--", sys.executable, "-c", program)
    assert told.returncode == 0, told.stderr
    assert any("brief" in frame for stack, _ in collapsed(output) for frame in stack), told.stderr


def test_the_exit_code_and_the_record_of_a_command_are_kept(tmp_path: Path, hotspan_command: Any) -> None:
    output = tmp_path / "run.hotspan"
    program = "import sys, time\nend = time.time() + 0.5\nwhile time.time() < end: pass\nsys.exit(7)"
    told = hotspan_command("record", "-o", output, "--", sys.executable, "-c", program)
    assert told.returncode == 7, told.stderr
    tree = json.loads(hotspan_command("tree", output, "--json").stdout)
    assert tree[0]["rows"][0]["function"] == "<module>"
    killed = "import os, signal, time\nend = time.time() + 0.3\nwhile time.time() < end: pass\nos.kill(os.getpid(), 9)"
    told = hotspan_command("record", "-o", output, "--", sys.executable, "-c", killed)
    assert told.returncode == -signal.SIGKILL, "as the program ended"
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
    assert nowhere.returncode == 2, "as of `hotspan run`"
    assert "hint:" in nowhere.stderr
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


class Terminal:
    """`hotspan top` on a terminal of its own."""

    def __init__(self, pid: int) -> None:
        self.ours, theirs = pty.openpty()
        self.resize(24, 100)
        self.before = termios.tcgetattr(theirs)
        command = [HOTSPAN, "top", "--pid", str(pid), "--delay", "0.2"]
        # A session of its own, whose terminal this is: keys that stand for signals work.
        self.process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self.theirs = theirs
        self.shown = b""

    def resize(self, rows: int, columns: int) -> None:
        """Give the window another size."""
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: bytes) -> None:
        """Type."""
        os.write(self.ours, keys)

    def until(self, text: bytes, times: int = 1) -> bytes:
        """Read until a text is shown so many times; what was shown since the last time is the answer."""
        start, deadline = len(self.shown), time.monotonic() + 30
        while self.shown.count(text, start) < times:
            assert time.monotonic() < deadline, (text, self.shown[-2000:])
            if select.select([self.ours], [], [], 1)[0]:
                self.shown += os.read(self.ours, 65536)
        return self.shown[start:]

    def end(self) -> int:
        """Wait for the end; the terminal must be as it was."""
        self.until(b"\x1b[?1049l")
        code = self.process.wait(timeout=30)
        assert termios.tcgetattr(self.theirs) == self.before
        os.close(self.theirs)
        os.close(self.ours)
        return code


def test_the_live_screen_has_its_views_and_is_left_with_q() -> None:
    with running(SHARES, "60") as target:
        terminal = Terminal(target.pid)
        screen = terminal.until(b"spin (")
        for part in (b"GIL ", b"threads 1", b"Own %", b"o own*", b"q quit"):
            assert part in screen, part
        terminal.press(b"t")
        terminal.until(b"t total*")
        terminal.press(b"l")
        terminal.until(b"l lines*")
        assert b"Line" in terminal.until(b"spin (")
        terminal.press(b"h")
        assert b"Busy %" in terminal.until(b"h threads*")
        terminal.until(f"({target.pid})".encode())
        terminal.press(b"o")
        terminal.until(b"o own*")
        # A narrow and low window: nothing is drawn beyond it.
        terminal.resize(8, 40)
        os.kill(terminal.process.pid, signal.SIGWINCH)
        # The first picture may have begun before, the second may have the old size.
        narrow = terminal.until(b"\x1b[J", times=3).split(b"\x1b[J")[2].rpartition(b"\x1b[H")[2]
        assert narrow.count(b"\r\n") == 7
        lines = narrow.replace(b"\x1b[K", b"").split(b"\r\n")
        assert max(len(line.rstrip(b"\r")) for line in lines) <= 40
        terminal.press(b"q")
        assert terminal.end() == 0


def test_ctrl_c_and_the_end_of_the_program_leave_the_terminal_as_it_was() -> None:
    with running(SHARES, "60") as target:
        interrupted = Terminal(target.pid)
        interrupted.until(b"spin (")
        interrupted.press(b"\x03")
        assert interrupted.end() == 0
        ending = Terminal(target.pid)
        ending.until(b"spin (")
        target.kill()
        target.wait()
        assert ending.end() == 0
