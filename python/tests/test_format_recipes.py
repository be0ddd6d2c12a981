"""What docs/format.md says about reading a file with other tools is true."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hotspan
from conftest import complete

ROOT = Path(__file__).parents[2]


def _recipes() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs/format.md").read_text(), re.DOTALL)


def test_other_tools_read_the_file(
    write_trace: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pyarrow", "polars", "duckdb", "numpy"):
        pytest.importorskip(name)
    events = [complete(f"aten::op{row % 7}", 100 + row * 3.5 + row % 11, row % 300) for row in range(5_000)]
    trace = hotspan.open(write_trace(events))
    trace.save(tmp_path / "trace.hotspan")
    monkeypatch.chdir(tmp_path)
    pyarrow, polars, duckdb = _recipes()
    names: dict[str, Any] = {}
    exec(pyarrow, names)
    exec(polars, names)
    spans, frame = names["spans"], names["frame"]
    import pyarrow as pa

    own = pa.table(trace.spans)
    assert spans["text"].to_pylist() == own["name"].to_pylist()
    assert spans["duration"].to_pylist() == own["duration_ns"].to_pylist()
    first = own["start_ns"][0].as_py() - spans["time"][0].as_py()
    assert [time + first for time in spans["time"].to_pylist()] == own["start_ns"].to_pylist()
    assert frame.height == 5_000
    result = eval(duckdb.split("import duckdb")[1].strip(), {**names, "duckdb": __import__("duckdb")})
    assert sum(row[1] for row in result.fetchall()) == 5_000
