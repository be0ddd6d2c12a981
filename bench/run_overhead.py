"""What `hotspan run` costs, beside scalene, py-spy and torch.profiler, on the same programs: a table in RESULTS.md.

A program times its own work, so that start-up is no part of it; start-up is measured apart. Tools take turns, round by
round, so that whatever else the machine does falls on all of them; the fastest round counts.

Usage: python bench/run_overhead.py [--repeat 5] [--only NAME]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import results

TARGET = 0.03
MARK = "seconds of work:"

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
            for _ in range(60):
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
            return max(collatz(n) for n in range(1, 30_000))
    """,
    "DataLoader": """
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Images(Dataset):
            def __len__(self):
                return 600

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
    import time
    begin = time.perf_counter()
    work()
    print("{mark}", time.perf_counter() - begin, flush=True)
"""
TORCH_FRAME = """
if __name__ == "__main__":
    import time
    from torch.profiler import ProfilerActivity, profile
    begin = time.perf_counter()
    with profile(activities=[ProfilerActivity.CPU]):
        work()
    print("{mark}", time.perf_counter() - begin, flush=True)
"""


def commands(folder: Path) -> dict[str, list[str]]:
    """How each tool runs a program; those that are not installed are left out."""
    python, output = sys.executable, str(folder / "out")
    found = {"bare": [python, "program.py"]}
    found["hotspan run"] = [python, "-m", "hotspan", "run", "-o", output + ".hotspan", "program.py"]
    tools = Path(python).parent
    if (tools / "scalene").exists():
        found["scalene"] = [python, "-m", "scalene", "run", "-o", output + ".json", "program.py"]
    spy = shutil.which("py-spy", path=f"{tools}:{os.environ.get('PATH', '')}")
    if spy:
        found["py-spy record"] = [
            spy,
            "record",
            "-n",
            "-s",
            "-f",
            "raw",
            "-o",
            output + ".txt",
            "--",
            python,
            "program.py",
        ]
    found["torch.profiler"] = [python, "with_torch_profiler.py"]
    return found


def seconds_of(command: list[str], folder: Path) -> float | None:
    """The time of the work as the program measured it; `None` when the tool cannot run it."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=180, env=environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"  {command[:3]}: {error}", file=sys.stderr)
        return None
    found = re.search(rf"{MARK} ([0-9.]+)", done.stdout)
    if found is None:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        print(f"  {command[:3]}: {last}", file=sys.stderr)
        return None
    return float(found[1])


def measure(program: str, repeat: int) -> dict[str, float]:
    """The fastest round of each tool."""
    text = textwrap.dedent(PROGRAMS[program])
    best: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "program.py").write_text(text + FRAME.format(mark=MARK))
        (folder / "with_torch_profiler.py").write_text(text + TORCH_FRAME.format(mark=MARK))
        tools = commands(folder)
        if "torch" not in text:
            del tools["torch.profiler"]
        for _ in range(repeat):
            for tool, command in list(tools.items()):
                seconds = seconds_of(command, folder)
                if seconds is None:
                    del tools[tool]
                else:
                    best[tool] = min(seconds, best.get(tool, seconds))
    return best


def start_up(repeat: int) -> tuple[float, float]:
    """Seconds of an empty program, bare and with what `hotspan run` puts into it."""

    def once(environment: dict[str, str]) -> float:
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", ""], check=True, env={**os.environ, **environment})
        return time.perf_counter() - begin

    import hotspan

    inject = Path(hotspan.__file__).parent / "_inject"
    with tempfile.TemporaryDirectory() as spool:
        options = f'{{"spool": "{spool}"}}'
        recorded = {"PYTHONPATH": str(inject), "HOTSPAN_RUN": options}
        rounds = [(once({}), once(recorded)) for _ in range(4 * repeat)]
    return min(bare for bare, _ in rounds), min(seen for _, seen in rounds)


def report(repeat: int, only: str | None) -> str:
    """The section of the results."""
    measured = {name: measure(name, repeat) for name in PROGRAMS if only in (None, name)}
    tools = ["hotspan run", "scalene", "py-spy record", "torch.profiler"]
    lines = [
        f"One thread of torch; the fastest of {repeat} rounds, in which the tools take turns.",
        "",
        "| program | bare | " + " | ".join(tools) + " | target |",
        "|---|--:|" + "--:|" * len(tools) + "---|",
    ]
    for name, best in measured.items():
        bare = best["bare"]
        costs = {tool: best[tool] / bare - 1 for tool in tools if tool in best}
        cells = [f"{costs[tool]:+.1%}" if tool in costs else "-" for tool in tools]
        verdict = "met" if costs.get("hotspan run", 1) <= TARGET else "missed"
        lines.append(f"| {name} | {bare:.2f} s | " + " | ".join(cells) + f" | ≤ {TARGET:.0%}: {verdict} |")
    bare, seen = start_up(repeat)
    lines += [
        "",
        f"Start of a Python process: {bare * 1e3:.0f} ms bare, {(seen - bare) * 1e3:+.0f} ms when recorded.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", choices=PROGRAMS)
    parser.add_argument("--print", action="store_true", help="do not touch RESULTS.md")
    arguments = parser.parse_args()
    section = report(arguments.repeat, arguments.only)
    print(section)
    if not arguments.print:
        results.write_section("A whole program: `hotspan run`", section)


if __name__ == "__main__":
    main()
