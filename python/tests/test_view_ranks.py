"""Ranks of a job: who is the straggler and why, in one sentence, and a panel for each rank and collective."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from browser_visits import Command, look, needs_browser, visit, walk
from conftest import SHARED_TRACES
from device_training import write
from test_view import device_events
from view_server import ViewServer

PANEL = "aside.panel"
#: What each of several timelines shows.
SEEN = "[...document.querySelectorAll('.aligned canvas')].map((canvas) => canvas.dataset.seen)"
DLRM = SHARED_TRACES / "param/dlrm_8ranks"


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ranks, of which rank 1 loads slowly."""
    folder = tmp_path_factory.mktemp("straggler") / "job"
    folder.mkdir()
    write(folder)
    return folder


@pytest.fixture(scope="module")
def server(job: Path) -> Iterator[ViewServer]:
    """`hotspan view` on them."""
    with ViewServer(job) as running:
        yield running


def section(server: ViewServer, key: str, run: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = next(
        known["table"] for known in server.api(f"ranks?run={run}")["sections"] if known["key"] == key
    )
    return found


def test_a_sentence_names_the_straggler_and_the_reason(server: ViewServer) -> None:
    (words,) = server.api("ranks?run=0")["words"]
    expected = (
        r"The others waited for rank 1 most: it came last in 12 of 12 collectives, and they waited "
        r"[\d.]+ m?s for it\. It spends ([\d.]+) ms a step more than the others with an idle device "
        r"\(cause: DataLoader\)\."
    )
    found = re.fullmatch(expected, words)
    assert found, words
    # The number is that of the table in the panel.
    thing = server.api(f"run/0/thing?{section(server, 'ranks')['doors'][1]}")
    table = next(table for table in thing["tables"] if table["title"].startswith("A mean step"))
    first = dict(zip([column["key"] for column in table["columns"]], table["rows"][0], strict=True))
    assert first["name"] == "Idle: DataLoader"
    assert first["more"] == first["own"] - first["others"]
    assert float(found[1]) == pytest.approx(first["more"] / 1e6, rel=0.01)


@pytest.mark.skipif(not DLRM.exists(), reason="shared/traces does not lie beside the repository")
def test_without_steps_no_reason_is_guessed() -> None:
    with ViewServer(DLRM) as server:
        words = server.api("ranks?run=0")["words"]
        assert len(words) == 1
        assert words[0].startswith("The others waited for rank 7 most: it came last in 5 of 8 collectives")
        assert words[0].endswith("for it.")
        assert "It spends" not in words[0]
        check_doors(server)


def check_doors(server: ViewServer) -> None:
    """Every row of both tables leads to something that has the numbers of the row."""
    for key in ("ranks", "collectives"):
        table = section(server, key)
        columns = [column["key"] for column in table["columns"]]
        assert len(table["doors"]) == len(table["rows"])
        for row, door in zip(table["rows"], table["doors"], strict=True):
            thing = server.api(f"run/0/thing?{door}")
            shown = [column["key"] for column in thing["row"]["columns"]]
            assert thing["row"]["rows"][0] == [row[columns.index(name)] for name in shown]
            assert thing["tables"]


def test_rows_lead_to_ranks_and_collectives(server: ViewServer) -> None:
    check_doors(server)
    collectives = section(server, "collectives")
    thing = server.api(f"run/0/thing?{collectives['doors'][0]}")
    by_rank = next(table for table in thing["tables"] if table["title"] == "By rank")
    keys = [column["key"] for column in by_rank["columns"]]
    wait = sum(row[keys.index("wait")] for row in by_rank["rows"])
    names = [column["key"] for column in collectives["columns"]]
    assert wait == collectives["rows"][0][names.index("wait")]
    assert all(door.startswith("kind=rank") for door in by_rank["doors"])


@pytest.mark.parametrize(
    "query", ["kind=rank", "kind=rank&name=9", "kind=rank&name=x", "kind=collective&name=no"]
)
def test_ranks_that_are_not_there_do_not_open(server: ViewServer, query: str) -> None:
    assert server.request(f"/{server.token}/api/run/0/thing?{query}")[0] == 404


@needs_browser
def test_the_straggler_and_the_reason_are_one_click_away(server: ViewServer) -> None:
    told = walk(
        server.address,
        ("show", "overview", "?run=0"),
        ("click", ".views a[data-tab=distributed]"),
        ("text", ".verdict .sentence"),
        ("click", "main a.door[data-door='kind=rank&name=1']"),
        ("wait", f"{PANEL} dl"),
        ("text", PANEL),
        ("click", f"{PANEL} a.door"),
        ("wait", f"{PANEL} h2:text-is('By rank')"),
        ("text", PANEL),
        ("key", "Escape"),
        ("evaluate", "document.querySelector('aside.panel') === null"),
    )
    assert "rank 1" in told[2]
    assert "DataLoader" in told[2]
    assert "A mean step beside that of the others" in told[5]
    assert "Idle: DataLoader" in told[5]
    assert "Longest waits" in told[8]
    assert told[10]


@needs_browser
def test_panels_are_accessible_and_a_page_to_share_offers_none(
    server: ViewServer, job: Path, tmp_path: Path, hotspan_command: Command
) -> None:
    doors = [
        section(server, key)["doors"][0].replace("&", "%26").replace("=", "%3D")
        for key in ("ranks", "collectives")
    ]
    look(server.address, [visit("ranks", f"?run=0&open={door}", door) for door in doors])
    page = tmp_path / "report.html"
    assert hotspan_command("report", job, "--html", page).returncode == 0
    told = walk(
        page.as_uri(),
        ("show", "ranks", ""),
        ("text", ".verdict .sentence"),
        ("evaluate", "document.querySelectorAll('a.door').length"),
        offline=True,
    )
    assert "rank 1" in told[1]
    assert told[2] == 0


def test_ranks_are_put_on_one_clock(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """A rank that began later is that much to the right; one that does not say when it began is left out."""
    folder = tmp_path / "clocks"
    folder.mkdir()
    zeros = {"early": 1_700_000_000_000_000_000, "late": 1_700_000_000_005_000_000, "unknown": None}
    for name, zero in zeros.items():
        clock = {} if zero is None else {"baseTimeNanoseconds": zero}
        write_trace(device_events(3), f"clocks/{name}.pt.trace.json", **clock)
    with ViewServer(folder) as server:
        ids = {run["worker"]: run["id"] for run in server.api("runs")["runs"]}
        clocks = {clock["run"]: clock["offset"] for clock in server.api(f"clocks?run={ids['late']}")}
    assert clocks == {ids["early"]: 0, ids["late"]: 5_000_000, ids["unknown"]: None}


@needs_browser
def test_all_ranks_are_shown_together_with_one_click(
    job: Path, tmp_path: Path, hotspan_command: Command
) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    for path in job.iterdir():
        timed = {"baseTimeNanoseconds": 1_700_000_000_000_000_000, **json.loads(path.read_text())}
        (folder / path.name).write_text(json.dumps(timed))
    page = tmp_path / "report.html"
    assert hotspan_command("report", folder, "--html", page).returncode == 0
    with ViewServer(folder) as server:
        shown = [
            walk(
                address,
                ("show", "ranks", "?run=0"),
                ("click", "summary:text-is('All ranks on one clock')"),
                ("until", "document.querySelectorAll('.aligned canvas[data-state=ready]').length === 2"),
                ("texts", ".aligned h3"),
                ("until", f"new Set({SEEN}).size === 1"),
                ("evaluate", SEEN),
            )
            for address in (server.address, page.as_uri())
        ]
    for told in shown:
        assert [title.split(" (")[0] for title in told[3]] == ["Rank 0", "Rank 1"]
        assert len(told[5]) == 2
