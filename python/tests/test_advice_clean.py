"""The advice about clean programs, recorded as a whole: nothing that it is sure of."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hotspan
from clean_programs import PROGRAMS

pytest.importorskip("torch")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_clean_program_is_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAMS[name])
    seen = subprocess.run(
        [sys.executable, "-m", "hotspan", "run", "--shapes", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": str(len(os.sched_getaffinity(0)))},
    )
    assert seen.returncode == 0, seen.stderr
    findings = hotspan.open(tmp_path / "program.hotspan").advise()
    sure = [finding for finding in findings if finding.confidence == "high"]
    assert not sure, seen.stderr
    # Many cheap rules could be wrong a little, and nobody would read them.
    assert len(list(findings)) <= 2, seen.stderr
