"""The report of ``hotspan run``: where the time of whole programs went, what cost most, and two runs side by side."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conftest import REPOSITORY
from whole_programs import PROGRAMS

CASES = REPOSITORY / "examples" / "case_studies"
#: Every Python program imports, starts and ends; what it does besides is what it is about.
AROUND = {
    "starting Python",
    "importing modules",
    "garbage collection",
    "hotspan itself",
    "exit",
}
#: What the advice calls the cause, and what the mended version spends less time in. The steps make it seconds.
STUDIES = {
    "double_precision": ({"fp64-slow-path"}, "torch operators (CPU)", 16),
    "masking": ({"numpy-round-trip"}, "native code: numpy", 15),
    "picture_transforms": ({"data-loading-bound", "per-sample-transforms"}, "DataLoader", 16),
}


def hotspan(folder: Path, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hotspan", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, env=environment)


def report(folder: Path, *files: str | Path) -> dict[str, Any]:
    seen = hotspan(folder, "report", *files, "--json")
    assert seen.returncode == 0, seen.stderr
    return json.loads(seen.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", PROGRAMS)
def test_wall_time_adds_up_and_names_what_the_program_does(name: str, tmp_path: Path) -> None:
    text, expected = PROGRAMS[name]
    (tmp_path / "program.py").write_text(text)
    seen = hotspan(tmp_path, "run", "program.py")
    assert seen.returncode == 0, seen.stderr
    found = report(tmp_path, "program.hotspan")
    parts = {row["activity"]: row for row in found["report"]["Where the time went"]}
    assert sum(row["share"] for row in parts.values()) == pytest.approx(100, abs=1)
    assert sum(row["time"] for row in parts.values()) == found["wall_time_ns"]
    # From the first moment to the last.
    assert "not recorded" not in parts
    longest = max((part for part in parts if part not in AROUND), key=lambda part: parts[part]["time"])
    assert longest == expected, parts
    # The recorder is no part of the program.
    for section in ("Functions that cost most", "Lines of the program that cost most"):
        assert "hotspan/_" not in json.dumps(found["report"].get(section, []))


# A server of short requests: each is computed for a moment, then the loop waits for a millisecond.
_SERVER = """
import asyncio, json

async def serve():
    for _ in range(400):
        json.dumps(list(range(500)))
        await asyncio.sleep(0.001)

async def main():
    await asyncio.gather(*(serve() for _ in range(8)))

asyncio.run(main())
"""


@contextmanager
def busy_processors(programs: int) -> Iterator[None]:
    """Other programs that run on each processor."""
    command = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(command) for _ in range(programs * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def test_a_program_that_queues_for_a_processor_is_told(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("print(sum(range(30_000_000)))")
    with busy_processors(3):
        seen = hotspan(tmp_path, "run", "program.py")
    assert seen.returncode == 0, seen.stderr
    assert "was ready to run but waited for a processor for" in " ".join(seen.stderr.split())
    facts = {row["fact"]: row["value"] for row in report(tmp_path, "program.hotspan")["report"]["Program"]}
    assert "waited for a processor" in facts["Processors"]


def test_short_waits_are_as_long_among_the_parts_as_among_the_waits(tmp_path: Path) -> None:
    """Also where the program queues for a processor, which is no wait."""
    (tmp_path / "server.py").write_text(_SERVER)
    with busy_processors(1):
        seen = hotspan(tmp_path, "run", "server.py")
    assert seen.returncode == 0, seen.stderr
    found = report(tmp_path, "server.hotspan")
    parts = {row["activity"]: row["time"] for row in found["report"]["Where the time went"]}
    waits = sum(row["time"] for row in found["report"]["What the main thread waited for"])
    waiting = parts["waiting for events"] + parts.get("waiting for threads or processes", 0)
    assert abs(waiting - waits) < 0.2 * found["wall_time_ns"], (parts, waits)


# Each process runs the second line for itself, at the same time.
_POOL = """import multiprocessing, time
end = time.monotonic() + 1
while time.monotonic() < end: pass

