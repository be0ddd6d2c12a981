"""Recordings that do not fit into the memory that hotspan may use: the latest stretch is read, and that is said."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

EVENTS = 1_000_000
STEP = 1_000
LIMIT = ("--max-memory", "100MB")


def hotspan(*arguments: object) -> str:
    command = [sys.executable, "-m", "hotspan", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A million operators on two threads, in the order of threads, with a name for each thousand."""
    folder = tmp_path_factory.mktemp("larger")
    source, recording = folder / "large.json", folder / "large.hotspan"
    half = EVENTS // 2
    with source.open("w") as text:
        text.write('{"traceEvents":[{"ph":"M","name":"process_name","pid":1,"args":{"name":"python"}}')
        for thread in (1, 2):
            for index in range(half):
                text.write(
                    f',{{"ph":"X","cat":"cpu_op","name":"aten::step{index // STEP}","pid":1,"tid":{thread},'
                    f'"ts":{index * 10},"dur":5,"args":{{"External id":{thread * half + index}}}}}'
                )
        text.write("]}")
    hotspan("export", source, "--to", "hotspan", "-o", recording)
    source.unlink()
    return recording


def operators(recording: Path, *options: str) -> dict[str, int]:
    (table,) = json.loads(hotspan("stats", recording, "--json", "--limit", "100000", *options))
    return {row["name"]: row["count"] for row in table["rows"]}


def test_all_is_read_where_there_is_memory(recording: Path) -> None:
    counts = operators(recording)
    assert sum(counts.values()) == EVENTS


def test_the_latest_stretch_is_read_where_there_is_not(recording: Path) -> None:
    counts = operators(recording, *LIMIT)
    first = min(int(name.removeprefix("aten::step")) for name in counts)
    # The stretch is the last of both threads, without a gap; only its first name may be cut.
    assert 0 < first < EVENTS // 2 // STEP
    for number in range(first + 1, EVENTS // 2 // STEP):
        assert counts[f"aten::step{number}"] == 2 * STEP
    assert "older_events" in hotspan("info", recording, *LIMIT)
    assert "were not read" in hotspan("report", recording, *LIMIT)
