"""Options of ``hotspan run``: what is recorded beyond samples and operators, and when."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import hotspan
from hotspan import _core

PROGRAM = """
import threading

def inner(n):
    total = 0
    for number in range(n):
        total += number
    return total

def outer():
    return [inner(100) for _ in range(3)]

outer()
thread = threading.Thread(target=outer)
thread.start()
thread.join()
"""


def run(folder: Path, program: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(textwrap.dedent(program))
    command = [sys.executable, "-m", "hotspan", "run", *options, "program.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


def opened(folder: Path) -> hotspan.Trace:
    return hotspan.open(folder / "program.hotspan")


def test_every_call_on_all_threads(tmp_path: Path) -> None:
    seen = run(tmp_path, PROGRAM, "--functions", "--rate", "0")
    assert seen.returncode == 0, seen.stderr
    stats = {key[2]: value[1] for key, value in _core.function_stats(opened(tmp_path)._core).items()}
    assert (stats["outer"], stats["inner"]) == (2, 6)


def test_lines_of_a_file_and_of_a_function(tmp_path: Path) -> None:
    for target, functions in (("program.py", {"inner", "outer"}), ("program.py:inner", {"inner"})):
        seen = run(tmp_path, PROGRAM, "--lines", target, "--rate", "0", "-o", "program.hotspan")
        assert seen.returncode == 0, seen.stderr
        rows = {row[2]: row[3] for row in _core.line_rows(opened(tmp_path)._core)}
        # Before 3.12 inner functions such as comprehensions are functions of their own.
        assert {name for name in rows if "<" not in name} == functions
        hits = {line: count for line, count, *_ in rows["inner"]}
        assert hits[7] == 600


def test_lines_of_a_module_with_their_memory(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(
        "def take():\n    data = bytearray(50_000_000)\n    return len(data)\n"
    )
    seen = run(
        tmp_path, "import module\nmodule.take()", "--lines", "module.py", "--memory-lines", "--rate", "0"
    )
    assert seen.returncode == 0, seen.stderr
    (row,) = _core.line_rows(opened(tmp_path)._core)
    assert row[2] == "take"
    increments = {line: increment for line, _, _, _, increment in row[3]}
    assert increments[2] > 40_000_000


def test_nothing_before_and_after_the_time_that_was_asked_for(tmp_path: Path) -> None:
    program = """
        import time
        def early(): return sum(range(1000))
        def middle(): return sum(range(1000))
        def late(): return sum(range(1000))
        import json, os
        options = json.loads(os.environ["HOTSPAN_RUN"])
        begin, end = options["since"] / 1e9, options["until"] / 1e9
        # The agent looks five times a second: nothing is said about what is near the limits.
        while time.time() < begin - 0.2: early()
        while time.time() < end + 0.6: middle()
        while time.time() < end + 1: late()
    """
    seen = run(tmp_path, program, "--delay", "1.2", "--duration", "0.6")
    assert seen.returncode == 0, seen.stderr
    names = {frame[0] for sample in _core.sample_stacks(opened(tmp_path)._core) for frame in sample[5]}
    assert not names & {"early", "late"}


def test_a_budget_that_cannot_be_kept_makes_it_record_less(tmp_path: Path) -> None:
    program = """
        import time
        end = time.monotonic() + 3.5
        while time.monotonic() < end:
            sum(range(1000))
    """
    seen = run(tmp_path, program, "--budget", "0.0001%", "--rate", "400")
    assert seen.returncode == 0, seen.stderr
    cost = opened(tmp_path).metadata["hotspan.cost"]
    assert cost["budget"] == 0.000001
    assert "200 samples a second" in cost["measures"][0]


def test_wrong_options_say_what_is_wrong(tmp_path: Path) -> None:
    for options, message in [
        (["--steps", "5"], "'5' is not two numbers, such as 10:20"),
        (["--steps", "5:5"], "there is no step from 5 to 5"),
        (["--budget", "much"], "not a percentage"),
        (["--delay", "-1"], "--delay"),
        (["--memory-lines"], "--lines"),
    ]:
        seen = run(tmp_path, "", *options)
        assert seen.returncode == 2
        assert message in seen.stderr


def test_attach_samples_a_running_program(tmp_path: Path) -> None:
    program = "import time\nprint('ready', flush=True)\nend = time.time() + 60\nwhile time.time() < end: sum(range(9))"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        command = [
            sys.executable,
            "-m",
            "hotspan",
            "attach",
            str(process.pid),
            "-d",
            "0.5",
            "-o",
            "x.hotspan",
        ]
        seen = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        process.kill()
    assert seen.returncode == 0, seen.stderr
    assert hotspan.open(tmp_path / "x.hotspan").wall_time_ns > 0


def test_the_programs_own_profilers_and_handlers(tmp_path: Path) -> None:
    program = """
        import cProfile, pstats, signal, sys, os, io
        handled = []
        for number in (signal.SIGUSR1, signal.SIGPROF, signal.SIGALRM):
            signal.signal(number, lambda number, _: handled.append(number))
        profile = cProfile.Profile()
        profile.enable()
        sum(range(10))
        profile.disable()
        stats = pstats.Stats(profile, stream=io.StringIO()).stats
        print(any(name == "<built-in method builtins.sum>" for *_, name in stats))
        events = []
        sys.setprofile(lambda frame, event, argument: events.append(event))
        sum(range(10))
        sys.setprofile(None)
        print("c_call" in events)
        os.kill(os.getpid(), signal.SIGUSR1)
        signal.setitimer(signal.ITIMER_PROF, 0.01)
        while signal.SIGPROF not in handled:
            sum(range(1000))
        print(sorted(int(number) for number in handled))
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    bare = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    seen = run(tmp_path, program)
    assert (seen.returncode, seen.stdout) == (0, bare.stdout)