def work(number):
    return number

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        print(sum(pool.map(work, range(8))))
"""


def test_the_verdict_is_about_the_time_of_the_main_thread(tmp_path: Path) -> None:
    (tmp_path / "pool.py").write_text(_POOL)
    assert hotspan(tmp_path, "run", "pool.py").returncode == 0
    found = report(tmp_path, "pool.hotspan")
    sentence = found["verdict"]["sentence"]
    shares = [int(share) for share in re.findall(r"(\d+) %", sentence)]
    assert shares, sentence
    assert max(shares) <= 100, sentence
    # Children are started with a text of multiprocessing's own, which is no line of the program but in its imports.
    lines = {row["line"]: row["time"] for row in found["report"]["Lines of the program that cost most"]}
    assert lines["pool.py:3"] > 0, lines
    assert sum(time for line, time in lines.items() if line.startswith("<string>")) < 0.1 * sum(
        lines.values()
    ), lines


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The demonstration, recorded once."""
    folder = tmp_path_factory.mktemp("trained")
    seen = hotspan(folder, "run", "-o", "train.hotspan", REPOSITORY / "examples" / "train.py")
    assert seen.returncode == 0, seen.stderr
    return folder, seen.stderr


def test_the_whole_picture_of_a_training(trained: tuple[Path, str]) -> None:
    folder, text = trained
    assert all(len(line) <= 100 for line in text.splitlines() if "hotspan" not in line), text
    assert "\x1b" not in text
    for title in (
        "Where the time went",
        "Steps (of the optimizer)",
        "Operators that cost most",
        "Time by process",
    ):
        assert title in text
    found = report(folder, "train.hotspan")["report"]
    # 640 pictures in batches of 32, twice; the first is told apart where it is warm-up.
    steps = [(row["steps"], row["count"]) for row in found["Steps (of the optimizer)"]]
    assert steps in ([("all", 40)], [("first (warm-up)", 1), ("the others", 39)])
    workers = [row for row in found["Time by process"] if row["what"] == "DataLoader worker"]
    assert len(workers) >= 1
    assert found["Time by process"][0]["what"] == "the program"
    assert "aten::convolution_backward" in {row["name"] for row in found["Operators that cost most"]}
    assert any("train.py:" in row["line"] for row in found["Lines of the program that cost most"])
    assert found["Memory at its peak"][0]["bytes"] > 1 << 20


def test_the_report_is_printed_again(trained: tuple[Path, str]) -> None:
    folder, text = trained
    again = hotspan(folder, "report", "train.hotspan")
    assert again.returncode == 0
    assert again.stdout.strip() in text
    markdown = hotspan(folder, "report", "train.hotspan", "--markdown").stdout
    assert "## Where the time went\n\n| Activity | Time | Share |" in markdown


def test_a_run_does_not_differ_from_itself(trained: tuple[Path, str]) -> None:
    folder, _ = trained
    found = report(folder, "train.hotspan", "train.hotspan")
    assert found["findings"]["gone"] == found["findings"]["new"] == []
    assert {row["verdict"] for row in found["report"]["Where the time went"][1:]} == {"noise"}
    assert "Lines that changed" not in found["report"]


@pytest.mark.parametrize("case", STUDIES)
def test_a_case_study_is_explained_and_mended(case: str, tmp_path: Path) -> None:
    causes, part, steps = STUDIES[case]
    for name, arguments in (("slow", []), ("mended", ["--fixed"])):
        program = [CASES / f"{case}.py", *arguments, str(steps)]
        seen = hotspan(tmp_path, "run", "--shapes", "-o", f"{name}.hotspan", *program)
        assert seen.returncode == 0, seen.stderr
    slow = report(tmp_path, "slow.hotspan")
    assert causes <= {finding["rule"] for finding in slow["advice"]["findings"]}
    found = report(tmp_path, "slow.hotspan", "mended.hotspan")
    assert causes <= set(found["findings"]["gone"]), found["findings"]
    (row,) = [row for row in found["report"]["Where the time went"] if row["activity"] == part]
    assert row["verdict"] == "change", row
    assert row["change"] < 0
    assert any(re.match(rf"Less time in: .*{re.escape(part)}", words) for words in found["summary"])
    if case == "masking":
        lines = (CASES / "masking.py").read_text().splitlines()
        number = 1 + next(number for number, text in enumerate(lines) if "np.argwhere(" in text)
        (finding,) = [finding for finding in slow["advice"]["findings"] if finding["rule"] in causes]
        assert finding["source"].endswith(f"masking.py:{number}")
        assert slow["report"]["Lines of the program that cost most"]
        ranges = {row["name"]: row["share"] for row in slow["report"]["Ranges that the program marks"]}
        assert ranges["LABEL2: masking"] > ranges["LABEL1: linear pass"] > 0


def test_what_is_missing_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import time, os\ntime.sleep(1.5); os.kill(os.getpid(), 9)")
    seen = hotspan(tmp_path, "run", "program.py")
    assert "What is missing" in seen.stderr
    assert "was cut off" in " ".join(seen.stderr.split())
    assert any("was cut off" in text for text in report(tmp_path, "program.hotspan")["missing"])
