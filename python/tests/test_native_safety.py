"""The sampler in other people's programs: forks, signals, exits, threads that come and go. Nothing may change."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hotspan
from interpreters import VERSIONS, importing_or_skip
from native_programs import BURN, run


def started(
    tmp_path: Path, *arguments: str | Path, python: Path | None = None, sampled: bool = True, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program under the sampler, or as Python does; what hotspan itself says is left out."""
    command: list[str | Path] = [python or sys.executable, *arguments]
    if sampled:
        hotspan_command = Path(sys.executable).with_name("hotspan")
        record = [hotspan_command, "record", "--native", "-r", "500", "-o", tmp_path / "out.hotspan"]
        command = [*record, "--", *command]
    defaults: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 60}
    done = subprocess.run([str(word) for word in command], check=False, **{**defaults, **options})
    lines = done.stderr.splitlines(keepends=True)
    done.stderr = "".join(line for line in lines if not line.startswith(("wrote ", "note: ")))
    return done


def recorded(tmp_path: Path) -> list[list[str]]:
    """The stacks in the file that the sampler left, from the outermost frame."""
    rows = hotspan._core.sample_stacks(hotspan._core.open(str(tmp_path / "out.hotspan")))
    return [[frame[0] for frame in reversed(row[5])] for row in rows]


AWKWARD = {
    "plain": "import sys\nprint(sys.argv[1:], __name__, __file__, sys.path[0])",
    "exit_code": "import sys\nsys.exit(7)",
    "exit_text": "import sys\nsys.exit('bye')",
    "exception": "def f():\n    raise ValueError('no')\nf()",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise KeyError('k') from error",
    "syntax": "def f(:\n    pass",
    "recursion": "import sys\ndef f():\n    f()\ntry:\n    f()\nexcept RecursionError as e:\n    print('deep')",
    "atexit": "import atexit\natexit.register(print, 'last')\nprint('first')",
    "excepthook": "import sys\nsys.excepthook = lambda *a: print('mine', a[0].__name__)\n1 / 0",
    "os_exit": "import os\nprint('out', flush=True)\nos._exit(5)",
    "fork": "import os\npid = os.fork()\nif pid == 0:\n    os._exit(3)\nprint(os.waitpid(pid, 0)[1] >> 8)",
    "exec": "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'print(40 + 2)'])",
    "pickle": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)",
    "terminated": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
    "interrupted": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time\ntime.sleep(5)",
    "aborted": "import os\nos.abort()",
    "threads": "import threading\nt = threading.Thread(target=lambda: print('late'))\nt.start()",
    "spawn": "import multiprocessing as m\ndef f(x):\n    return x * x\nif __name__ == '__main__':\n"
    "    with m.get_context('spawn').Pool(1) as p:\n        print(p.map(f, [3]))",
    "forked_pool": "import multiprocessing as m\ndef f(x):\n    return x * x\nif __name__ == '__main__':\n"
    "    with m.get_context('fork').Pool(2) as p:\n        print(p.map(f, range(5)))",
    "stdin": "print(input() + '!')",
    "globals": "print(sorted(k for k in globals()))",
}


