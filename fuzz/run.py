"""Fuzzes every target for a while with the stable compiler, and counts the executions.

``make fuzz`` runs it for a minute a target; ``python fuzz/run.py --seconds 600 chrome analyze`` runs two of them
longer. What a target found is in ``fuzz/artifacts``; a small version of it belongs into ``fuzz/corpus``, whose files
ordinary tests read.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
TARGETS = ("chrome", "collapsed", "hotspan_file", "lprof", "prof", "speedscope", "analyze", "plausible")
# What cargo-fuzz passes, without the sanitizers, which are for nightly compilers: counters in every branch, and what
# is compared.
FLAGS = " ".join(
    (
        "--cfg fuzzing",
        "-Cpasses=sancov-module",
        "-Cllvm-args=-sanitizer-coverage-level=4",
        "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
        "-Cllvm-args=-sanitizer-coverage-pc-table",
        "-Cllvm-args=-sanitizer-coverage-trace-compares",
    )
)
# The reader of a target whose bytes begin with a choice sees the corpora of all readers.
SEEDS = {"analyze": ("chrome", "collapsed", "hotspan_file", "lprof", "prof", "speedscope")}


def build() -> Path:
    """Builds all targets and returns their folder."""
    host = re.search(
        r"host: (\S+)", subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    )
    assert host is not None
    # With --target, the flags are not for build scripts and macros, which have no place for the counters.
    environment = {**os.environ, "RUSTFLAGS": FLAGS, "CARGO_TARGET_DIR": str(FOLDER / "target")}
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--bins", "--target", host[1]]
    subprocess.run(command, cwd=FOLDER, env=environment, check=True)
    return FOLDER / "target" / host[1] / "release"


def fuzz(programs: Path, target: str, seconds: int) -> tuple[str, int, int]:
    """Runs one target and returns its name, how many executions there were, and its exit code."""
    found = FOLDER / "artifacts" / target
    grown = FOLDER / "target" / "corpus" / target
    for folder in (found, grown):
        folder.mkdir(parents=True, exist_ok=True)
    seeds = [FOLDER / "corpus" / name for name in SEEDS.get(target, (target,))]
    command = [
        *(str(programs / target), str(grown), *(str(seed) for seed in seeds if seed.is_dir())),
        *(f"-artifact_prefix={found}/", f"-max_total_time={seconds}", "-max_len=4096", "-timeout=10"),
        *("-rss_limit_mb=2048", "-print_final_stats=1", "-verbosity=1"),
    ]
    done = subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    count = re.search(r"stat::number_of_executed_units:\s+(\d+)", done.stderr)
    executions = int(count[1]) if count else 0
    print(f"{target:14} {executions:>12,} executions, {executions // max(seconds, 1):,} a second", flush=True)
    if done.returncode != 0:
        print(done.stderr[-4000:], file=sys.stderr)
    return target, executions, done.returncode


def main() -> int:
    """Fuzzes the targets, as many at a time as there are processors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="how long each target runs")
    parser.add_argument("--counts", type=Path, help="a JSON file in which executions are added up")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="how many fuzzers run at a time"
    )
    parser.add_argument("--programs", type=Path, help="a folder of targets that were built before")
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], default=[])
    options = parser.parse_args()
    programs = options.programs or build()
    targets = options.targets or TARGETS
    # With processors to spare, several fuzzers of a target share what they found through its folder.
    copies = max(options.jobs // len(targets), 1)
    before = json.loads(options.counts.read_text()) if options.counts and options.counts.exists() else {}
    counts, failed = Counter(before), set()
    with ThreadPoolExecutor(options.jobs) as pool:
        tasks = [
            pool.submit(fuzz, programs, target, options.seconds) for target in targets for _ in range(copies)
        ]
        for task in tasks:
            target, executions, code = task.result()
            counts[target] += executions
            if code != 0:
                failed.add(target)
    if options.counts:
        options.counts.write_text(json.dumps(counts, indent=1))
    print(f"{'all':14} {sum(counts.values()):>12,} executions")
    if failed:
        print(f"failed: {', '.join(sorted(failed))}; what did it is in fuzz/artifacts", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
