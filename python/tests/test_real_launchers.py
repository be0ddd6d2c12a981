"""Launchers that are not Python, inside ``hotspan run`` and around it: Open MPI's from PyPI, Slurm where it runs."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import hotspan
from recorded_program import RECORDING, SCRIPT, RecordedProgram
from test_real_programs import check_advice, check_same, python

pytest.importorskip("torch")

__all__ = ["python"]  # the fixture

LAUNCHERS = {
    "mpirun": ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2"],
    "srun": ["srun", "--overcommit", "-n", "2"],
}
#: Rank 1 fails.
FAILING = """
import os, sys
sys.exit(3 * (os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("SLURM_PROCID")) == "1"))
"""


@pytest.fixture(params=LAUNCHERS)
def launcher(request: pytest.FixtureRequest, python: Path) -> list[str]:
    """The words that start two ranks of what follows."""
    words = LAUNCHERS[request.param]
    if request.param == "srun":
        if shutil.which("srun") is None:
            pytest.skip("Slurm is not installed here")
        try:
            subprocess.run([*words, "true"], capture_output=True, timeout=20, check=True)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            pytest.skip(f"no node of Slurm takes a job here: {error}")
    elif not (python.parent / words[0]).exists():
        pytest.skip("Open MPI is not in the environment of the real programs")
    return words


def test_ranks_in_one_recording(python: Path, launcher: list[str], tmp_path: Path) -> None:
    ran = RecordedProgram(
        python, tmp_path, [*launcher, "python", f"{SCRIPT}/launched_train.py"], is_counted=True
    )
    check_same(ran)
    check_advice(ran, set())
    assert ran.counted["aten::mm"] == 220
    assert ran.operators() == ran.counted
    recording = tmp_path / "recorded" / RECORDING
    report = ask(python, "report", recording)
    ranks = report["report"]["Ranks"]
    assert [row["rank"] for row in ranks] == ["0", "1"]
    assert "What follows is about rank " in report["about"]
    whats = [row["what"] for row in report["report"]["Time by process"]]
    assert whats == ["launched_train.py"] * 2, "neither is the program that was started"
    compared = ask(python, "ranks", recording)
    assert compared["ranks"] == [{**row, **ours} for row, ours in zip(compared["ranks"], ranks, strict=True)]


def test_a_recording_of_each_rank(python: Path, launcher: list[str], tmp_path: Path) -> None:
    ran = RecordedProgram(python, tmp_path, [*launcher, "python", f"{SCRIPT}/launched_train.py"])
    plain = ran.wait("plain", ran.start("plain", ran.words()))
    inside = ran.words("-m", "hotspan", "run")
    recorded = ran.wait("recorded", ran.start("recorded", inside))
    assert (recorded.code, recorded.output) == (plain.code, plain.output), recorded.errors
    names = {"launched_train-rank0.hotspan", "launched_train-rank1.hotspan"}
    assert recorded.files == plain.files | names
    assert recorded.errors.count("Where the time went") == 1
    files = sorted(tmp_path / "recorded" / name for name in names)
    counts = []
    for file in files:
        rows = hotspan.open(file).key_averages()
        counts.append({row.key: row.count for row in rows}["aten::mm"])
    # Rank 1 multiplies twenty more in each of ten steps.
    assert counts[1] == counts[0] + 200
    ranks = ask(python, "ranks", *files)["ranks"]
    assert [(row["rank"], row["alone"]) for row in ranks] == [("0", 0), ("1", 0)]
    assert all(row["steps"] == 10 for row in ranks)


def test_the_exit_code_of_a_rank(python: Path, launcher: list[str], tmp_path: Path) -> None:
    ran = RecordedProgram(python, tmp_path, [*launcher, "python", "-c", FAILING])
    outside = [str(python), "-m", "hotspan", "run", "-o", RECORDING, *ran.words()]
    inside = [*launcher, str(python), "-m", "hotspan", "run", "-o", RECORDING, "-c", FAILING]
    inside[0] = ran.words()[0]
    ways = {"plain": ran.words(), "outside": outside, "inside": inside}
    ends = {name: ran.wait(name, ran.start(name, words)) for name, words in ways.items()}
    assert {end.code for end in ends.values()} == {3}, ends
    assert ends["outside"].files == {RECORDING}
    # One name for both would leave one of them.
    assert ends["inside"].files == {"recording-rank0.hotspan", "recording-rank1.hotspan"}


def ask(python: Path, command: str, *files: Path) -> dict[str, Any]:
    """What a command of hotspan says, as JSON."""
    ran = RecordedProgram(python, files[0].parent, [])
    words = [str(python), "-m", "hotspan", command, *map(str, files), "--json"]
    seen = subprocess.run(words, capture_output=True, text=True, env=ran.environment(), check=True)
    answer: dict[str, Any] = json.loads(seen.stdout)
    return answer
