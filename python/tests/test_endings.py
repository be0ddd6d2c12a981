"""``hotspan run`` of programs that end in other ways than by their last line: what they did until then is recorded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import hotspan
from test_run_deaths import report
from test_run_operators import WAIT, counts, run

pytest.importorskip("torch")

MULTIPLY = """
import os, signal, sys, time
import torch
def multiply(count):
    for _ in range(count):
        torch.ones(8, 8) @ torch.ones(8, 8)
"""


def missing(folder: Path) -> list[str]:
    found = report(folder, "program.hotspan")["missing"]
    assert isinstance(found, list)
    # Most programs here run without samples.
    return [text for text in found if "no samples" not in text]


def test_a_program_that_becomes_another(tmp_path: Path) -> None:
    """Three programs in one process; before the first two, a search for the program in several folders."""
    program = MULTIPLY + textwrap.dedent("""
        stage = int(sys.argv[1]) if len(sys.argv) > 1 else 0
        multiply(100)
        arguments = [sys.executable, sys.argv[0], str(stage + 1)]
        if stage == 0:
            os.environ["PATH"] = "/nonexistent:" + os.path.dirname(sys.executable)
            os.execvp(os.path.basename(sys.executable), arguments)
        if stage == 1:
            variables = dict(os.environ, PYTHONPATH="elsewhere", STAGE="2")
            del variables["HOTSPAN_RUN"]
            os.execve(sys.executable, arguments, variables)
        assert os.environ["STAGE"] == "2"
        sys.exit(4)
    """)
    seen = run(tmp_path, program)
    assert seen.returncode == 4, seen.stderr
    assert counts(tmp_path / "program.hotspan")["aten::mm"] == 300
    assert not missing(tmp_path)
    parts = report(tmp_path, "program.hotspan")["report"]
    assert isinstance(parts, dict)
    (imports, *_) = [row for row in parts["Where the time went"] if row["activity"] == "importing modules"]
    (ours, *_) = [row for row in parts["Where the time went"] if row["activity"] == "hotspan itself"]
    assert ours["time"] < imports["time"], "the second and the third program are not what we wrote"


def test_a_program_that_does_not_become_another_goes_on(tmp_path: Path) -> None:
    program = MULTIPLY + textwrap.dedent("""
        multiply(100)
        broken = os.path.abspath("broken")
        with open(broken, "wb") as file:
            file.write(b"neither a script nor a program")
        os.chmod(broken, 0o755)
        for arguments in ((broken, [broken]), ("/nonexistent/program", ["program"])):
            try:
                os.execv(*arguments)
            except OSError as error:
                print(type(error).__name__, error.errno)
        multiply(100)
    """)
    seen = run(tmp_path, program)
    assert (seen.returncode, seen.stdout) == (0, "OSError 8\nFileNotFoundError 2\n"), seen.stderr
    assert counts(tmp_path / "program.hotspan")["aten::mm"] == 200
    assert not missing(tmp_path)


# How a program ends, and the signal that it ends by.
ENDS = {
    "os.kill(os.getpid(), signal.SIGKILL)": signal.SIGKILL,
    "signal.raise_signal(signal.SIGTERM)": signal.SIGTERM,
    "os.killpg(0, signal.SIGHUP)": signal.SIGHUP,
    "os.abort()": signal.SIGABRT,
    "os.kill(os.getppid(), signal.SIGTERM)\ntime.sleep(60)": signal.SIGTERM,
    "import ctypes\ngetattr(ctypes.CDLL(None), 'raise')(signal.SIGHUP)": signal.SIGHUP,
    """
def again(number, frame):
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
signal.signal(signal.SIGTERM, again)
os.kill(os.getppid(), signal.SIGTERM)
time.sleep(60)
""": signal.SIGTERM,
}


@pytest.fixture(autouse=True)
def _default_hangup() -> Iterator[None]:
    """Have programs begin with the default action, also where the tests run under ``nohup``."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("end", ENDS)
def test_all_is_there_up_to_the_signal(tmp_path: Path, end: str) -> None:
    program = MULTIPLY + ("os.setpgid(0, 0)\n" if "killpg" in end else "") + "multiply(300)\n" + end
    seen = run(tmp_path, program, "--rate", "0")
    assert seen.returncode == -ENDS[end], seen.stderr
    assert counts(tmp_path / "program.hotspan")["aten::mm"] == 300
    told = missing(tmp_path)
    if end == "os.abort()":
        assert not told
    else:
        (told_once,) = told
        assert f"was killed by {ENDS[end].name}: the recording was cut off, at most the last " in told_once
        assert "program.py" in told_once
        assert told_once.endswith(" s are missing")


