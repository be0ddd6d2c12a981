"""The advice about whole programs: what it finds, what the mended program does less of, and what it must not say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import hotspan
from run_advice_programs import INNOCENT, PAIRS

pytest.importorskip("torch")


def recorded(folder: Path, text: str) -> hotspan.Trace:
    (folder / "program.py").write_text(text)
    seen = subprocess.run(
        [sys.executable, "-m", "hotspan", "run", "-o", "recording.hotspan", "program.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert seen.returncode == 0, seen.stderr
    return hotspan.open(folder / "recording.hotspan")


def processes(trace: hotspan.Trace) -> int:
    """How many processes called operators."""
    return len(set(pa.table(trace.spans)["process"].to_pylist()))


def collecting(trace: hotspan.Trace) -> int:
    """How long garbage collections took."""
    rows = pa.table(trace.spans).to_pylist()
    return sum(row["duration_ns"] for row in rows if row["category"] == "gc")


#: What the mended program has less of: processes that are started, and time of collections, of which nine tenths go.
COSTS = {"workers-restarted": processes, "garbage-collection": collecting}


@pytest.mark.parametrize("rule", PAIRS)
def test_a_rule_finds_the_fault_and_not_the_mended_program(rule: str, tmp_path: Path) -> None:
    before = recorded(tmp_path, PAIRS[rule].wrong)
    wrong = [finding for finding in before.advise() if finding.rule == rule]
    assert len(wrong) == 1
    assert wrong[0].gain is not None
    assert 1 <= wrong[0].gain.percent <= 100
    cost = COSTS[rule](before)
    after = recorded(tmp_path, PAIRS[rule].right)
    assert rule not in {finding.rule for finding in after.advise()}
    assert COSTS[rule](after) < cost


@pytest.mark.parametrize("name", INNOCENT)
def test_a_program_is_not_told_what_is_not_true(name: str, tmp_path: Path) -> None:
    text, unwanted = INNOCENT[name]
    findings = recorded(tmp_path, text).advise()
    assert not unwanted & {finding.rule for finding in findings}, str(findings)
    for finding in findings:
        assert finding.gain is None or 1 <= finding.gain.percent <= 100, finding
        assert "a step" not in finding.message, finding
