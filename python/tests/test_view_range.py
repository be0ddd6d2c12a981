"""One range, everywhere: chosen in the timeline, a memory chart or the header, kept by every view and the address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser_visits import Command, needs_browser, walk
from shown_tables import shown
from test_view_doors import STEPS, events
from test_view_trust import VIEWS
from view_server import ViewServer

pytestmark = needs_browser

CHIP = ".chip > .menu > summary"
BOX = "document.querySelector('.canvas canvas').getBoundingClientRect().toJSON()"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six steps of 900 \u00b5s, each with an operator, a kernel, allocations and gaps."""
    import json

    path = tmp_path_factory.mktemp("range") / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": list(events())}))
    return path


@pytest.fixture(scope="module")
def server(trace: Path) -> Iterator[ViewServer]:
    """`hotspan view` on it."""
    with ViewServer(trace) as running:
        yield running


def counts(table: dict[str, Any]) -> dict[str, str]:
    """How often each operator was called, as the page shows it."""
    name, count = table["keys"].index("name"), table["keys"].index("count")
    return {row[name]: row[count] for row in table["rows"]}


def test_one_drag_and_one_click_lead_to_the_tables_and_the_flame_graph_of_a_range(server: ViewServer) -> None:
    box = walk(server.address, ("show", "timeline", "?run=0"), ("drawn",), ("evaluate", BOX))[2]
    left, right, y = (
        box["x"] + box["width"] * 0.3,
        box["x"] + box["width"] * 0.7,
        box["y"] + box["height"] / 2,
    )
    told = walk(
        server.address,
        ("show", "timeline", "?run=0"),
        ("drawn",),
        ("select", left, y, right, y),
        ("wait", ".chip.on"),
        ("parameters",),
        ("click", ".views a[data-tab=compute]"),
        ("snapshot",),
        ("text", CHIP),
        ("parameters",),
        ("click", ".views a[data-tab=python]"),
        ("click", ".views a[data-tab=flame]"),
        ("text", "main"),
        ("parameters",),
    )
    begin, end = int(told[4]["begin"]), int(told[4]["end"])
    assert 0 < begin < end
    stretch = f"begin={begin}&end={end}"
    rows = server.rows(f"run/0/table/operators?{stretch}")
    assert counts(told[6]["tables"][0]) == {row["name"]: shown(row["count"], "count") for row in rows}
    assert next(row["count"] for row in rows if row["name"] == "aten::mm") < STEPS
    total = server.api(f"run/0/flame?{stretch}")["total"]
    assert f"{shown(total, 'ns')} in calls" in told[11]
    assert total < server.api("run/0/flame")["total"]
    for place in (told[8], told[12]):
        assert (int(place["begin"]), int(place["end"])) == (begin, end)


def test_steps_are_chosen_in_the_header_and_stay_until_they_are_cleared(server: ViewServer) -> None:
    band = server.api("run/0/steps")
    assert [step["name"] for step in band] == [str(step) for step in range(STEPS)]
    moves = [("key", "]") for _ in VIEWS]
    told = walk(
        server.address,
        ("show", "overview", "?run=0"),
        ("wait", CHIP),
        ("text", CHIP),
        ("click", CHIP),
        ("choose", ".chip label:nth-of-type(1) select", "1"),
        ("choose", ".chip label:nth-of-type(2) select", "2"),
        ("click", ".chip button:text-is('Apply')"),
        ("text", CHIP),
        ("parameters",),
        *[step for move in moves for step in (move, ("parameters",))],
        ("click", ".chip .clear"),
        ("parameters",),
        ("text", CHIP),
    )
    assert "All of the time" in told[2]
    assert "Steps 1\u20132" in told[7]
    wanted = {"begin": str(band[1]["begin"]), "end": str(band[2]["end"])}
    for place in [told[8], *told[10 : 9 + 2 * len(moves) : 2]]:
        assert {key: place.get(key) for key in wanted} == wanted
    assert "begin" not in told[-2]
    assert "All of the time" in told[-1]


def test_gpu_memory_advice_and_overview_are_about_the_range(server: ViewServer) -> None:
    band = server.api("run/0/steps")
    stretch = f"begin={band[1]['begin']}&end={band[2]['end']}"
    told = walk(
        server.address,
        *[
            step
            for view in ("gpu", "memory", "overview", "functions", "kernels")
            for step in (("show", view, f"?run=0&{stretch}"), ("snapshot",))
        ],
    )
    gpu, memory, overview, functions, kernels = told[1::2]
    table = next(table for table in gpu["tables"] if table["title"] == "Device time")
    rows = server.rows(f"run/0/table/gpu?{stretch}", "time")
    assert [row[table["keys"].index("total")] for row in table["rows"]] == [
        shown(row["total"], "ns") for row in rows
    ]
    allocations = next(table for table in memory["tables"] if table["title"] == "Allocations")
    assert len(allocations["rows"]) == 2
    assert server.api(f"run/0/verdict?{stretch}")["sentence"].rstrip(".") in overview["text"]
    assert kernels["tables"][0]["rows"][0][kernels["tables"][0]["keys"].index("calls")] == "2"
    calls = functions["tables"][0]["keys"].index("ncalls")
    assert {row[calls] for row in functions["tables"][0]["rows"]} == {"2"}


def test_views_of_the_whole_say_so(server: ViewServer) -> None:
    told = walk(
        server.address,
        ("show", "quality", "?run=0&begin=1000000&end=3000000"),
        ("text", CHIP),
        ("show", "operators", "?run=0&begin=1000000&end=3000000"),
        ("text", CHIP),
    )
    assert "not here" in told[1]
    assert "not here" not in told[3]


def test_a_page_to_share_offers_no_range(trace: Path, tmp_path: Path, hotspan_command: Command) -> None:
    page = tmp_path / "report.html"
    assert hotspan_command("report", trace, "--html", page).returncode == 0
    told = walk(
        page.as_uri(),
        ("show", "operators", "?run=0&begin=1000000&end=3000000"),
        ("evaluate", "document.querySelectorAll('.chip').length"),
        ("snapshot",),
        offline=True,
    )
    assert told[1] == 0
    assert told[2]["problem"] is None