def test_a_signal_that_the_program_lives_through_ends_nothing(tmp_path: Path) -> None:
    program = MULTIPLY + textwrap.dedent("""
        signal.signal(signal.SIGTERM, lambda *_: print("handled"))
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGCHLD)
        os.kill(os.getpid(), 0)
        multiply(100)
        try:
            os.kill(os.getpid(), 1000)
        except OSError as error:
            print(error.errno)
        try:
            os.kill("me", 9)
        except TypeError:
            print("a number, please")
    """)
    seen = run(tmp_path, program, "--rate", "0")
    assert (seen.returncode, seen.stdout) == (0, "handled\n22\na number, please\n"), seen.stderr
    assert counts(tmp_path / "program.hotspan")["aten::mm"] == 100
    assert not missing(tmp_path)


def test_a_kill_from_elsewhere_finds_most_on_the_disk(tmp_path: Path) -> None:
    """No code of the program runs when it is killed, and none of ours."""
    program = (
        MULTIPLY
        + WAIT
        + "multiply(300)\nwait_for_the_agent()\nprint(os.getpid(), flush=True)\ntime.sleep(60)"
    )
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, "-m", "hotspan", "run", "--rate", "0", "program.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        os.kill(int(process.stdout.readline()), signal.SIGKILL)
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert counts(tmp_path / "program.hotspan")["aten::mm"] == 300
    (told,) = missing(tmp_path)
    assert "was killed by SIGKILL" in told


def test_a_child_that_is_terminated_lacks_nothing(tmp_path: Path) -> None:
    program = MULTIPLY + textwrap.dedent("""
        import multiprocessing
        def work(done):
            multiply(300)
            done.set()
            time.sleep(60)
        for method in ("fork", "spawn"):
            if __name__ == "__main__":
                context = multiprocessing.get_context(method)
                done = context.Event()
                child = context.Process(target=work, args=(done,))
                child.start()
                done.wait()
                child.terminate()
                child.join()
                print(child.exitcode)
    """)
    seen = run(tmp_path, program, "--rate", "0")
    assert (seen.returncode, seen.stdout) == (0, "-15\n-15\n"), seen.stderr
    assert counts(tmp_path / "program.hotspan")["aten::mm"] == 600
    assert not missing(tmp_path)


def test_a_child_without_a_last_word_is_told_by_its_command(tmp_path: Path) -> None:
    end = "wait_for_the_agent()\nimport ctypes\nctypes.CDLL(None)._exit(3)\n"
    (tmp_path / "worker.py").write_text(WAIT + end)
    seen = run(
        tmp_path, "import subprocess, sys\nsubprocess.run([sys.executable, 'worker.py'])", "--rate", "0"
    )
    assert seen.returncode == 0, seen.stderr
    (told,) = missing(tmp_path)
    assert "worker.py) ended without a last word: the recording was cut off" in told


def test_replaced_functions_are_called_as_before(tmp_path: Path) -> None:
    """They can be pickled, and errors are those of the originals."""
    program = """
        import os, pickle, signal
        replaced = (os._exit, os.abort, os.execv, os.execve, os.kill, os.killpg, os.posix_spawn, signal.raise_signal)
        for function in replaced:
            assert pickle.loads(pickle.dumps(function)) is function, function
            assert function.__doc__
        print(signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP))
        no_words, no_environment = lambda: os.execv("/bin/true", []), lambda: os.execve("/bin/true", ["true"], 5)
        for wrong in (no_words, no_environment, os.kill, lambda: os.posix_spawn("/bin/true", 5, {})):
            try:
                wrong()
            except (TypeError, ValueError) as error:
                print(type(error).__name__)
    """
    seen = run(tmp_path, program, "--rate", "0")
    assert seen.returncode == 0, seen.stderr
    bare = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert seen.stdout == bare.stdout


def test_an_ending_is_a_fact_of_the_recording(tmp_path: Path) -> None:
    seen = run(tmp_path, "import os; os.kill(os.getpid(), 9)", "--rate", "0")
    assert seen.returncode == -9
    (process,) = hotspan.open(tmp_path / "program.hotspan").metadata["hotspan.processes"]
    assert process["is_cut_off"] is True
    assert process["command"].endswith("program.py")
