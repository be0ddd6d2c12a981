"""What `hotspan run` costs, beside scalene, py-spy and torch.profiler, on the same programs: a section of RESULTS.md.

A program times its own work, so that start-up is no part of it; start-up is measured apart. A machine's speed drifts by
more than a tool costs, so each run under a tool is compared with the runs of the program alone before and after it, and
the median of these pairs counts. The peers, which cost more, have one pair; hotspan has as many as there is time for.
Processor time is that of its processes, with the threads that a tool has in them; what a tool does in a process of its
own is not in it.

Usage: python bench/run_overhead.py [--minutes 6] [--only NAME] [--print]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import NamedTuple

import results

HEADING = "A whole program: `hotspan run`"
TARGET = 0.03
TOOK = "took.txt"
LEAST_PAIRS = 3

PROGRAMS = {
    "ResNet-18 training": """
        import torch
        from torch import nn
        torch.manual_seed(0)

        class Block(nn.Module):
            def __init__(self, before, after, stride):
                super().__init__()
                self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
                self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
                self.norms = nn.ModuleList([nn.BatchNorm2d(after), nn.BatchNorm2d(after)])
                self.short = nn.Conv2d(before, after, 1, stride, bias=False) if before != after else nn.Identity()

            def forward(self, x):
                y = torch.relu(self.norms[0](self.first(x)))
                return torch.relu(self.norms[1](self.second(y)) + self.short(x))

        sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1)]
        sizes += [(128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
        model = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
            *[Block(*size) for size in sizes], nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        images, labels = torch.randn(8, 3, 96, 96), torch.randint(10, (8,))

        def step():
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()

        step()
        def work():
            for _ in range(12):
                step()
    """,
    "NumPy": """
        import numpy
        generator = numpy.random.default_rng(0)
        data = generator.random((400, 400))

        def work():
            for _ in range(400):
                rows = numpy.argsort(data, axis=1)
                total = (data @ data).sum() + numpy.sqrt(data).mean() + rows[0, 0]
    """,
    "pure Python": """
        def collatz(n):
            steps = 0
            while n != 1:
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                steps += 1
            return steps

        def work():
            return max(collatz(n) for n in range(1, 250_000))
    """,
    "DataLoader": """
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Images(Dataset):
            def __len__(self):
                return 20_000

            def __getitem__(self, index):
                image = torch.full((3, 64, 64), float(index))
                return (image - image.mean()) / (image.std() + 1)

        loader = DataLoader(Images(), batch_size=32, num_workers=1)

        def work():
            for batch in loader:
                torch.nn.functional.avg_pool2d(batch, 4).sum()
    """,
}

FRAME = """
if __name__ == "__main__":
    import resource, time
    def used():
        both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(one.ru_utime + one.ru_stime for one in both)
    begin, before = time.perf_counter(), used()
    {work}
    took = (time.perf_counter() - begin, used() - before)
    with open("{took}", "w") as file: # not all tools let the program print
        print(*took, "seconds", file=file)
"""
WORK = {
    "program.py": "work()",
    "with_torch_profiler.py": """
    from torch.profiler import ProfilerActivity, profile
    begin, before = time.perf_counter(), used()
    with profile(activities=[ProfilerActivity.CPU]):
        work()""",
}
OPERATORS = """
import torch
torch.set_num_threads(1)
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
x = torch.ones(1)
def work(count):
    for _ in range(count):
        x.neg_()
work(200_000)
before = resident()
work(1_800_000)
print(resident() - before)
"""


class Took(NamedTuple):
    """What the work of a program took, in seconds."""

    wall: float
    processor: float

    def beside(self, before: Took, after: Took) -> Took:
        """What that is of what the program alone takes."""
        return Took(
            2 * self.wall / (before.wall + after.wall),
            2 * self.processor / (before.processor + after.processor),
        )


def commands(folder: Path) -> dict[str, list[str]]:
    """How each tool runs a program; those that are not installed are left out."""
    python, output = sys.executable, str(folder / "out")
    found = {"bare": [python, "program.py"]}
    found["hotspan run"] = [python, "-m", "hotspan", "run", "-o", output + ".hotspan", "program.py"]
    tools = Path(python).parent
    if (tools / "scalene").exists():
        # With its defaults it restarts torch.profiler from a signal handler and does not come to an end.
        options = ["--cpu-only", "-o", output + ".json"]
        found["scalene --cpu-only"] = [python, "-m", "scalene", "run", *options, "program.py"]
    spy = shutil.which("py-spy", path=f"{tools}:{os.environ.get('PATH', '')}")
    if spy:
        options = ["-n", "-s", "-f", "raw", "-o", output + ".txt"]
        found["py-spy record"] = [spy, "record", *options, "--", python, "program.py"]
    found["torch.profiler"] = [python, "with_torch_profiler.py"]
    return found


def once(command: list[str], folder: Path) -> Took | None:
    """What the work took as the program measured it; `None` when the tool cannot run it."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    took, errors = folder / TOOK, folder / "errors.txt"
    took.write_text("")
    with errors.open("w") as file:
        process = subprocess.Popen(
            command, cwd=folder, stdout=file, stderr=file, env=environment, start_new_session=True
        )
        # Some tools do not end after the program has; what the program measured counts all the same.
        deadline = time.monotonic() + 90
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
            if took.read_text().endswith("seconds\n"):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=8)
                break
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    found = took.read_text().split()
    if len(found) != 3:
        last = (errors.read_text().strip().splitlines() or ["no message"])[-1]
        print(f"  {command[:3]}: {last}", file=sys.stderr)
        return None
    return Took(float(found[0]), float(found[1]))


class Contest:
    """One program under every tool."""

    def __init__(self, program: str, folder: Path) -> None:
        text = textwrap.dedent(PROGRAMS[program])
        folder.mkdir()
        for name, work in WORK.items():
            (folder / name).write_text(text + FRAME.format(took=TOOK, work=work))
        self.folder = folder
        self.tools = commands(folder)
        if "torch" not in text:
            del self.tools["torch.profiler"]
        self.bare = self.tools.pop("bare")
        self.alone: list[Took] = []
        self.pairs: dict[str, list[Took]] = {}

    def alone_again(self) -> Took:
        """Run the program alone."""
        took = once(self.bare, self.folder)
        if took is None:
            raise RuntimeError("the program does not run")
        self.alone.append(took)
        return took

    def round(self, tools: list[str]) -> None:
        """Let each of the tools run once, and the program alone before and after it."""
        before = self.alone_again()
        for tool in tools:
            took = once(self.tools[tool], self.folder) if tool in self.tools else None
            if took is not None:
                after = self.alone_again()
                self.pairs.setdefault(tool, []).append(took.beside(before, after))
                before = after

    def run(self, tools: list[str], seconds: float) -> None:
        """All tools once, then the first as often as there is time for."""
        end, longest = time.monotonic() + seconds, 0.0
        self.round(tools)
        while len(self.pairs[tools[0]]) < LEAST_PAIRS or time.monotonic() + longest < end:
            begin = time.monotonic()
            self.round(tools[:1])
            longest = max(longest, time.monotonic() - begin)

    def row(self, name: str, tools: list[str]) -> str:
        """Its line of the table."""
        costs = {
            tool: [statistics.median(pair[kind] for pair in self.pairs[tool]) - 1 for kind in (0, 1)]
            for tool in tools
            if tool in self.pairs
        }
        cells = ["{:+.1%}, CPU {:+.1%}".format(*costs[tool]) if tool in costs else "-" for tool in tools]
        spread = [pair.wall - 1 for pair in self.pairs["hotspan run"]]
        low, _, high = statistics.quantiles(spread, n=4)
        verdict = "met" if costs["hotspan run"][0] <= TARGET else "missed"
        bare = min(took.wall for took in self.alone)
        return (
            f"| {name} | {bare:.2f} s | "
            + " | ".join(cells)
            + f" | {low:+.1%} to {high:+.1%} of {len(spread)} | {verdict} |"
        )


def start_up(rounds: int) -> tuple[float, float]:
    """Seconds of an empty program, bare and with what `hotspan run` puts into it."""
    import hotspan

    def once(environment: dict[str, str]) -> float:
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", ""], check=True, env={**os.environ, **environment})
        return time.perf_counter() - begin

    inject = Path(hotspan.__file__).parent / "_inject"
    with tempfile.TemporaryDirectory() as spool:
        recorded = {"PYTHONPATH": str(inject), "HOTSPAN_RUN": json.dumps({"spool": spool})}
        pairs = [(once({}), once(recorded)) for _ in range(rounds)]
    return min(bare for bare, _ in pairs), min(seen for _, seen in pairs)


def growth(folder: Path) -> float:
    """Megabytes that the process grows by from the 200,000th operator to the two millionth; all are recorded."""
    import hotspan

    (folder / "operators.py").write_text(OPERATORS)
    command = [sys.executable, "-m", "hotspan", "run", "-o", "operators.hotspan", "operators.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    rows = {row.key: row.count for row in hotspan.open(folder / "operators.hotspan").key_averages()}
    if rows["aten::neg_"] != 2_000_000:
        raise RuntimeError(f"{rows['aten::neg_']} of 2,000,000 operators were recorded")
    return int(done.stdout) / 1e6


def report(minutes: float, only: str | None) -> str:
    """The section of the results."""
    tools = ["hotspan run", "scalene --cpu-only", "py-spy record", "torch.profiler"]
    programs = [program for program in PROGRAMS if only in (None, program)]
    with tempfile.TemporaryDirectory() as name:
        rows = []
        for number, program in enumerate(programs):
            contest = Contest(program, Path(name, str(number)))
            contest.run(tools, minutes * 60 / len(programs))
            rows.append(contest.row(program, tools))
        grown = growth(Path(name))
    bare, seen = start_up(20)
    return "\n".join(
        [
            "One thread of torch. Wall time of the work, then processor time of the program's processes, beside the",
            "program alone right before and after: the median of such pairs for hotspan, one pair for the rest.",
            "",
            f"| program | bare | {' | '.join(tools)} | quartiles of hotspan's pairs | hotspan ≤ {TARGET:.0%} |",
            "|---|--:|" + "--:|" * (len(tools) + 1) + "---|",
            *rows,
            "",
            f"Start of a Python process: {bare * 1e3:.0f} ms bare, {(seen - bare) * 1e3:+.0f} ms when recorded.",
            f"From the 200,000th operator to the two millionth the recorded process grows by {grown:.1f} MB.",
        ]
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--minutes", type=float, default=6, help="about how long to measure; three rounds at least"
    )
    parser.add_argument("--only", choices=PROGRAMS)
    parser.add_argument("--print", action="store_true", help="do not touch RESULTS.md")
    arguments = parser.parse_args()
    section = report(arguments.minutes, arguments.only)
    print(section)
    if not arguments.print:
        results.write_section(HEADING, section)


if __name__ == "__main__":
    main()
