"""``hotspan record`` has no native frames; that a thread is in native code it knows from the GIL."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

PROGRAM = """
import sys, time, torch
torch.set_num_threads(1)
matrix = torch.randn(600, 600)
end = time.thread_time() + 1.5
kind = sys.argv[1]
while time.thread_time() < end:
    if kind == "native":
        matrix @ matrix
    else:
        sum(number * number for number in range(2000))
"""


@pytest.mark.parametrize("kind", ["native", "python"])
def test_time_in_torch_is_no_python_code(tmp_path: Path, kind: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    hotspan = [sys.executable, "-m", "hotspan"]
    record = [*hotspan, "record", "-o", "out.hotspan", "--", sys.executable, "program.py", kind]
    subprocess.run(record, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    report = [*hotspan, "report", "out.hotspan", "--json"]
    told = subprocess.run(report, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=120)
    parts = json.loads(told.stdout)["report"]["Where the time went"]
    parts = {part["activity"]: part["time"] for part in parts}
    native, python = parts.get("native code: library unknown", 0), parts.get("Python code", 0)
    assert (native > 4 * python) if kind == "native" else (python > 4 * native)
