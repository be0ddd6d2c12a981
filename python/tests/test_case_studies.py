"""The case studies of the examples: the advice names the cause in the slow version, and not in the mended one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from advice_programs import threads
from conftest import REPOSITORY
from hotspan.trace import Trace

FOLDER = REPOSITORY / "examples" / "case_studies"
CAUSES = {
    "double_precision": {"fp64-slow-path"},
    "masking": {"numpy-round-trip"},
    "picture_transforms": {"data-loading-bound", "per-sample-transforms"},
}
# The advice judges shares of time, which other programs may change.
ATTEMPTS = 3


@pytest.fixture(autouse=True)
def examples_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))


def recorded(case: str, fixed: bool, stack: bool = False) -> Trace:
    from record import record

    with threads(1):
        return record(case, fixed, stack)


def causes(case: str, fixed: bool) -> set[str]:
    return {finding.rule for finding in recorded(case, fixed).advise(only=CAUSES[case])}


@pytest.mark.parametrize("case", CAUSES)
def test_the_cause_is_named_and_gone_when_mended(case: str) -> None:
    assert any(causes(case, fixed=False) == CAUSES[case] for _ in range(ATTEMPTS))
    assert any(causes(case, fixed=True) == set() for _ in range(ATTEMPTS))


def test_masking_is_seen_at_its_line_in_its_range() -> None:
    (finding,) = recorded("masking", fixed=False, stack=True).advise(only=["numpy-round-trip"])
    lines = (FOLDER / "masking.py").read_text().splitlines()
    line = 1 + next(number for number, text in enumerate(lines) if "np.argwhere(" in text)
    assert finding.source is not None
    assert finding.source.endswith(f"masking.py:{line}"), finding
    assert any("argwhere" in row.what for row in finding.evidence), finding
    assert "nonzero" in finding.fix


def test_masking_in_numbers() -> None:
    slow, mended = recorded("masking", fixed=False), recorded("masking", fixed=True)
    (finding,) = slow.advise(only=["numpy-round-trip"])
    assert finding.evidence[0].what == "between operators, in LABEL2: masking"
    assert {"LABEL1: linear pass", "LABEL2: masking"} <= {row.key for row in slow.key_averages()}
    found = {row.name: row for row in slow.diff(mended).rows}
    assert found["LABEL2: masking"].change_ns < 0
    assert found["aten::nonzero"].verdict == "new"
    assert found["aten::lift_fresh"].verdict == "gone"


def test_a_case_study_is_recorded_from_the_command_line(tmp_path: Path) -> None:
    output = tmp_path / "masking.hotspan"
    command = [sys.executable, FOLDER / "record.py", "masking", "-o", output]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    printed = subprocess.run(
        command, check=True, timeout=60, capture_output=True, text=True, env=environment
    ).stdout
    assert "numpy-round-trip" in printed
    assert output.exists()
