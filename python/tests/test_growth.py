"""Hostile input at two sizes: what a command takes grows with its input and no faster, and stays in its limit."""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path

import pytest

from hostile_inputs import GENERATORS

SMALL = 2_000
FACTOR = 4
# A square would be sixteen times as much. Below the floors there is nothing to compare.
MOST = 10
FLOOR_SECONDS = 0.15
FLOOR_MEGABYTES = 8.0

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


def run(command: list[str], content: Path, *options: str) -> tuple[int, str, float, float]:
    """Runs the command line; returns its exit code, what it said, its processor time, and its memory in megabytes."""
    output, said = content.with_name("out"), content.with_name("said")
    words = {"IN": str(content), "OUT": str(output)}
    arguments = [sys.executable, "-m", "hotspan", *(words.get(word, word) for word in command), *options]
    null = os.open(os.devnull, os.O_WRONLY)
    talk = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        actions = [(os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, talk, 2)]
        child = os.posix_spawn(sys.executable, arguments, os.environ, file_actions=actions)
        # The only call that tells what this child took, and no other.
        _, status, usage = os.wait4(child, 0)
    finally:
        os.close(null)
        os.close(talk)
    output.unlink(missing_ok=True)
    return os.waitstatus_to_exitcode(status), said.read_text(), usage.ru_utime, usage.ru_maxrss / 1024


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> tuple[float, float]:
    """What the program takes for nearly nothing."""
    content = tmp_path_factory.mktemp("idle") / "small.json"
    content.write_bytes(GENERATORS["names"](1))
    code, said, seconds, megabytes = run(["info", "IN"], content)
    assert code == 0, said
    return seconds, megabytes


@pytest.mark.parametrize("kind", CASES)
def test_twice_the_input_takes_no_more_than_a_little_more_than_twice(
    kind: str, tmp_path: Path, idle: tuple[float, float]
) -> None:
    def taken(size: int) -> tuple[float, float]:
        content = tmp_path / f"{size}.in"
        content.write_bytes(GENERATORS[kind](size))
        code, said, seconds, megabytes = run(CASES[kind], content)
        assert code == 0, said
        return max(seconds - idle[0], FLOOR_SECONDS), max(megabytes - idle[1], FLOOR_MEGABYTES)

    small, large = taken(SMALL), taken(SMALL * FACTOR)
    assert large[0] < MOST * small[0], f"processor time grows from {small[0]:.2f} to {large[0]:.2f} s"
    assert large[1] < MOST * small[1], f"memory grows from {small[1]:.0f} to {large[1]:.0f} MB"


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
    code, said, _, megabytes = run(["info", "IN"], content, "--max-memory", "150MB")
    assert code == 1, said
    assert "more than 150.00 MB" in said, said
    assert "bomb.gz" in said, said
    assert "--max-memory" in said, "what to do about it"
    assert megabytes < 400, megabytes


def test_an_export_that_takes_too_much_leaves_nothing_behind(tmp_path: Path) -> None:
    content = tmp_path / "trace.json"
    content.write_bytes(GENERATORS["call_stacks"](3_000))
    code, said, _, _ = run(
        ["export", "IN", "--to", "flamegraph", "-o", "OUT"], content, "--max-memory", "60MB"
    )
    assert code == 1, said
    assert said.startswith("error: this takes more than 60.00 MB"), said
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
