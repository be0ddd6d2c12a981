"""What docs/format.md says about reading a file with other tools is true."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hotspan
from conftest import complete

ROOT = Path(__file__).parents[2]
TIME, DURATION, NAME = 0, 1, 2


@pytest.fixture
def trace(write_trace: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> hotspan.Trace:
    """Return a trace that lies in the working directory."""
    for name in ("pyarrow", "polars", "duckdb", "numpy"):
        pytest.importorskip(name)
    events = [complete(f"aten::op{row % 7}", 100 + row * 3.5 + row % 11, row % 300) for row in range(5_000)]
    trace = hotspan.open(write_trace(events))
    trace.save(tmp_path / "trace.hotspan")
    monkeypatch.chdir(tmp_path)
    return trace


def test_other_tools_read_an_export(trace: hotspan.Trace) -> None:
    import pyarrow as pa

    page = (ROOT / "docs/format.md").read_text()
    (command,) = re.findall(r"```\n(hotspan export .*?)\n```", page)
    subprocess.run([sys.executable, "-m", *command.split()], check=True)
    (recipe,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(recipe.replace("duckdb.sql(", "result = duckdb.sql("), names)
    own = pa.table(trace.spans)
    for column in own.column_names:
        assert names["spans"][column].to_pylist() == own[column].to_pylist(), column
    assert names["frame"].height == 5_000
    assert sum(row[1] for row in names["result"].fetchall()) == 5_000


def test_packed_columns_are_as_described(trace: hotspan.Trace) -> None:
    """Read the file by what the page says, with nothing of hotspan's."""
    import numpy as np
    import pyarrow as pa

    with pa.OSFile("trace.hotspan") as file:
        chunks = pa.ipc.open_stream(file).read_all()
    strings = pa.array(["", *chunks["strings"].combine_chunks().flatten().to_pylist()])

    def column(table: int, number: int) -> Any:
        parts = [np.empty(0, np.int64)]
        for piece in chunks["columns"].combine_chunks().flatten().to_pylist():
            if (piece["table"], piece["column"]) != (table, number):
                continue
            stored = np.zeros(piece["rows"], np.int64)
            if piece["width"]:
                unsigned = np.array(piece["bytes"], np.uint8).view(f"<u{piece['width']}")
                stored += unsigned.astype(np.int64)
            if piece["method"] == 1:
                stored = piece["first"] - piece["base"] + np.cumsum(stored + piece["base"])
            else:
                stored += piece["base"]
            parts.append(stored)
        return pa.array(np.concatenate(parts))

    own = pa.table(trace.spans)
    times = column(0, TIME).to_pylist()
    origin = own["start_ns"][0].as_py() - times[0]
    assert strings.take(column(0, NAME)).to_pylist() == own["name"].to_pylist()
    assert column(0, DURATION).to_pylist() == own["duration_ns"].to_pylist()
    assert [time + origin for time in times] == own["start_ns"].to_pylist()
