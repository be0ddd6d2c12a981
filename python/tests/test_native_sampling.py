"""What the sampler within a process sees: shares, stacks, native frames, states of waiting threads."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import hotspan
from interpreters import VERSIONS, importing_or_skip
from native_programs import BURN, PRINT, names, run, samples, weight

# At the end it tells how long each part took by the clock, waiting for a processor included: what samples stand for.
SPLIT = (
    BURN
    + """
import json, sys, hotspan

def thirty(): burn(0.3 * scale)
def fifty(): burn(0.5 * scale)
def twenty(): burn(0.2 * scale)

scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
took = {}
with hotspan.sample(rate=1000) as s:
    for part in (thirty, fifty, twenty):
        begun = time.perf_counter()
        part()
        took[part.__name__] = time.perf_counter() - begun
print(json.dumps(took))
"""
)

CALLS = (
    BURN
    + """
import bisect, hotspan

class Model:
    def forward(self):
        return burn(0.15)  # the line of the call

def called_from_c(_):
    return Model().forward()

def generator():
    yield bisect.bisect([1, 2], 0, key=lambda item: called_from_c(item) or 0)

with hotspan.sample(rate=500) as s:
    list(map(called_from_c, [1]))
    next(generator())
"""
)


@pytest.fixture(params=VERSIONS)
def python(request: pytest.FixtureRequest) -> Path:
    """Every CPython found."""
    return Path(importing_or_skip(request.param))


def test_shares_are_those_of_the_program(python: Path) -> None:
    # Up to 8 turns of waiting for a processor are counted with the part after: the shorter the run, the more that is.
    seconds, tolerance = ("5", 0.03) if python == Path(sys.executable) else ("1", 0.06)
    done = run(SPLIT + PRINT, seconds, python=python)
    assert done.returncode == 0, done.stderr
    took, rows = map(json.loads, done.stdout.splitlines())
    seen = {function: weight([row for row in rows if function in names(row)]) for function in took}
    shares = {function: time / sum(seen.values()) for function, time in seen.items()}
    truth = {function: time / sum(took.values()) for function, time in took.items()}
    assert shares == pytest.approx(truth, abs=tolerance)
    assert sum(seen.values()) == pytest.approx(sum(took.values()), rel=0.2)


def test_code_that_dies_at_once_has_its_name(python: Path, tmp_path: Path) -> None:
    # The code of a module is gone as soon as it has run.
    for number in range(100):
        module = tmp_path / f"brief_{number}.py"
        module.write_text("total = 0\nfor number in range(30_000):\n    total += number\n")
    program = """
import json, sys, hotspan
sys.path.insert(0, sys.argv[1])
with hotspan.sample(rate=1000) as s:
    for number in range(100):
        __import__(f"brief_{number}")
print(json.dumps(s.trace.losses))
"""
    done = run(program + PRINT, str(tmp_path), python=python)
    assert done.returncode == 0, done.stderr
    losses, rows = map(json.loads, done.stdout.splitlines())
    assert "unreadable_frame" not in losses
    innermost = [
        frame
        for row in rows
        for frame in [next((frame for frame in row["frames"] if frame["kind"] == "python"), None)]
        if frame is not None and "brief_" in frame["file"]
    ]
    assert len(innermost) > 20
    assert {frame["name"] for frame in innermost} == {"<module>"}
    assert {frame["line"] for frame in innermost} <= {1, 2, 3}


def test_stacks_are_whole_and_in_order(python: Path) -> None:
    rows = [row for row in samples(CALLS, python=python) if row["state"] == "running"]
    burning = [row for row in rows if "burn" in names(row)]
    assert len(burning) > 50
    for row in burning:
        found = [name for name in names(row) if name not in ("<genexpr>", "<lambda>")]
        python_names = [
            frame["name"].rpartition(".")[2] for frame in reversed(row["frames"]) if frame["kind"] == "python"
        ]
        expected = ["<module>", "called_from_c", "forward", "burn"]
        through_generator = ["<module>", "generator", "<lambda>", "called_from_c", "forward", "burn"]
        assert python_names[:4] == expected or python_names[:6] == through_generator, found
        forward = next(frame for frame in row["frames"] if frame["name"].endswith("forward"))
        assert "the line of the call" in CALLS.splitlines()[forward["line"] - 1]
    # What C code called Python is between the Python frames it links; the interpreter's own is left out.
    is_library = run("import _bisect; print(hasattr(_bisect, '__file__'))", python=python).stdout.strip()
    if is_library == "True":
        linked = [row for row in burning if "generator" in names(row)]
        assert linked
        for row in linked:
            link = [
                index for index, frame in enumerate(reversed(row["frames"])) if "_bisect" in frame["file"]
            ]
            assert link
            assert names(row).index("generator") < min(link) <= max(link) < names(row).index("<lambda>")


def test_waiting_threads_say_what_they_wait_for(python: Path) -> None:
    program = """
