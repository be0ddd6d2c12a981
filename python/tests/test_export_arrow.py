"""``hotspan export --to arrow``: any Arrow library reads the spans, and finds the same numbers as hotspan."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import torch

import hotspan
from hotspan.profiler import ProfilerActivity, profile

if TYPE_CHECKING:
    from pathlib import Path

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Return a recording and, beside it, its spans in Arrow."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorded:
        x = torch.ones(8, 3)
        for _ in range(5):
            (x @ x.t()).relu()
    recorded.export_chrome_trace(str(tmp_path / "trace.json"))
    command = [sys.executable, "-m", "hotspan", "export", "trace.json", "--to", "arrow", "-o", "spans.arrow"]
    subprocess.run(command, cwd=tmp_path, check=True)
    return tmp_path


def test_pyarrow_reads_what_hotspan_has(recorded: Path) -> None:
    table = pa.ipc.open_file(recorded / "spans.arrow").read_all()
    table.validate(full=True)
    spans = pa.table(hotspan.open(recorded / "trace.json").spans)
    for column in spans.column_names:
        assert table[column].to_pylist() == spans[column].to_pylist(), column
    matmuls = [row for row in table.to_pylist() if row["name"] == "aten::mm"]
    assert len(matmuls) == 5
    assert {row["Input Dims"] for row in matmuls} == {"[[8, 3], [3, 8]]"}


def test_polars_and_duckdb_read_it(recorded: Path) -> None:
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    frame = polars.read_ipc(recorded / "spans.arrow")
    assert frame.filter(polars.col("name") == "aten::relu").height == 5
    spans = pa.ipc.open_file(recorded / "spans.arrow").read_all()
    connection = duckdb.connect()
    connection.register("spans", spans)
    counted = connection.execute("select count(*) from spans where name = 'aten::relu'").fetchone()
    assert counted == (5,)
