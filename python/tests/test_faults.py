"""What happens to a program under ``hotspan run``: it prints and ends as without, and what was written is readable.

``FAULTS`` is the table. Others have tests of their own: devices and the kernel's killer (``test_run_deaths.py``),
limits (``test_run_limits.py``), clocks (``test_clock_jump.py``), forks under strain (``test_fork_stress.py``), places
that are refused before a program starts (``test_private_files.py``).
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import hotspan
from hotspan._core import run_cli

# Nothing here takes nearly as long: who does, hangs.
TIME_LIMIT = 60
INCOMPLETE = "the recording is not complete"

PRELUDE = """
import ctypes, os, resource, shutil, signal, subprocess, sys, threading, time
FUNCTIONS = [eval(f"lambda: sum(range({number}))") for number in range(300, 400)]
def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for function in FUNCTIONS: function()
def say(*words):
    print(*words, flush=True)
"""


@dataclass(frozen=True)
class Fault:
    """What happens to a program, and what is expected besides the same output and exit code."""

    name: str
    program: str
    says: str | None = None
    """What hotspan says on stderr, once."""
    is_whole: bool = True
    """Whether the recording has its end."""
    limit: Callable[[], None] | None = None
    """Done in the process before the command starts."""
    as_root: bool = False
    options: tuple[str, ...] = ()


def limited(what: int, most: int) -> Callable[[], None]:
    """Limits a process as ``ulimit`` does."""
    return lambda: resource.setrlimit(what, (most, most))


FAULTS = [
    Fault("kill-9-program", "say('a'); work(1.3); os.kill(os.getpid(), signal.SIGKILL)", is_whole=False),
    Fault(
        "kill-9-worker",
        """
        child = os.fork()
        if child == 0:
            work(30)
        work(1.3)
        os.kill(child, signal.SIGKILL)
        say(os.waitpid(child, 0)[1])
        """,
        is_whole=False,
    ),
    Fault("sigterm", "say('a'); work(0.2); os.kill(os.getpid(), signal.SIGTERM); work(9)", is_whole=False),
    Fault(
        "sigterm-handled",
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9)); os.kill(os.getpid(), 15); work(9)",
    ),
    Fault(
        "stop-and-continue",
        """
        subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -STOP {os.getpid()}; sleep 1.2; kill -CONT {os.getpid()}"])
        work(1)
        say("continued")
        """,
    ),
    Fault("segfault", "say('a'); work(1.2); ctypes.string_at(0)", is_whole=False),
    Fault("abort", "say('a'); work(1.2); os.abort()"),
    Fault("exit-from-c", "say('a'); work(1.2); ctypes.CDLL(None)._exit(7)", is_whole=False),
    Fault(
        "exec",
        "say('a'); work(0.2); os.execv(sys.executable, [sys.executable, '-c', 'print(2); raise SystemExit(3)'])",
    ),
    Fault("exec-no-python", "say('a'); work(0.2); os.execv('/bin/sh', ['sh', '-c', 'echo b; exit 4'])"),
    Fault("close-all-descriptors", "os.closerange(3, 4096); work(1.2); say(open('/dev/null').fileno())"),
    Fault(
        "dup2-over-descriptors",
        """
        work(1.1)
        own = os.open("own", os.O_RDWR | os.O_CREAT)
        for descriptor in range(3, 100):
            os.dup2(own, descriptor)
        work(1.2)
        say(os.fstat(own).st_size)
        """,
    ),
    Fault(
        "signals-taken",
        """
        seen = []
        mine = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}
        for number in mine:
            signal.signal(number, lambda number, frame: seen.append(number))
        for number in (signal.SIGUSR1, signal.SIGALRM, signal.SIGTERM, signal.SIGHUP):
            os.kill(os.getpid(), number)
            work(0.1)
        signal.pthread_sigmask(signal.SIG_BLOCK, mine)
        work(0.5)
        say([int(number) for number in seen if number != signal.SIGURG])
        """,
    ),
    Fault(
        "file-size-limit-in-program",
        """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
        work(2.5)
        say("done")
        sys.exit(5)
        """,
        says=INCOMPLETE,
        is_whole=False,
        options=("--rate", "400"),
    ),
    Fault(
        "folder-of-the-recording-deleted",
        "work(1.2); shutil.rmtree('x.hotspan.spool', ignore_errors=True); work(1.2); say('done'); sys.exit(6)",
        says=INCOMPLETE,
        is_whole=False,
    ),
    Fault(
        "out-of-address-space",
        """
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 50_000_000, used + 50_000_000))
        try:
            bytearray(500_000_000)
        except MemoryError:
            say("no memory")
        work(1.2)
        sys.exit(8)
        """,
    ),
    Fault(
        "ulimit-n",
        "files = [open('/dev/null') for _ in range(48)]; work(1.2); say(len(files))",
        limit=limited(resource.RLIMIT_NOFILE, 64),
    ),
    Fault(
        "ulimit-v",
        "work(0.3); say(len(bytearray(100_000_000)))",
        limit=limited(resource.RLIMIT_AS, 1_500_000_000),
    ),
    Fault("ulimit-f", "work(0.3); say('done')", limit=limited(resource.RLIMIT_FSIZE, 4_000_000)),
    Fault(
        "setuid",
        "work(0.2); os.setgid(65534); os.setuid(65534); work(1.5); say(os.getuid()); sys.exit(2)",
        says=INCOMPLETE,
        is_whole=False,
        as_root=True,
    ),
    Fault(
        "chroot",
        "os.mkdir('root'); work(0.2); os.chroot('root'); os.chdir('/'); work(1.5); say(os.listdir('/')); sys.exit(2)",
        says=INCOMPLETE,
        is_whole=False,
        as_root=True,
    ),
    Fault(
        "fork-with-threads-born",
        """
        is_over = threading.Event()
        def bear():
            while not is_over.is_set():
                thread = threading.Thread(target=sum, args=(range(100),))
                thread.start()
                thread.join()
        parents = [threading.Thread(target=bear) for _ in range(3)]
        for thread in parents: thread.start()
        codes = []
        for _ in range(40):
            child = os.fork()
            if child == 0:
                work(0.001)
                os._exit(3)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        is_over.set()
        for thread in parents: thread.join()
        say(codes)
        """,
    ),
    Fault(
        "300-children",
        """
        children = []
        for number in range(300):
            child = os.fork()
            if child == 0:
                os._exit(number % 100)
            children.append(child)
        say(sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
        """,
    ),
    Fault(
        "blocked-threads",
        """
        reading, _ = os.pipe()
        lock = threading.Lock()
        lock.acquire()
        blocked = [(os.read, (reading, 1)), (lock.acquire, ()), (time.sleep, (3600,)), (threading.Event().wait, ())]
        for target, arguments in blocked:
            threading.Thread(target=target, args=arguments, daemon=True).start()
        work(1.2)
        say("done")
        sys.exit(4)
        """,
    ),
]


@dataclass(frozen=True)
class Seen:
    """How a command went."""

    stdout: str
    stderr: str
    code: int


def watch(command: list[str], folder: Path, before: Callable[[], None] | None = None) -> Seen:
    """Run a command to its end; one that hangs is killed with all its processes, and fails the test."""
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=before,
    ) as process:  # fmt: skip
        try:
            stdout, stderr = process.communicate(timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            pytest.fail(f"hangs: {command}\n{stdout}\n{stderr}")
    return Seen(stdout, stderr, process.returncode)


def write_program(folder: Path, program: str) -> None:
    """Write the program that a fault happens to."""
    folder.mkdir(exist_ok=True)
    (folder / "program.py").write_text(PRELUDE + textwrap.dedent(program))


RUN = [sys.executable, "-m", "hotspan", "run", "-o", "x.hotspan"]


def check_readable(folder: Path) -> Path:
    """Whatever lies there as a recording can be opened; returns it."""
    spools = [path for path in folder.glob("x.hotspan.spool*") if path.is_dir()]
    found = [path for path in [folder / "x.hotspan", *spools] if path.exists()]
    assert found, list(folder.iterdir())
    for path in found:
        assert run_cli(["hotspan", "info", str(path)]) == 0
        assert run_cli(["hotspan", "report", str(path)]) == 0
    return found[0]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_program_is_the_same_with_a_fault(fault: Fault, tmp_path: Path) -> None:
    if fault.as_root and os.getuid() != 0:
        pytest.skip("needs root")
    tmp_path.chmod(0o755)
    write_program(tmp_path / "without", fault.program)
    write_program(tmp_path / "with", fault.program)
    without = watch([sys.executable, "program.py"], tmp_path / "without", fault.limit)
    seen = watch([*RUN, *fault.options, "program.py"], tmp_path / "with", fault.limit)
    assert (seen.stdout, seen.code) == (without.stdout, without.code), seen.stderr
    assert "panicked" not in seen.stderr
    if fault.says is not None:
        assert seen.stderr.count(fault.says) == 1, seen.stderr
    path = check_readable(tmp_path / "with")
    if fault.is_whole:
        assert INCOMPLETE not in seen.stderr, seen.stderr
        assert "truncated_file" not in hotspan.open(path).losses
    else:
        # The report says so; lines are as long as a terminal is wide.
        words = " ".join(seen.stderr.split())
        assert "was cut off" in words or "was not recorded" in words, seen.stderr


ENDLESS = "say('ready'); work(600)"


@contextlib.contextmanager
def started(folder: Path, program: str) -> Iterator[subprocess.Popen[str]]:
    """A program under hotspan that said that it is ready a second ago, when something of it is on the disk."""
    write_program(folder, program)
    with subprocess.Popen(
        [*RUN, "program.py"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(1.5)
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_all_are_killed(tmp_path: Path) -> None:
    """As a machine that goes down, or a job that is cancelled: only the folder is left."""
    with started(tmp_path, "child = os.fork()\nif child: say('ready')\nwork(600)") as process:
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait(TIME_LIMIT) == -signal.SIGKILL
    path = check_readable(tmp_path)
    assert path.name == "x.hotspan.spool"


def test_the_launcher_is_killed(tmp_path: Path) -> None:
    """The program goes on to its end."""
    with started(tmp_path, "say('ready'); work(3); open('ended', 'w').write('yes')") as process:
        process.kill()
        process.wait(TIME_LIMIT)
        for _ in range(TIME_LIMIT * 20):
            if (tmp_path / "ended").exists():
                break
            time.sleep(0.05)
        assert (tmp_path / "ended").read_text() == "yes"
    assert check_readable(tmp_path).name == "x.hotspan.spool"


@pytest.mark.parametrize("milliseconds", [0, 2, 5, 10, 20, 40, 80])
def test_the_launcher_is_killed_at_the_end(tmp_path: Path, milliseconds: int) -> None:
    """It reads the files of the processes, writes the recording, then takes them away: one of both is always there."""
    with started(
        tmp_path, "child = os.fork()\nif child: say('ready')\nwork(2)\nif child: os.wait(); say('end')"
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "end\n"
        time.sleep(milliseconds / 1_000)
        process.kill()
        process.wait(TIME_LIMIT)
    assert check_readable(tmp_path).name in ("x.hotspan", "x.hotspan.spool")


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name
)
def test_a_signal_for_the_launcher_is_for_the_program(tmp_path: Path, number: signal.Signals) -> None:
    program = f"signal.signal({int(number)}, lambda *_: (say('asked'), sys.exit(11)))\n{ENDLESS}"
    with started(tmp_path, program) as process:
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=TIME_LIMIT)
    assert (stdout, process.returncode) == ("asked\n", 11), stderr
    assert "truncated_file" not in hotspan.open(check_readable(tmp_path)).losses


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of half a megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("file systems cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


FILL = """
def fill():
    with open("fill", "wb", buffering=0) as file:
        try:
            while True: file.write(bytes(4096))
        except OSError as error:
            say(error.errno)
"""


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("fill(); work(2.5); say('done'); sys.exit(5)", "not complete"),
        ("work(1.3); fill(); work(1.5); say('done'); sys.exit(5)", "not complete"),
        ("work(2.5); say('done'); fill(); sys.exit(5)", "not "),
    ],
    ids=["at-the-start", "while-recording", "at-the-end"],
)
def test_a_disk_that_gets_full(small_disk: Path, program: str, said: str) -> None:
    write_program(small_disk, FILL + program)
    seen = watch([*RUN, "--rate", "400", "program.py"], small_disk)
    assert (seen.stdout.split(), seen.code) in ((["28", "done"], 5), (["done", "28"], 5)), seen.stderr
    assert said in seen.stderr, seen.stderr
    assert "panicked" not in seen.stderr
    check_readable(small_disk)
