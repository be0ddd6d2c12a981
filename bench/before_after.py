"""Two builds of hotspan beside each other, in one run: what a change costs or saves.

Both builds do the same in fresh processes that take turns, so that a machine whose speed drifts treats both alike. The
best round of each counts. Views are those of the dashboard's server on one trace: the first asks for everything, the
ones after it find what it left.

Usage: python bench/before_after.py --before ../before/python [--rounds 5] [--events 5000000] [--only inside]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import results
import run as tables
import synthetic

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDER = REPOSITORY / "build" / "bench"
#: More than this is slower.
TOLERANCE = 1.05

TRACE = """
import sys, time, hotspan
path = sys.argv[1]
begin = time.perf_counter()
trace = hotspan.open(path)
{work}
print(time.perf_counter() - begin)
"""
OPERATORS = """
import statistics, time, torch
from hotspan.profiler import profile, ProfilerActivity
a, b = torch.ones(4), torch.ones(4)
def loop(count):
    begin = time.perf_counter()
    for _ in range(count):
        torch.add(a, b, out=a)
    return (time.perf_counter() - begin) / count
loop(50_000)
costs = []
for _ in range(7):
    plain = loop(50_000)
    with profile(activities=[ProfilerActivity.CPU], {options}):
        recorded = loop(50_000)
    costs.append(recorded - (plain + loop(50_000)) / 2)
print(statistics.median(costs))
"""
IMPORT = """
import time
begin = time.perf_counter()
import hotspan
print(time.perf_counter() - begin)
"""
CALLS = """
import time
from hotspan import cprofile
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def once():
    begin = time.perf_counter()
    fib(24)
    return time.perf_counter() - begin
profile = cprofile.Profile()
profile.enable()
best = min(once() for _ in range(5))
profile.disable()
print(best)
"""
SAMPLED = """
import time, hotspan
def work():
    begin = time.perf_counter()
    for _ in range(300):
        sum(number * number for number in range(20_000))
    return time.perf_counter() - begin
with hotspan.sample(rate=1000):
    print(min(work() for _ in range(3)))
"""
BY_LINE = """
import time
import hotspan
from hotspan.memory import MemoryProfiler
def branches(n):
    total = 0
    for x in range(n):
        if x % 3:
            total += x
        else:
            total -= 1
        total ^= x
    return total
recorded = {profiler}()(branches)
def once():
    begin = time.perf_counter()
    recorded(100_000)
    return time.perf_counter() - begin
print(min(once() for _ in range(5)))
"""
#: Small operators, so that each costs little more than the recording of it; then Python code.
TRAINING = """
import time, torch
torch.set_num_threads(1)
model = torch.nn.Sequential(*(layer for _ in range(8) for layer in (torch.nn.Linear(32, 32), torch.nn.ReLU())))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)
x, y = torch.randn(16, 32), torch.randn(16, 32)
def steps(count):
    begin = time.perf_counter()
    for _ in range(count):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        sum(range(2_000))
    return time.perf_counter() - begin