import os, threading, time, hotspan

def sleeper(): time.sleep(0.5)
def reader(fd): os.read(fd, 1)
def locked(lock): lock.acquire()

lock = threading.Lock(); lock.acquire()
fd, other = os.pipe()
threads = [threading.Thread(target=t, args=a) for t, a in [(sleeper, ()), (reader, (fd,)), (locked, (lock,))]]
with hotspan.sample(rate=100) as s:
    begin = time.monotonic()
    for thread in threads: thread.start()
    time.sleep(0.6)
    os.write(other, b"x"); lock.release()
    for thread in threads: thread.join()
    elapsed = time.monotonic() - begin
import sys
print(elapsed, file=sys.stderr)
"""
    rows = samples(program, python=python)
    for function, state, call in [
        ("sleeper", "sleep", ("clock_nanosleep", "select")),
        ("reader", "io", ("read",)),
        ("locked", "lock", ("futex",)),
    ]:
        of_it = [row for row in rows if function in names(row) and row["state"] != "running"]
        assert {row["state"] for row in of_it} == {state}, function
        assert names(of_it[0])[-1] in call
        # No more than it lasted and most of it; a busy machine starts threads late.
        assert 0.3 < weight(of_it) < 3
    # A wait is one sample that grows, not one per look.
    assert len([row for row in rows if "sleeper" in names(row)]) < 10


def test_the_time_of_a_thread_is_running_plus_waiting() -> None:
    program = (
        BURN
        + """
import sys, hotspan
with hotspan.sample(rate=200) as s:
    begin = time.monotonic()
    for _ in range(5):
        burn(0.1); time.sleep(0.1)
    elapsed = time.monotonic() - begin
    import threading
    me = str(threading.get_native_id())
print(elapsed, me)
"""
    )
    done = run(program + "\nprint(sum(x.weight_ns for x in s.samples() if x.thread == me))")
    assert done.returncode == 0, done.stderr
    (elapsed, _), (nanoseconds,) = map(str.split, done.stdout.splitlines())
    assert int(nanoseconds) / 1e9 == pytest.approx(float(elapsed), rel=0.1)


def test_numpy_frames_are_under_the_python_line() -> None:
    pytest.importorskip("numpy")
    program = """
import time, numpy, hotspan
values, matrix = numpy.random.rand(200_000), numpy.random.rand(300, 300)

def sorting(end):
    while time.process_time() < end: numpy.sort(values)

def multiplying(end):
    while time.process_time() < end: matrix @ matrix

with hotspan.sample(rate=250) as s:
    now = time.process_time()
    sorting(now + 0.4); multiplying(now + 0.9)
