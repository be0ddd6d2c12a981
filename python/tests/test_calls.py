"""Calls are counted as cProfile counts them, on every CPython here; with threads, as they were made."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from called_programs import PROGRAMS
from interpreters import interpreter, run_python

__all__ = ["interpreter"]

PROGRAM = Path(__file__).with_name("called_programs.py")
# fib(8) makes 67 calls.
CALLS_OF_FIB_8 = 67


def counted(path: str, profiler: str, program: str) -> dict[str, Any]:
    """Calls, primitive calls and callers of each function; addresses and the profilers' own names are evened out."""
    told = run_python(path, PROGRAM, profiler, program).stdout
    told = re.sub(r"0x[0-9a-f]+", "0x", told)
    told = told.replace("_lsprof.Profiler", "Profiler").replace("hotspan._core.CallProfiler", "Profiler")
    return {
        json.dumps(function): (calls, primitive, sorted(callers))
        for function, primitive, calls, callers in json.loads(told)
    }


@pytest.mark.parametrize("program", sorted(set(PROGRAMS) - {"threads"}))
def test_calls_and_callers_equal_cprofile(interpreter: str, program: str) -> None:
    ours, theirs = counted(interpreter, "hotspan.cprofile", program), counted(interpreter, "cProfile", program)
    assert len(theirs) >= 3
    assert ours == theirs


def test_threads_are_counted_each_by_itself(interpreter: str) -> None:
    """cProfile misses other threads before 3.12, and mixes their stacks after."""
    found = counted(interpreter, "hotspan.cprofile", "threads")
    (fib,) = [value for key, value in found.items() if '"fib"' in key]
    calls, primitive, callers = fib
    assert calls == 4 * 20 * CALLS_OF_FIB_8
    assert primitive == 4 * 20
    by_name = {caller[2]: sums for caller, *sums in callers}
    assert by_name == {"work": [80, 80], "fib": [80 * (CALLS_OF_FIB_8 - 1), by_name["fib"][1]]}


def test_threads_that_run_already_are_traced(interpreter: str, tmp_path: Path) -> None:
    program = tmp_path / "running.py"
    program.write_text(
        "import threading, hotspan.cprofile\n"
        "def called(): pass\n"
        "def work():\n"
        "    ready.wait(); go.wait()\n"
        "    for _ in range(100): called()\n"
        "ready, go = threading.Barrier(2), threading.Event()\n"
        "thread = threading.Thread(target=work); thread.start(); ready.wait()\n"
        "profile = hotspan.cprofile.Profile(); profile.enable()\n"
        "go.set(); thread.join(); profile.disable(); profile.create_stats()\n"
        "print([stat[1] for key, stat in profile.stats.items() if key[2] == 'called'])\n"
    )
    assert run_python(interpreter, program).stdout.strip() == "[100]"


def test_sums_go_on_and_times_add_up(interpreter: str, tmp_path: Path) -> None:
    program = tmp_path / "timed.py"
    program.write_text(
        "import hotspan.cprofile\n"
        "now = [0]\n"
        "def timer(): return now[0]\n"
        "def inner(): now[0] += 5\n"
        "def outer():\n"
        "    now[0] += 3; inner(); inner()\n"
        "profile = hotspan.cprofile.Profile(timer, 0.5)\n"
        "for _ in range(2):\n"
        "    profile.enable(); outer(); profile.disable()\n"
        "profile.create_stats()\n"
        "print({key[2]: stat[:4] for key, stat in profile.stats.items() if key[0] != '~'})\n"
    )
    found = eval(run_python(interpreter, program).stdout)
    assert found == {"outer": (2, 2, 3.0, 13.0), "inner": (4, 4, 10.0, 10.0)}


def test_functions_of_c_can_be_left_out(interpreter: str) -> None:
    code = (
        "import hotspan.cprofile as c\n"
        "def work(): len('a'); [].append(1)\n"
        "p = c.Profile(builtins=False); p.enable(); work(); p.disable(); p.create_stats()\n"
        "print(sorted(key[2] for key in p.stats))"
    )
    assert run_python(interpreter, "-c", code).stdout.strip() == "['work']"


def test_a_second_profiler_is_refused_and_cprofile_is_not(interpreter: str) -> None:
    code = (
        "import hotspan.cprofile as c\n"
        "first = c.Profile(); first.enable()\n"
        "try:\n"
        "    c.Profile().enable()\n"
        "except ValueError as error:\n"
        "    first.disable(); print(error)\n"
        "again = c.Profile(); again.enable(); again.disable(); print('fine')"
    )
    told = run_python(interpreter, "-c", code).stdout
    assert "stop the other one first" in told
    assert told.endswith("fine\n")


def test_entries_are_those_of_getstats(interpreter: str) -> None:
    code = (
        "import hotspan.cprofile as c\n"
        "def leaf(): pass\n"
        "def work(): leaf(); leaf(); len('a')\n"
        "p = c.Profile(); p.runcall(work)\n"
        "for e in p.getstats():\n"
        "    name = e.code if isinstance(e.code, str) else e.code.co_name\n"
        "    print(name, e.callcount, e.reccallcount, sorted(s.callcount for s in e.calls or []), e.totaltime >= e.inlinetime >= 0)"
    )
    lines = run_python(interpreter, "-c", code).stdout.splitlines()
    assert "work 1 0 [1, 2] True" in lines
    assert "leaf 2 0 [] True" in lines
    assert "<built-in method builtins.len> 1 0 [] True" in lines


def test_children_that_are_forked_count_their_own(interpreter: str) -> None:
    code = (
        "import os, hotspan.cprofile as c\n"
        "def work(): pass\n"
        "p = c.Profile(); p.enable(); work()\n"
        "child = os.fork()\n"
        "work()\n"
        "p.disable(); p.create_stats()\n"
        "calls = [s[1] for k, s in p.stats.items() if k[2] == 'work']\n"
        "if child: assert os.waitpid(child, 0)[1] == 0; print(calls)\n"
        "else: os._exit(0 if calls == [2] else 1)"
    )
    assert run_python(interpreter, "-W", "ignore", "-c", code).stdout.strip() == "[2]"


def test_a_profiler_that_is_never_stopped_does_no_harm(interpreter: str) -> None:
    code = (
        "import atexit, threading, hotspan.cprofile as c\n"
        "p = c.Profile(); p.enable()\n"
        "atexit.register(lambda: print('bye'))\n"
        "threading.Thread(target=len, args=('a',)).start()"
    )
    assert run_python(interpreter, "-c", code).stdout == "bye\n"


def test_many_short_threads_leave_nothing_behind(interpreter: str) -> None:
    code = (
        "import threading, hotspan.cprofile as c\n"
        "def work(): pass\n"
        "p = c.Profile(); p.enable()\n"
        "for _ in range(300):\n"
        "    t = threading.Thread(target=work); t.start(); t.join()\n"
        "p.disable(); p.create_stats()\n"
        "print([s[:2] for k, s in p.stats.items() if k[2] == 'work'])"
    )
    assert run_python(interpreter, "-c", code).stdout.strip() == "[(300, 300)]"
