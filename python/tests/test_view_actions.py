"""What a person does in the dashboard: sorts, filters, folds, selects, downloads, hands over to Perfetto."""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from browser_visits import WEB, Command, needs_browser, number
from view_server import ViewServer

pytestmark = needs_browser


@pytest.fixture(scope="module")
def done(
    viewed_server: ViewServer,
    viewed_traces: Path,
    hotspan_command: Command,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    """What came of it."""
    info = json.loads(hotspan_command("info", viewed_traces / "after.hotspan", "--json").stdout)[0]
    wanted = {
        "recorded": number(viewed_server, "after.hotspan"),
        "sampled": number(viewed_server, "run.hotspan"),
        "file": str(viewed_traces / "train.py"),
        "half": info["wall_time_ns"] // 2,
    }
    command = ["node", "e2e/actions.mjs", viewed_server.address, str(tmp_path_factory.mktemp("downloads"))]
    result = subprocess.run(
        command, cwd=WEB, input=json.dumps(wanted), capture_output=True, text=True, timeout=240, check=False
    )
    assert result.returncode == 0, result.stderr
    told: dict[str, Any] = json.loads(result.stdout)
    assert "failed" not in told, told["failed"]
    assert told["complaints"] == []
    return told


def test_tables_are_sorted_filtered_copied_and_kept(done: dict[str, Any]) -> None:
    tables = done["tables"]
    assert sorted(tables["all"]) == sorted(tables["sorted"])
    counts = [int(row[7].replace(" ", "")) for row in tables["sorted"]]
    assert counts == sorted(counts, reverse=True)
    assert 0 < len(tables["filtered"]) < len(tables["all"])
    assert all(any("mm" in cell.lower() for cell in row) for row in tables["filtered"])
    # The chart has the rows that the table has.
    bars = min(5, len(tables["filtered"]))
    assert tables["bars"] == bars
    assert tables["reloaded"] == {"rows": tables["filtered"], "order": "descending", "bars": bars}
    rows = list(csv.DictReader(io.StringIO(tables["csv"])))
    assert [row["name"] for row in rows] == [row[0] for row in tables["filtered"]]


def test_trees_fold_with_the_arrow_keys(done: dict[str, Any]) -> None:
    modules = done["modules"]
    assert modules["folded"] == 1
    assert modules["open"] == modules["unfolded"] > 3
    assert len(list(csv.DictReader(io.StringIO(modules["csv"])))) == modules["open"]


def test_flame_graphs_are_searched_and_walked(done: dict[str, Any]) -> None:
    flame = done["flame"]
    assert flame["found"].endswith("match")
    assert not flame["found"].startswith("0 ns")
    assert int(flame["node"]) >= 0
    assert "prepare" in flame["sandwich"]
    assert flame["canvases"] == 2


def test_a_range_of_memory_has_its_own_tables(done: dict[str, Any], viewed_server: ViewServer) -> None:
    memory = done["memory"]
    assert 0 < len(memory["part"]) < len(memory["all"])
    assert memory["reloaded"] == memory["part"]
    begin, end = int(memory["range"]["begin"]), int(memory["range"]["end"])
    events = viewed_server.rows(f"run/{number(viewed_server, 'after.hotspan')}/memory", "events")
    inside = [
        row
        for row in events
        if any(row[at] is not None and begin <= row[at] <= end for at in ("allocated_at", "released_at"))
    ]
    assert len(inside) == len(memory["part"])


def test_a_file_shows_its_source(done: dict[str, Any]) -> None:
    source = done["source"]
    assert source["file"] == source["wanted"]
    assert source["rows"] == [
        [place, line] for place, line in enumerate(Path(source["wanted"]).read_text().splitlines(), 1)
    ]


def test_keys_choose_views_and_search(done: dict[str, Any]) -> None:
    assert done["keys"]["view"].startswith("#/operators")
    assert done["keys"]["focused"] == "search"


def test_downloads_are_traces_of_the_range_or_the_whole(
    done: dict[str, Any],
    viewed_traces: Path,
    hotspan_command: Command,
) -> None:
    saved = done["downloads"]
    info = json.loads(hotspan_command("info", viewed_traces / "after.hotspan", "--json").stdout)[0]

    def spans(path: str) -> list[dict[str, Any]]:
        events = json.loads(gzip.decompress(Path(path).read_bytes()))["traceEvents"]
        return [event for event in events if event["ph"] == "X"]

    whole = spans(saved["whole"])
    assert len(whole) == info["spans"]
    first = min(event["ts"] for event in whole)
    part = spans(saved["chrome"])
    assert 0 < len(part) < len(whole)
    assert max(event["ts"] + event["dur"] for event in part) <= first + info["wall_time_ns"] / 2e3 + 1
    assert hotspan_command("info", saved["hotspan"], "--json").returncode == 0
    profiles = json.loads(gzip.decompress(Path(saved["speedscope"]).read_bytes()))
    assert profiles["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert all(line.rsplit(" ", 1)[1].isdigit() for line in Path(saved["collapsed"]).read_text().splitlines())


def test_perfetto_is_handed_the_trace(
    done: dict[str, Any],
    viewed_traces: Path,
    hotspan_command: Command,
) -> None:
    info = json.loads(hotspan_command("info", viewed_traces / "after.hotspan", "--json").stdout)[0]
    assert done["perfetto"] == {"title": "after", "spans": info["spans"]}