@pytest.mark.parametrize("name", AWKWARD)
def test_programs_behave_as_without_it(name: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(AWKWARD[name] + "\n")
    bare, sampled = (
        started(tmp_path, script, "a", "-b", sampled=sampled, input="text\n", cwd=tmp_path)
        for sampled in (False, True)
    )
    assert (sampled.returncode, sampled.stdout) == (bare.returncode, bare.stdout)
    assert sampled.stderr == bare.stderr
    # What was recorded can be read however the program ended.
    recorded(tmp_path)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_python_runs_programs_unchanged(version: str, tmp_path: Path) -> None:
    python = Path(importing_or_skip(version))
    script = tmp_path / "script.py"
    script.write_text(
        BURN + "def work():\n    burn(0.1)\nwork()\nimport sys\nprint(sys.argv, __file__)\n1 / 0\n"
    )
    bare, sampled = (started(tmp_path, script, "x", python=python, sampled=way) for way in (False, True))
    assert (sampled.returncode, sampled.stdout, sampled.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    stacks = [stack for stack in recorded(tmp_path) if "burn" in stack]
    assert stacks
    # Nothing of hotspan is in the stacks.
    assert all(stack[:3] == ["<module>", "work", "burn"] for stack in stacks)


@pytest.mark.parametrize(
    "arguments",
    [
        ["-m", "json.tool", "--help"],
        ["-c", "import sys; print(sys.argv, sys.path[0])", "x"],
        ["-m", "nothing"],
    ],
)
def test_modules_and_code_run_too(arguments: list[str], tmp_path: Path) -> None:
    bare, sampled = (started(tmp_path, *arguments, sampled=way, cwd=tmp_path) for way in (False, True))
    assert (sampled.returncode, sampled.stdout, sampled.stderr) == (bare.returncode, bare.stdout, bare.stderr)


def test_a_killed_program_leaves_what_there_was(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(BURN + "import os\nburn(0.2)\ntime.sleep(1.5)\nburn(0.1)\nos.kill(os.getpid(), 9)\n")
    assert started(tmp_path, script).returncode == -signal.SIGKILL
    assert any("burn" in stack for stack in recorded(tmp_path))


def test_signals_of_the_program_keep_working() -> None:
    program = (
        BURN
        + """
import signal, hotspan
seen = {"prof": 0, "alarm": 0}
def count(name): return lambda *_: seen.__setitem__(name, seen[name] + 1)
signal.signal(signal.SIGPROF, count("prof")); signal.signal(signal.SIGALRM, count("alarm"))
with hotspan.sample(rate=1000) as s:
    signal.setitimer(signal.ITIMER_PROF, 0.02, 0.02); signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    burn(0.3)
    signal.setitimer(signal.ITIMER_PROF, 0); signal.setitimer(signal.ITIMER_REAL, 0)
print(seen["prof"] > 3, seen["alarm"] > 3, len(s.samples()) > 20, s.trace.losses)
"""
    )
    done = run(program)
    assert done.stdout == "True True True {}\n", done.stdout + done.stderr


def test_a_program_that_takes_the_signal_keeps_it() -> None:
    program = (
        BURN
        + """
import signal, hotspan
taken = []
with hotspan.sample(rate=500) as s:
    burn(0.1)
    for number in (signal.SIGURG, *range(signal.SIGRTMIN, signal.SIGRTMAX)):
        signal.signal(number, lambda *_: taken.append(1))
    before = len(taken)
    burn(0.3)
    during = len(taken) - before
    signal.signal(signal.SIGURG, signal.SIG_DFL)
    burn(0.3)
seen = [x for x in s.samples() if x.state == "running" and any(f.name == "burn" for f in x.frames)]
# Sampled all the time: with native frames, without, and with them again.
kinds = [any(f.file.startswith("/") and ".so" in f.file or "python3" in f.file for f in x.frames) for x in seen]
print(s.trace.losses.get("signal_taken"), during, len(seen) > 10)
with hotspan.sample(rate=500) as again:
    burn(0.1)
print(again.trace.losses.get("signal_taken"), len(again.samples()) > 5)
"""
    )
    done = run(program)
    assert done.stdout == "1 0 True\nNone True\n", done.stdout + done.stderr


def test_threads_that_block_signals_are_counted_and_seen() -> None:
    program = (
        BURN
        + """
import signal, threading, hotspan
def deaf():
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.SIGRTMAX + 1))
    burn(0.6)
with hotspan.sample(rate=200) as s:
    thread = threading.Thread(target=deaf); thread.start(); thread.join()
seen = {f.name for x in s.samples() if x.state == "running" for f in x.frames}
print(s.trace.losses.get("deaf_thread"), "deaf" in seen)
"""
    )
    done = run(program)
    assert done.stdout == "1 True\n", done.stdout + done.stderr


def test_threads_come_and_go() -> None:
    program = (
        BURN
        + """
import threading, hotspan
with hotspan.sample(rate=1000) as s:
    for _ in range(20):
        group = [threading.Thread(target=burn, args=(0.004,)) for _ in range(8)]
        for thread in group: thread.start()
        for thread in group: thread.join()
    steady = [threading.Thread(target=burn, args=(0.05,)) for _ in range(6)]
    for thread in steady: thread.start()
    for thread in steady: thread.join()
numbers = {str(thread.native_id) for thread in steady}
print(len(numbers & {x.thread for x in s.samples() if x.state == "running"}))
"""
    )
    done = run(program)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 4


def test_a_forked_child_samples_for_itself() -> None:
    program = (
        BURN
        + """
import os, hotspan
with hotspan.sample(rate=500) as s:
    burn(0.05)
    pid = os.fork()
    if pid == 0:
        burn(0.05)
        s.stop()
        own = hotspan.sample(rate=500)
        with own: burn(0.2)
        os._exit(10 if len(own.samples()) > 5 else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    burn(0.1)
print(status, len(s.samples()) > 5)
"""
    )
    done = run(program)
    assert done.stdout == "10 True\n", done.stdout + done.stderr


def test_files_of_the_program_are_left_alone(tmp_path: Path) -> None:
    """A program that closes files it does not know, and changes its directory, keeps its own files as they are."""
    program = (
        BURN
        + """
import os, hotspan
with hotspan.sample(rate=500, path="out.hotspan"):
    os.closerange(3, 200)
    own = [open(f"own-{number}", "wb") for number in range(20)]
    os.chdir("/")
    burn(1.5)
print([os.fstat(file.fileno()).st_size for file in own] == [0] * 20)
"""
    )
    done = run(program, cwd=tmp_path)
    assert done.stdout == "True\n", done.stdout + done.stderr
    assert any("burn" in stack for stack in recorded(tmp_path))


def test_leaving_while_it_records_is_fine() -> None:
    program = BURN + "import hotspan\ns = hotspan.sample(rate=1000).start()\nburn(0.1)\nprint('done')"
    done = run(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_starting_and_stopping_often_keeps_no_memory() -> None:
    program = (
        BURN
        + """
import hotspan
def resident():
    with open("/proc/self/statm") as file: return int(file.read().split()[1]) * 4096
def cycles(count):
    for _ in range(count):
        with hotspan.sample(rate=1000): pass
cycles(60)
before = resident()
cycles(500)
print(resident() - before)
"""
    )
    done = run(program)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 6_000_000


def test_results_are_the_same() -> None:
    program = """
import sys, hotspan, contextlib
def work():
    values, seed = [], 12345
    for _ in range(150_000):
        seed = (seed * 1103515245 + 12345) % 2**31
        values.append(seed)
    return sum(i * v for i, v in enumerate(sorted(values))) % 1_000_003, "%.17g" % sum(1.0 / (v + 1) for v in values)
with hotspan.sample(rate=10_000) if sys.argv[1] == "on" else contextlib.nullcontext():
    result = work()
print(result)
"""
    assert run(program, "on").stdout == run(program, "off").stdout != ""


def test_deep_and_odd_stacks() -> None:
    program = (
        BURN
        + """
import sys, hotspan
sys.setrecursionlimit(5000)
def deep(n): return deep(n - 1) if n else burn(0.2)
def ünïcödé_名前(): return burn(0.1)
exec(compile("def made(): burn(0.1)", "<made at run time>", "exec"))
with hotspan.sample(rate=500) as s:
    deep(700); ünïcödé_名前(); made()
    code = None
    for i in range(3000):  # code objects that die
        exec(f"def f{i}(): return sum(range(200))\\nf{i}()")
found = {f.name for x in s.samples() for f in x.frames}
print(max(sum(f.name == "deep" for f in x.frames) for x in s.samples()) > 300, "ünïcödé_名前" in found, "made" in found)
"""
    )
    done = run(program)
    assert done.stdout == "True True True\n", done.stdout + done.stderr
