"""Compares hotspan with the tools people use today, in one run, on the same files; writes bench/RESULTS.md.

Every measurement is a fresh process, the best of several, files warm in the page cache. Nothing here is a test: the
numbers are what this machine gave, next to the targets hotspan sets itself.

Usage: python bench/run.py [--repeat 3] [--events 5000000]
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import results
import synthetic

REPOSITORY = Path(__file__).resolve().parents[1]
SHARED_TRACE = REPOSITORY.parent / "shared/traces/hta/df_index_resolver/df_index_resolver.json.gz"
FOLDER = REPOSITORY / "build" / "bench"

TIMES_FASTER = 25
SHARE_OF_MEMORY = 0.25
MEGABYTES_PER_SECOND = 400
BYTES_PER_SPAN = 100
BYTES_PER_SPAN_WITH_SHAPES = 200


@dataclass(frozen=True)
class Result:
    """The best of several runs of a job."""

    seconds: float
    peak_bytes: int
    found: str


def best(results: list[Result]) -> Result:
    """The fastest run, with the smallest peak seen."""
    fastest = min(results, key=lambda result: result.seconds)
    return Result(fastest.seconds, min(result.peak_bytes for result in results), fastest.found)


def run_job(job: str, path: Path, repeat: int, core: int | None = None) -> Result | None:
    """Runs a job in fresh processes; `None`, and a word why, when the tool fails."""
    command = [sys.executable, str(Path(__file__).with_name("measure.py")), job, str(path)]
    if core is not None:
        command += ["--core", str(core)]
    results = []
    for _ in range(repeat):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            print(f"  {job} failed: {last}", file=sys.stderr)
            return None
        told = json.loads(done.stdout.splitlines()[-1])
        results.append(Result(told["seconds"], told["peak_bytes"], told["found"]))
    return best(results)


def run_command(arguments: list[str], repeat: int) -> Result:
    """Runs the `hotspan` command from start to exit; its memory is what `hotspan --version` does not take."""
    program = str(Path(sys.executable).with_name("hotspan"))

    def once(command: list[str]) -> Result:
        start = time.perf_counter()
        with open(os.devnull, "wb") as nothing:  # noqa: PTH123
            child = subprocess.Popen([program, *command], stdout=nothing)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise SystemExit(f"hotspan {' '.join(command)} failed")
        return Result(time.perf_counter() - start, usage.ru_maxrss * 1024, "")

    idle = best([once(["--version"]) for _ in range(repeat)])
    busy = best([once(arguments) for _ in range(repeat)])
    return Result(busy.seconds, max(busy.peak_bytes - idle.peak_bytes, 0), "")


def megabytes(count: float) -> str:
    """Millions of bytes."""
    return f"{count / 1e6:,.0f} MB"


def table(titles: list[str], rows: list[list[str]]) -> str:
    """A Markdown table with its columns lined up, fit for a terminal and for a page."""
    widths = [max(len(row[index]) for row in [titles, *rows]) for index in range(len(titles))]

    def line(cells: list[str]) -> str:
        padded = [
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "| " + " | ".join(padded) + " |"

    rule = (
        "|"
        + "|".join("-" * (width + 1) + ("-" if index == 0 else ":") for index, width in enumerate(widths))
        + "|"
    )
    return "\n".join([line(titles), rule, *map(line, rows)])


def verdict(reached: bool) -> str:
    """Whether a target was reached."""
    return "reached" if reached else "missed"


def real_trace(repeat: int) -> str:
    """The side-by-side comparison on a real trace."""
    if not SHARED_TRACE.exists():
        return (
            "The real trace (HTA's df_index_resolver sample) does not lie beside the repository: skipped.\n"
        )
    plain = FOLDER / "df_index_resolver.json"
    with gzip.open(SHARED_TRACE) as packed, plain.open("wb") as file:
        shutil.copyfileobj(packed, file)
    size = plain.stat().st_size
    # In turns, so that a busy moment of the machine hits them all.
    jobs = ("hotspan", "HTA", "torch-tb-profiler", "json.load")
    rounds = [{job: run_job(job, SHARED_TRACE, 1) for job in jobs} for _ in range(repeat)]
    results = {job: [turn for turns in rounds if (turn := turns[job])] for job in jobs}
    if not results["hotspan"]:
        raise SystemExit("hotspan itself failed; nothing to compare")
    ours = best(results["hotspan"])
    measured: list[tuple[str, Result | None]] = [
        ("hotspan (Python)", ours),
        ("hotspan (command line)", run_command(["stats", str(SHARED_TRACE)], repeat)),
        *((job, best(results[job]) if results[job] else None) for job in jobs[1:]),
    ]
    rows = [
        [name, f"{result.seconds:.3f} s", f"{result.seconds / ours.seconds:.1f}x", megabytes(result.peak_bytes),
         f"{result.peak_bytes / ours.peak_bytes:.1f}x"]
        if result else [name, "failed", "", "", ""]
        for name, result in measured
    ]  # fmt: skip
    targets = []
    for name, peer in measured[2:4]:
        if peer:
            times, share = peer.seconds / ours.seconds, ours.peak_bytes / peer.peak_bytes
            targets.append(
                f"- {name}: hotspan is {times:.1f} times faster (target {TIMES_FASTER}: "
                f"{verdict(times >= TIMES_FASTER)}) and takes {share:.0%} of the memory "
                f"(target {SHARE_OF_MEMORY:.0%}: {verdict(share <= SHARE_OF_MEMORY)})"
            )
    core = min(os.sched_getaffinity(0))
    pinned = run_job("hotspan-open", plain, repeat, core)
    if pinned:
        speed = size / 1e6 / pinned.seconds
        targets.append(
            f"- one core, plain JSON: {speed:,.0f} MB/s to a trace ready to analyse "
            f"(target {MEGABYTES_PER_SECOND}: {verdict(speed >= MEGABYTES_PER_SECOND)})"
        )
    return "\n".join(
        [
            f"A real trace: df_index_resolver, {megabytes(size)} of JSON in a gzip file of "
            f"{megabytes(SHARED_TRACE.stat().st_size)}",
            "",
            f"Best of {repeat} fresh processes: load it, then answer which operators and which kernels took the time.",
            "HTA answers for kernels only, `json.load` answers nothing. Memory is the growth of the peak beyond the",
            "imported tool.",
            "",
            table(["tool", "time", "to hotspan", "peak memory", "to hotspan"], rows),
            "",
            *targets,
            "",
        ]
    )


def synthetic_traces(event_count: int, repeat: int) -> str:
    """Whether time and memory grow in line with the size, and stay within the budget."""
    cases = [
        (event_count // 5, False),
        (event_count // 2, False),
        (event_count, False),
        (event_count // 5, True),
    ]
    rows, per_event, notes = [], [], []
    for count, shapes in cases:
        path = FOLDER / f"synthetic-{count}{'-shapes' if shapes else ''}.json"
        if not path.exists():
            print(f"  writing {path.name}", file=sys.stderr)
            synthetic.write(path, count, shapes=shapes)
        opened, answered = run_job("hotspan-open", path, repeat), run_job("hotspan", path, repeat)
        if opened is None or answered is None:
            raise SystemExit("hotspan failed on a synthetic trace")
        told = json.loads(opened.found)
        each = told["bytes"] / told["spans"]
        budget = BYTES_PER_SPAN_WITH_SHAPES if shapes else BYTES_PER_SPAN
        size = path.stat().st_size
        if not shapes:
            per_event.append(opened.seconds / count)
        rows.append([
            f"{count / 1e6:g} million{', with shapes' if shapes else ''}", megabytes(size), f"{opened.seconds:.2f} s",
            f"{size / 1e6 / opened.seconds:,.0f} MB/s", f"{answered.seconds:.2f} s", megabytes(answered.peak_bytes),
            f"{each:.1f} B",
        ])  # fmt: skip
        notes.append(f"- {rows[-1][0]}: {each:.1f} bytes a span (budget {budget}: {verdict(each <= budget)})")
    spread = max(per_event) / min(per_event)
    notes.append(
        f"- time per event, slowest size to fastest: {spread:.2f} (1.00 is linear; "
        f"{cases[0][0] / 1e6:g} to {event_count / 1e6:g} million events)"
    )
    return "\n".join(
        [
            "Synthetic traces: operators, launches, kernels and arrows as Kineto writes them, plain JSON",
            "",
            table(["events", "JSON", "open", "speed", "open and answer", "peak memory", "a span"], rows),
            "",
            *notes,
            "",
        ]
    )


def main() -> None:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3, help="runs of which the best counts")
    parser.add_argument("--events", type=int, default=5_000_000, help="size of the largest synthetic trace")
    parser.add_argument("--results", type=Path, default=results.PAGE, help="where the page goes")
    arguments = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    # The children's peaks are read from the kernel; make sure that this process does not lend them its own.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 100_000
    for section in (real_trace(arguments.repeat), synthetic_traces(arguments.events, arguments.repeat)):
        heading, _, body = section.partition("\n")
        print(f"{heading}\n{body}")
        results.write_section(heading, body, arguments.results)


if __name__ == "__main__":
    main()
