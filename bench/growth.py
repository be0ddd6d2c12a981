"""Runs all commands on all hostile inputs at two sizes, and prints what grows faster than its input.

``python bench/growth.py --program target/release/hotspan`` takes a quarter of an hour.
``python/tests/test_growth.py`` runs a part of it.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "python" / "tests"))

from hostile_inputs import GENERATORS

EXPORTS = (
    *(
        "chrome",
        "hotspan",
        "memory-html",
        "memory-json",
        "memory-raw",
        "prof",
        "lprof",
        "mprof",
        "memory-svg",
    ),
    *("flamegraph", "collapsed", "speedscope", "arrow"),
)
COMMANDS: dict[str, list[str]] = {
    "info": ["info", "IN"],
    "report": ["report", "IN"],
    "html": ["report", "IN", "--html", "OUT"],
    "compare": ["report", "IN", "IN"],
    "diff": ["diff", "IN", "IN"],
    "ranks": ["ranks", "IN", "IN"],
    "tree": ["tree", "IN"],
    "stack": ["stats", "--by", "stack", "IN"],
} | {name: ["export", "IN", "--to", name, "-o", "OUT"] for name in EXPORTS}


class Cost:
    """What one run of the program took."""

    def __init__(self, program: list[str], command: list[str], folder: Path, content: Path) -> None:
        arguments = [
            str(content) if word == "IN" else str(folder / "out") if word == "OUT" else word
            for word in command
        ]
        child = os.fork()
        if child == 0:
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            # A run that goes wild must not take the machine with it.
            resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
            resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
            os.execv(program[0], [*program, *arguments])
        _, status, usage = os.wait4(child, 0)
        self.code = os.waitstatus_to_exitcode(status)
        self.seconds = usage.ru_utime
        self.megabytes = usage.ru_maxrss / 1024
        written = folder / "out"
        self.output = written.stat().st_size / 1e6 if written.exists() else 0.0
        written.unlink(missing_ok=True)


def main() -> None:
    """Runs what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="hotspan")
    parser.add_argument("--size", type=int, default=2_500)
    parser.add_argument("--inputs", nargs="*", default=list(GENERATORS))
    parser.add_argument("--commands", nargs="*", default=list(COMMANDS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in options.inputs:
            for position, size in enumerate((options.size, 4 * options.size)):
                (folder / f"in{position}").write_bytes(GENERATORS[kind](size))
            for command in options.commands:
                small, large = (
                    Cost([options.program], COMMANDS[command], folder, folder / f"in{position}")
                    for position in range(2)
                )
                bad = (
                    large.seconds > 7 * max(small.seconds, 0.05)
                    or large.megabytes > 7 * max(small.megabytes - 15, 5) + 15
                )
                odd = large.code not in (0, 1)
                mark = "GROWS" if bad else f"ENDS {large.code}" if odd else ""
                print(
                    f"{kind:20} {command:12} {small.seconds:7.2f} {large.seconds:7.2f} s {small.megabytes:7.0f}"
                    f" {large.megabytes:7.0f} MB {small.output:7.1f} {large.output:7.1f} MB out  {mark}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
