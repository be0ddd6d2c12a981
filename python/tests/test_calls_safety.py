"""Tracing calls in other people's programs: nothing leaks, no other profiler is lost, whatever threads do meanwhile."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from interpreters import interpreter, interpreters, run_python

__all__ = ["interpreter"]

COUNTS = """
def counts(profile, *names):
    profile.create_stats()
    found = {key[2]: stat[1] for key, stat in profile.stats.items()}
    return [found.get(name, 0) for name in names]
"""


def told(path: str, program: str) -> Any:
    """What a program printed last, as JSON."""
    start = "import json, os, sys, threading, _thread, time, hotspan.cprofile as c\n"
    ran = run_python(path, "-W", "ignore", "-c", start + COUNTS + program)
    assert "Traceback" not in ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def test_threads_without_threading_are_traced(interpreter: str) -> None:
    program = """
def called(): pass
def work(done):
    for _ in range(50): called()
    done.release()
def run():
    done = _thread.allocate_lock(); done.acquire()
    _thread.start_new_thread(work, (done,))
    done.acquire()
for builtins in (True, False):
    profile = c.Profile(builtins=builtins); profile.enable()
    run(); run()
    profile.disable()
    assert counts(profile, 'work', 'called') == [2, 100], counts(profile, 'work', 'called')
# After the end no thread is traced any more.
run()
print(json.dumps(counts(profile, 'work', 'called')))
"""
    assert told(interpreter, program) == [2, 100]


def test_a_thread_of_a_thread_of_c_is_traced(interpreter: str) -> None:
    program = """
import ctypes
def called(): pass
def work():
    for _ in range(50): called()
@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def in_c(_):
    thread = threading.Thread(target=work); thread.start(); thread.join()
    return 0
c_library = ctypes.CDLL(None)
profile = c.Profile(); profile.enable()
thread = ctypes.c_ulong()
c_library.pthread_create(ctypes.byref(thread), None, in_c, None)
c_library.pthread_join(thread, None)
profile.disable()
print(json.dumps(counts(profile, 'work', 'called')))
"""
    assert told(interpreter, program) == [1, 50]


def test_switching_on_and_off_takes_no_memory(interpreter: str) -> None:
    program = """
def called(): return len('a')
def resident():
    with open('/proc/self/statm') as file: return int(file.read().split()[1]) * os.sysconf('SC_PAGESIZE')
profile = c.Profile()
def rounds(number):
    for _ in range(number):
        profile.enable(); called(); profile.disable()
def others(number):
    for _ in range(number):
        other = c.Profile(); other.enable(); called(); other.disable(); other.clear()
rounds(1000); others(1000)
import gc
gc.collect(); objects = len(gc.get_objects())
grown = []
for _ in range(3):
    before = resident()
    rounds(3000); others(1000)
    grown.append(resident() - before)
gc.collect()
print(json.dumps([counts(profile, 'called')[0], grown, len(gc.get_objects()) - objects]))
"""
    calls, grown, objects = told(interpreter, program)
    assert calls == 10_000
    # What leaks does so every time; the allocator takes memory now and then.
    assert min(grown) < 1 << 17, f"{grown} bytes in 4,000 rounds each"
    assert objects < 100


def test_threads_may_end_and_begin_while_it_is_switched(interpreter: str) -> None:
    program = """
import sys
sys.setswitchinterval(1e-5)
done = [0]
def called(): pass
def work():
    for _ in range(20): called()
    done[0] += 1
def starter():
    while not stop.is_set():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
stop = threading.Event()
starters = [threading.Thread(target=starter) for _ in range(2)]
for thread in starters: thread.start()
profile = c.Profile()
for _ in range(200):
    profile.enable(); called(); time.sleep(0.001); profile.disable()
stop.set()
for thread in starters: thread.join()
work_calls, called_calls = counts(profile, 'work', 'called')
print(json.dumps([work_calls <= done[0], 200 < called_calls <= 200 + 20 * done[0]]))
"""
    assert told(interpreter, program) == [True, True]


def test_another_thread_may_end_it(interpreter: str) -> None:
    program = """
def called(): pass
def work():
    for _ in range(30): called()
profile = c.Profile(); profile.enable()
work()
ender = threading.Thread(target=profile.disable); ender.start(); ender.join()
work()
assert sys.getprofile() is None
print(json.dumps(counts(profile, 'work', 'called')))
"""
    assert told(interpreter, program) == [1, 30]


def test_exceptions_of_the_program_are_left_alone(interpreter: str) -> None:
    program = """
