"""The Arrow tables of real recordings: valid, and readable by pandas, polars and DuckDB."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import hotspan
from conftest import shared_trace_files

pyarrow = pytest.importorskip("pyarrow")

PROGRAM = """
import threading
import torch
import torch.multiprocessing as multiprocessing

def work():
    with torch.inference_mode():
        for _ in range(5):
            torch.ones(8).sum()

if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    children = [multiprocessing.Process(target=work) for _ in range(2)]
    threads = [threading.Thread(target=work) for _ in range(2)]
    [one.start() for one in [*children, *threads]]
    [one.join() for one in [*children, *threads]]
    work()
"""


def check(trace: hotspan.Trace) -> pyarrow.Table:
    """Every reader takes the table, and dictionaries have each value once."""
    table = pyarrow.table(trace.span_table(args=["Sequence number", "Input Dims"]))
    table.validate(full=True)
    assert table.num_rows == len(trace.spans)
    for name in ("name", "category", "process", "thread"):
        for chunk in table[name].chunks:
            values = chunk.dictionary.to_pylist()
            assert len(values) == len(set(values)), name
    return table


def test_the_table_of_a_program_with_several_processes_is_read_by_all(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "hotspan", "run", "-o", "program.hotspan", "program.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    trace = hotspan.open(tmp_path / "program.hotspan")
    table = check(trace)
    made = [row for row in table["name"].to_pylist() if row == "aten::ones"]
    processes = set(table["process"].to_pylist())
    assert len(made) == 25
    assert len(processes) >= 3

    pandas = pytest.importorskip("pandas")
    frame = table.to_pandas()
    assert isinstance(frame["process"].dtype, pandas.CategoricalDtype)
    assert (frame["name"] == "aten::ones").sum() == 25
    assert set(frame["process"]) == processes

    polars = pytest.importorskip("polars")
    told = polars.DataFrame(trace.spans)
    assert told.filter(polars.col("name").cast(polars.String) == "aten::ones").height == 25
    assert set(told["process"].cast(polars.String)) == processes

    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("spans", trace.spans)
    counted = connection.sql("select count(*), count(distinct process) from spans where name = 'aten::ones'")
    assert counted.fetchall() == [(25, len(set(frame[frame["name"] == "aten::ones"]["process"])))]


@pytest.mark.skipif(not shared_trace_files(), reason="no sample traces beside the repository")
def test_the_tables_of_sample_traces_are_valid() -> None:
    pytest.importorskip("pandas")
    seen: set[Path] = set()
    for path in shared_trace_files():
        # Ranks and repetitions of one program say the same again.
        if path.parent in seen or path.stat().st_size > 20_000_000:
            continue
        try:
            trace = hotspan.open(path)
        except hotspan.HotspanError:
            continue
        seen.add(path.parent)
        frame = check(trace).to_pandas()
        assert len(frame) == len(trace.spans), path
    assert seen