"""
    rows = [row for row in samples(program) if row["state"] == "running"]
    sorting = [row for row in rows if "sorting" in names(row)]
    native = [
        row
        for row in sorting
        if any("_multiarray_umath" in frame["file"] and "sort" in frame["name"] for frame in row["frames"])
    ]
    assert len(native) > len(sorting) / 2
    multiplying = [row for row in rows if "multiplying" in names(row)]
    blas = [row for row in multiplying if any("gemm" in name for name in names(row))]
    assert len(blas) > len(multiplying) / 3
    assert all(names(row).index("multiplying") < len(names(row)) - 1 for row in blas)


def test_torch_frames_are_under_the_python_line() -> None:
    pytest.importorskip("torch")
    program = """
import time, torch, hotspan
torch.set_num_threads(1)
values = torch.rand(400_000)

def activating(end):
    while time.process_time() < end: torch.tanh(values)

with hotspan.sample(rate=250) as s:
    activating(time.process_time() + 0.4)
"""
    rows = [row for row in samples(program) if "activating" in names(row) and row["state"] == "running"]
    torch_rows = [
        row for row in rows if any(frame["file"].endswith("/libtorch_cpu.so") for frame in row["frames"])
    ]
    assert len(torch_rows) > len(rows) / 2
    assert any("at::_ops::tanh::call" in [frame["name"] for frame in row["frames"]] for row in torch_rows)


def test_python_only() -> None:
    program = SPLIT.replace("rate=1000", "rate=500, native=False, waiting=False")
    rows = samples(program)
    assert {row["state"] for row in rows} == {"running"}
    kinds = {
        frame["kind"]
        for row in rows
        for frame in row["frames"]
        if row["frames"][0]["name"] != "[native code]"
    }
    assert kinds == {"python"}


def test_pauses_of_the_garbage_collector_are_spans() -> None:
    import gc

    before = list(gc.callbacks)
    with hotspan.sample() as sampler:
        gc.collect()
        gc.collect(0)
    assert gc.callbacks == before
    spans = [event for event in sampler.trace.events() if event.category == "gc"]
    assert {"gc gen 2", "gc gen 0"} <= {span.name for span in spans}
    assert all(span.duration_ns >= 0 for span in spans)


def test_saved_samples_are_read_back(tmp_path: Path) -> None:
    with hotspan.sample(rate=1000) as sampler:
        sum(i * i for i in range(400_000))
    sampler.save(tmp_path / "x.hotspan")
    again = hotspan._core.sample_stacks(hotspan._core.open(str(tmp_path / "x.hotspan")))
    assert [row[5] for row in again] == [[tuple(frame) for frame in row.frames] for row in sampler.samples()]


def test_mistakes_are_told() -> None:
    with pytest.raises(hotspan.CollectError, match="hint: choose between"):
        hotspan.sample(rate=0).start()
    with pytest.raises(hotspan.CollectError, match="nothing was recorded"):
        hotspan.sample().samples()
    with hotspan.sample() as sampler:
        with pytest.raises(hotspan.CollectError, match="already sampling"):
            hotspan.sample().start()
        with pytest.raises(hotspan.CollectError, match="still running"):
            sampler.samples()
    sampler.stop()


def test_the_command_shows_native_frames(tmp_path: Path, hotspan_command: Any) -> None:
    numpy = pytest.importorskip("numpy")
    script, path = tmp_path / "sorts.py", tmp_path / "profile.txt"
    script.write_text(
        "import numpy as np, sys, time\n"
        "def sorts():\n    np.sort(numbers)\n"
        "numbers, end = np.random.rand(1 << 18), time.thread_time() + 0.5\n"
        "while time.thread_time() < end: sorts()\n"
        "sys.exit(3)\n"
    )
    told = hotspan_command("record", "--native", "-o", path, "--", sys.executable, script)
    assert told.returncode == 3, told.stderr
    lines = [line for line in path.read_text().splitlines() if "sorts" in line]
    assert any("umath" in line.partition("sorts")[2] for line in lines), (numpy.__version__, lines[:5])
    assert not list(tmp_path.glob("*.spool*"))