steps(100)
print(min(steps(400) for _ in range(5)))
"""


def inside() -> dict[str, tuple[str, list[str]]]:
    """What a program pays that is recorded; the first is itself run by `hotspan run`."""
    found = {
        "hotspan run, 400 training steps": (TRAINING, ["run"]),
        "hotspan run --memory, 400 training steps": (TRAINING, ["run", "--memory"]),
        "hotspan run --shapes, 400 training steps": (TRAINING, ["run", "--shapes"]),
        "400 training steps, alone": (TRAINING, []),
        "hotspan.sample at 1,000 Hz": (SAMPLED, []),
        "hotspan.lines, 500,000 lines": (BY_LINE.format(profiler="hotspan.LineProfiler"), []),
        "hotspan.memory, 500,000 lines": (BY_LINE.format(profiler="MemoryProfiler"), []),
    }
    for name, options in {
        "plain": "", "with shapes": "record_shapes=True", "with memory": "profile_memory=True",
    }.items():  # fmt: skip
        found[f"hotspan.profiler, each operator, {name}"] = (OPERATORS.format(options=options), [])
    found["hotspan.cprofile, fib(24)"] = (CALLS, [])
    found["import hotspan"] = (IMPORT, [])
    return found


def programs(real: Path, large: Path) -> dict[str, tuple[str, list[str]]]:
    """What is measured: a program that prints seconds, and its arguments."""
    work = {
        "read": "pass",
        "operators and kernels": "trace.key_averages(); trace.kernels()",
        "by shape and module": "for key in ('input_shape', 'module'): trace.key_averages(**{f'group_by_{key}': True})",
        "GPU": "trace.gpu()",
        "advice": "trace.advise()",
    }
    found = {f"54 MB trace: {name}": (TRACE.format(work=lines), [str(real)]) for name, lines in work.items()}
    found["large trace: read"] = (TRACE.format(work="pass"), [str(large)])
    found["large trace: operators and kernels"] = (
        TRACE.format(work=work["operators and kernels"]),
        [str(large)],
    )
    return found


def seconds(build: Path, program: str, arguments: list[str]) -> float:
    """Runs a program with one of the builds."""
    environment = {**os.environ, "PYTHONPATH": str(build), "PYTHONWARNINGS": "ignore"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", program, *arguments]
        if arguments[:1] == ["run"]:
            script = Path(folder, "train.py")
            script.write_text(program)
            recorder = [sys.executable, "-m", "hotspan", *arguments, "-o", f"{folder}/train.hotspan"]
            command = [*recorder, "--", sys.executable, str(script)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return float(done.stdout.splitlines()[-1])


VIEWS = ("overview", "operators", "kernels", "steps", "gpu", "modules", "source", "quality")


def views(build: Path, trace: Path) -> list[float]:
    """How long each view takes, one after the other, in a server that has opened the trace."""
    environment = {**os.environ, "PYTHONPATH": str(build)}
    server = subprocess.Popen(
        [sys.executable, "-m", "hotspan", "view", "--no-open", "--port", "0", str(trace)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        address = next(found[0] for line in server.stdout if (found := re.findall(r"http://\S+", line)))
        ask(f"{address}api/run/0/timeline")
        taken = []
        for view in VIEWS:
            begin = time.perf_counter()
            ask(f"{address}api/run/0/table/{view}")
            taken.append(time.perf_counter() - begin)
        return taken
    finally:
        server.terminate()
        server.wait()


def ask(address: str) -> object:
    """What the server answers."""
    with urllib.request.urlopen(address) as answer:
        return json.load(answer)


def shown(value: float) -> str:
    """A time with three digits and its unit."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value * 1e9:.0f} ns"


def main() -> None:
    """Measures both builds and writes the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, required=True, help="the folder `python` of the other build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--only", choices=["inside", "outside"], help="inside a program, or on traces")
    arguments = parser.parse_args()
    builds = {"before": arguments.before.resolve(), "after": REPOSITORY / "python"}
    FOLDER.mkdir(parents=True, exist_ok=True)
    large = FOLDER / f"synthetic-{arguments.events}.json"
    if not large.exists() and arguments.only != "inside":
        synthetic.write(large, arguments.events)
    measured = inside() if arguments.only != "outside" else {}
    if arguments.only != "inside":
        measured |= programs(tables.SHARED_TRACE, large)
    rows = []
    for name, (program, inputs) in measured.items():
        taken: dict[str, list[float]] = {build: [] for build in builds}
        for _ in range(arguments.rounds if "large" not in name else min(arguments.rounds, 3)):
            for build, folder in builds.items():
                taken[build].append(seconds(folder, program, inputs))
        # A cost is a difference, which noise makes too small as often as too large.
        of_rounds = statistics.median if "profiler" in name else min
        before, after = (of_rounds(taken[build]) for build in builds)
        ratio = after / before
        rows.append(
            [name, shown(before), shown(after), f"{ratio:.2f}", "" if ratio <= TOLERANCE else "slower"]
        )
        print(*rows[-1], sep="  ", file=sys.stderr)
    both = {build: views(folder, large) for build, folder in builds.items() if arguments.only != "inside"}
    for index, view in enumerate(VIEWS if both else ()):
        before, after = (both[build][index] for build in builds)
        rows.append(
            [
                f"large trace, view {index + 1}: {view}",
                shown(before),
                shown(after),
                f"{after / before:.2f}",
                "",
            ]
        )
        print(*rows[-1], sep="  ", file=sys.stderr)
    text = tables.table(["what", "before", "after", "ratio", f"more than {TOLERANCE - 1:.0%}"], rows)
    turns = "Both builds took turns; the best round of each counts, and of costs of operators the median."
    large_trace = "" if arguments.only == "inside" else f"The large trace has {arguments.events:,} events. "
    heading = "Before and after" + (", inside a program" if arguments.only == "inside" else "")
    results.write_section(heading, f"{large_trace}{turns}\n\n{text}\n")


if __name__ == "__main__":
    main()