sys.unraisablehook = lambda told: seen.append(str(told.exc_value))
seen = []
class Bad:
    def __del__(self): raise ValueError('in del')
    def __repr__(self): raise ValueError('in repr')
    def __getattribute__(self, name): raise ValueError('in attribute')
def raises(): raise KeyError('mine')
def work():
    Bad()
    try: raises()
    except KeyError as error: seen.append(error.args[0])
    try: int('no')
    except ValueError: seen.append('int')
    try: iter([]).__next__()
    except StopIteration: seen.append('next')
    seen.append(sys.exc_info()[0] is None)
profile = c.Profile(); profile.enable(); work(); profile.disable()
print(json.dumps([seen, counts(profile, 'work', 'raises', '__del__')]))
"""
    assert told(interpreter, program) == [["in del", "mine", "int", "next", True], [1, 1, 1]]


def test_the_profile_function_of_another_comes_back(interpreter: str) -> None:
    program = """
def other(*event): pass
def called(): pass
sys.setprofile(other); threading.setprofile(other)
profile = c.Profile(); profile.enable(); called(); profile.disable()
now = sys.getprofile(), threading._profile_hook
sys.setprofile(None); threading.setprofile(None)
print(json.dumps([now == (other, other), counts(profile, 'called')]))
"""
    assert told(interpreter, program) == [True, [1]]


def test_tool_ids_of_others_stay_theirs(interpreter: str) -> None:
    program = """
def called(): pass
if sys.version_info < (3, 12): print(json.dumps(None)); sys.exit()
monitoring = sys.monitoring
starts = []
for tool in (0, 1, 2, 3, 5): monitoring.use_tool_id(tool, f'tool {tool}')
monitoring.register_callback(3, monitoring.events.PY_START, lambda code, offset: starts.append(code.co_name))
monitoring.set_events(3, monitoring.events.PY_START)
profile = c.Profile(); profile.enable(); called(); profile.disable(); called()
monitoring.set_events(3, 0)
names = [monitoring.get_tool(tool) for tool in range(6)]
monitoring.use_tool_id(4, 'the last')
try: c.Profile().enable()
except ValueError as error: refused = 'in use' in str(error)
print(json.dumps([names, starts.count('called'), counts(profile, 'called'), refused]))
"""
    names = ["tool 0", "tool 1", "tool 2", "tool 3", None, "tool 5"]
    assert told(interpreter, program) in (None, [names, 2, [1], True])


@pytest.mark.parametrize("core", ["ctrace", "pytrace", "sysmon"])
def test_coverage_runs_beside(core: str, tmp_path: Path) -> None:
    coverage = pytest.importorskip("coverage")
    path = sys.executable
    if core == "sysmon" and sys.version_info < (3, 12):
        later = [found for version, found in interpreters().items() if version not in ("3.10", "3.11")]
        if not later:
            pytest.skip("coverage uses sys.monitoring from Python 3.12 on, and there is none here")
        path = later[0]
    # Another interpreter has no coverage of its own: this one's, which needs none of its compiled parts for that.
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "coverage").symlink_to(Path(coverage.__file__).parent)
    program = f"""
os.environ['COVERAGE_CORE'] = {core!r}
sys.path[:0] = [{str(tmp_path)!r}, {str(packages)!r}]
import coverage, hotspan
measured = coverage.Coverage(data_file=None, include=[{str(tmp_path / "*")!r}]); measured.start()
import covered
profile = c.Profile(); profile.enable(); covered.work(3); profile.disable()
lines = hotspan.LineProfiler(covered.other); lines.runcall(covered.other)
covered.last()
measured.stop()
(file,) = measured.get_data().measured_files()
hits = [hit for rows in lines.get_stats().timings.values() for _, hit, _ in rows]
print(json.dumps([sorted(measured.get_data().lines(file)), counts(profile, 'work', 'called'), hits]))
"""
    (tmp_path / "covered.py").write_text(
        "def called():\n    pass\n\n"
        "def work(n):\n    for _ in range(n):\n        called()\n\n"
        "def other():\n    return 1\n\n"
        "def last():\n    return 2\n"
    )
    lines, calls, hits = told(path, program)
    # While lines are recorded before 3.12 there is one trace function, which is then hotspan's.
    assert set(lines) | {9} == {1, 2, 4, 5, 6, 8, 9, 11, 12}
    assert (calls, hits) == ([1, 3], [1])
