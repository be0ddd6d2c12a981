"""The sampler's signal in programs that handle, reset, block and inherit signals: they get what they sent and go on."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hotspan import _core

BURN = """
    import ctypes, os, signal, sys, threading, time
    def burn(seconds):
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            sum(range(500))
    def after():
        burn(0.3)
"""

RESET_ALL = """
    def reset_all():
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, 32, 33}:
            if signal.getsignal(number) is not None:
                signal.signal(number, signal.getsignal(number))
"""

SIGACTION = """
    libc = ctypes.CDLL(None)
    libc.signal.restype = libc.signal.argtypes = None
    def set_all(action):
        for number in range(1, 65):
            if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGINT):
                libc.signal(ctypes.c_int(number), ctypes.c_void_p(action))
"""

# What each does to signals; all of them go on with `after`, where sampling must be as it was.
PROGRAMS = {
    "resets in a loop": RESET_ALL
    + """
    end = time.thread_time() + 0.4
    while time.thread_time() < end:
        reset_all()
    """,
    "saves and restores, as trainers do": """
    saved = {s: signal.getsignal(s) for s in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}}
    print(sorted(int(s) for s, action in saved.items() if action is None))
    for _ in range(5):
        burn(0.05)
        for number, action in saved.items():
            if action is not None:
                signal.signal(number, action)
    """,
    "default by libc in a loop": SIGACTION
    + """
    end = time.thread_time() + 0.4
    while time.thread_time() < end:
        set_all(0)
    """,
    "ignored by libc in a loop": SIGACTION
    + """
    end = time.thread_time() + 0.4
    while time.thread_time() < end:
        set_all(1)
    set_all(0)
    """,
    "resets in threads": SIGACTION
    + """
    def keep():
        end = time.monotonic() + 0.4
        while time.monotonic() < end:
            set_all(0)
    threads = [threading.Thread(target=keep) for _ in range(2)]
    for thread in threads: thread.start()
    burn(0.2)
    for thread in threads: thread.join()
    """,
    "resets in a forked child": RESET_ALL
    + """
    for _ in range(3):
        child = os.fork()
        if child == 0:
            reset_all()
            burn(0.1)
            os._exit(7)
        burn(0.05)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """,
    "blocks and unblocks": """
    for _ in range(3):
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        burn(0.2)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    """,
}


def start(folder: Path, program: str, *recorder: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(textwrap.dedent(BURN) + textwrap.dedent(program))
    command = [*recorder, sys.executable, "program.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def both(folder: Path, program: str) -> list[list[str]]:
    """Run a program without hotspan and with it, which nobody may notice; the functions in samples with it."""
    without = start(folder, program)
    recorder = (sys.executable, "-m", "hotspan", "run", "-o", "x.hotspan", "--rate", "500", "--")
    sampled = start(folder, program, *recorder)
    assert (sampled.returncode, sampled.stdout) == (without.returncode, without.stdout), sampled.stderr
    rows = _core.sample_stacks(_core.open(str(folder / "x.hotspan")))
    return [[frame[0] for frame in row[5]] for row in rows if row[3] == "running"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_a_program_does_to_signals_ends_it_or_the_sampling(name: str, tmp_path: Path) -> None:
    stacks = both(tmp_path, textwrap.dedent(PROGRAMS[name]) + "\nafter()\nprint('alive')\n")
    assert sum("after" in stack for stack in stacks) > 10
    during = [
        stack
        for stack in stacks
        if not {"burn", "set_all", "reset_all"}.isdisjoint(stack) and "after" not in stack
    ]
    assert len(during) > 5


@pytest.mark.parametrize(
    "command", [["true"], ["sleep", "0.2"], [sys.executable, "-c", "print(sum(range(10**6)))"]], ids=str
)
def test_a_program_that_is_executed_instead_does_not_meet_the_signal(
    command: list[str], tmp_path: Path
) -> None:
    program = f"""
        for _ in range(4): threading.Thread(target=burn, args=(5,), daemon=True).start()
        burn(0.1)
        os.execvp({command[0]!r}, {command!r})
    """
    both(tmp_path, textwrap.dedent(program))


def test_a_program_gets_the_signals_that_it_sent(tmp_path: Path) -> None:
    program = """
        numbers = [signal.SIGURG, signal.SIGWINCH, signal.SIGRTMIN, signal.SIGRTMAX, signal.SIGRTMAX - 1]
        got = {number: 0 for number in numbers}
        def count(number, frame):
            got[number] += 1
        burn(0.1)
        for number in numbers:
            signal.signal(number, count)
        for _ in range(20):
            for number in numbers:
                signal.raise_signal(number)
            burn(0.01)
        print([got[number] for number in numbers])
        print(signal.getsignal(signal.SIGURG) is count)
        signal.signal(signal.SIGURG, signal.SIG_DFL)
        after()
        print([got[number] for number in numbers])
    """
    stacks = both(tmp_path, textwrap.dedent(program))
    assert sum("after" in stack for stack in stacks) > 10


def test_waiting_for_any_signal_waits_for_the_one_that_was_sent(tmp_path: Path) -> None:
    program = """
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        for _ in range(5):
            burn(0.05)
            threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGTERM)).start()
            print(signal.sigwait(signal.valid_signals()))
    """
    both(tmp_path, textwrap.dedent(program))


def test_what_python_says_about_signals_is_the_same(tmp_path: Path) -> None:
    program = """
        import _signal, inspect, pickle
        for module in (signal, _signal):
            for name in ("signal", "pthread_sigmask"):
                function = getattr(module, name)
                print(function.__name__, function.__qualname__, function.__module__, type(function))
                print(inspect.signature(function), function.__doc__)
                print(pickle.loads(pickle.dumps(function)) is function)
        print({int(s): signal.getsignal(s) for s in signal.valid_signals()})
        for wrong in ((), (1,), (1000, 0), ("x", 0), (signal.SIGURG, "x"), (signal.SIGKILL, 0)):
            try:
                signal.signal(*wrong)
            except Exception as error:
                print(type(error), error)
        print(signal.pthread_sigmask(signal.SIG_BLOCK, (s for s in [signal.SIGUSR1, signal.SIGURG])))
        print(signal.pthread_sigmask(signal.SIG_SETMASK, []))
        print(signal.signal(signal.SIGURG, signal.SIG_IGN), signal.signal(signal.SIGURG, signal.SIG_DFL))
    """
    both(tmp_path, textwrap.dedent(program))
