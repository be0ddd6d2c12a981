"""Hostile input at two sizes: what a command takes grows with its input and no faster, and stays in its limit."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hostile_inputs import GENERATORS

SMALL = 2_000
# What is quick at that size shows nothing.
SIZES = {"memory_devices": 8_000, "broken": 10_000, "unclosed": 8_000, "unmatched_ends": 8_000}
FACTOR = 4
# A square would be sixteen times as much. Below the floors there is nothing to compare.
MOST = 8
FLOOR_SECONDS = 0.15
FLOOR_MEGABYTES = 8.0
FLOOR_WRITTEN = 1.0

# Each is the command that an input is hardest on.
CASES = {
    "names": ["report", "IN"],
    "threads": ["report", "IN", "--html", "OUT"],
    "devices": ["report", "IN", "--html", "OUT"],
    "steps": ["report", "IN"],
    "nested": ["export", "IN", "--to", "speedscope", "-o", "OUT"],
    "nested_python": ["export", "IN", "--to", "collapsed", "-o", "OUT"],
    "nested_modules": ["report", "IN", "--html", "OUT"],
    "nested_with_kernels": ["tree", "IN"],
    "overlapping": ["report", "IN"],
    "one_correlation": ["report", "IN"],
    "keys": ["info", "IN"],
    "keys_of_one": ["info", "IN"],
    "metadata_keys": ["info", "IN"],
    "begins": ["tree", "IN"],
    "memory_devices": ["export", "IN", "--to", "memory-json", "-o", "OUT"],
    "memory_held": ["export", "IN", "--to", "memory-html", "-o", "OUT"],
    "one_call_stack": ["report", "IN", "--html", "OUT"],
    "broken": ["info", "IN"],
    "unclosed": ["info", "IN"],
    "quotes": ["info", "IN"],
    "one_deep_stack": ["tree", "IN"],
    "prefixes": ["export", "IN", "--to", "speedscope", "-o", "OUT"],
    "unmatched_ends": ["info", "IN"],
    "profiled_callers": ["export", "IN", "--to", "prof", "-o", "OUT"],
    "profiled_lines": ["export", "IN", "--to", "lprof", "-o", "OUT"],
}


# A process counts the memory of whoever started it as its own until it becomes another program. The tests have much.
MEASURE = """
import os, sys
child = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(child, 0)
with open(sys.argv[1], "w") as taken:
    taken.write(f"{os.waitstatus_to_exitcode(status)} {usage.ru_utime} {usage.ru_maxrss}")
"""


class Run:
    """A run of the command line: how it ended, what it said, and what it took."""

    def __init__(self, command: list[str], content: Path, *options: str) -> None:
        self.code, self.said, self.seconds, self.megabytes, self.written = run(command, content, *options)


def run(command: list[str], content: Path, *options: str) -> tuple[int, str, float, float, float]:
    """Runs the command line: exit code, what it said, processor time, and the megabytes it held and wrote."""
    output, said = content.with_name("out"), content.with_name("said")
    words = {"IN": str(content), "OUT": str(output)}
    arguments = [sys.executable, "-m", "hotspan", *(words.get(word, word) for word in command), *options]
    taken = content.with_name("taken")
    with said.open("wb") as talk:
        measured = [sys.executable, "-S", "-c", MEASURE, str(taken), *arguments]
        subprocess.run(measured, stdout=subprocess.DEVNULL, stderr=talk, check=True)
    code, seconds, kilobytes = taken.read_text().split()
    taken.unlink()
    written = output.stat().st_size / 1e6 if output.exists() else 0.0
    output.unlink(missing_ok=True)
    return int(code), said.read_text(), float(seconds), int(kilobytes) / 1024, written


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """What the program takes for nearly nothing."""
    content = tmp_path_factory.mktemp("idle") / "small.json"
    content.write_bytes(GENERATORS["names"](1))
    return Run(["info", "IN"], content)


@pytest.mark.parametrize("kind", CASES)
def test_what_a_command_takes_grows_with_its_input(kind: str, tmp_path: Path, idle: Run) -> None:
    def taken(size: int) -> dict[str, float]:
        content = tmp_path / f"{size}.in"
        content.write_bytes(GENERATORS[kind](size))
        ended = Run(CASES[kind], content)
        assert ended.code == 0, ended.said
        return {
            "seconds": max(ended.seconds - idle.seconds, FLOOR_SECONDS),
            "megabytes held": max(ended.megabytes - idle.megabytes, FLOOR_MEGABYTES),
            "megabytes written": max(ended.written, FLOOR_WRITTEN),
        }

    size = SIZES.get(kind, SMALL)
    small, large = taken(size), taken(size * FACTOR)
    grown = {key: (small[key], large[key]) for key in small if large[key] >= MOST * small[key]}
    assert grown == {}


BOMBS = {
    "collapsed stacks": (b"a;b 1\n", b""),
    "events": (b'{"ph":"X","name":"a","ts":1,"dur":1,"pid":1,"tid":1},', b'{"traceEvents":['),
}


def bomb(path: Path, block: bytes, head: bytes) -> Path:
    """A small file with 400 MB of blocks in it."""
    packed = gzip.compress(block * ((16 << 20) // len(block)))
    path.write_bytes(gzip.compress(head) + packed * 25)
    return path


@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_ends_with_a_word_and_not_with_the_machine(kind: str, tmp_path: Path) -> None:
    content = bomb(tmp_path / "bomb.gz", *BOMBS[kind])
    assert content.stat().st_size < 4 << 20
    ended = Run(["info", "IN"], content, "--max-memory", "150MB")
    assert ended.code == 1, ended.said
    assert "more than 150 MiB" in ended.said
    assert "bomb.gz" in ended.said, "which file it is"
    assert "--max-memory" in ended.said, "what to do about it"
    assert ended.megabytes < 400


def test_an_export_that_takes_too_much_leaves_nothing_behind(tmp_path: Path) -> None:
    content = tmp_path / "trace.json"
    content.write_bytes(GENERATORS["call_stacks"](3_000))
    ended = Run(["export", "IN", "--to", "flamegraph", "-o", "OUT"], content, "--max-memory", "60MB")
    assert ended.code == 1, ended.said
    assert ended.said.startswith("error: this takes more than 60.0 MiB"), ended.said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["said", "trace.json"]


def test_a_python_program_gets_an_exception(tmp_path: Path) -> None:
    content = bomb(tmp_path / "bomb.gz", *BOMBS["collapsed stacks"])
    program = (
        "import hotspan, sys\n"
        "try:\n    hotspan.open(sys.argv[1])\n"
        "except MemoryError as error:\n    sys.stderr.write(f'refused: {error}')\n"
    )
    said = tmp_path / "said"
    descriptor = os.open(said, os.O_WRONLY | os.O_CREAT)
    arguments = [sys.executable, "-c", program, str(content)]
    limited = {**os.environ, "HOTSPAN_MAX_MEMORY": "150MB"}
    child = os.posix_spawn(
        sys.executable,
        arguments,
        limited,
        file_actions=[(os.POSIX_SPAWN_DUP2, descriptor, 2)],
    )
    os.close(descriptor)
    _, status, _ = os.wait4(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert said.read_text().startswith("refused: failed to open"), said.read_text()
