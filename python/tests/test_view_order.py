"""The order of the dashboard: eight tabs, grey where nothing was recorded, a colour for each meaning, light or dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser_visits import look, needs_browser, visit, walk
from device_training import write
from test_view_devices import H200
from test_view_trust import VIEWS
from view_server import ViewServer

TABS = ["Overview", "Timeline", "Compute", "GPU", "Python", "Memory", "Distributed", "Compare"]
#: Where the tables of a view come from, where its name does not say.
TABLES = {"modules": "module_tree"}

LINKS = """[...document.querySelectorAll('.views:not(.inner) a')].map((link) => ({
    title: link.firstChild.textContent, href: link.hash, nothing: link.classList.contains('nothing'),
    words: link.title }))"""
SWATCHES = """[...document.querySelectorAll('main .swatch')].map((swatch) =>
    [swatch.parentElement.textContent.trim(), swatch.querySelector('rect').getAttribute('fill')])"""
BACK = "getComputedStyle(document.documentElement).backgroundColor"


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ranks that load data, compute, copy and communicate."""
    folder = tmp_path_factory.mktemp("order") / "job"
    folder.mkdir()
    write(folder)
    return folder


@pytest.fixture(scope="module")
def server(job: Path) -> Iterator[ViewServer]:
    """`hotspan view` on the job, and on a training that was recorded on a GPU."""
    with ViewServer(job, H200) as running:
        yield running


def is_filled(server: ViewServer, run: int, view: str) -> bool:
    """Whether a view shows anything of a trace."""
    if view == "flame":
        return bool(server.api(f"run/{run}/flame")["parent"])
    if view == "compare":
        return len(server.api("runs")["runs"]) > 1
    calls = {"ranks": f"ranks?run={run}", "memory": f"run/{run}/memory"}
    call = calls.get(view, f"run/{run}/table/{TABLES.get(view, view)}")
    return bool(server.api(call)["sections"])


def check_contents(server: ViewServer) -> set[tuple[str, bool]]:
    """Holds what is said of views against the views; returns what was met."""
    met = set()
    for run in server.api("runs")["runs"]:
        status, _, _ = server.request(f"/{server.token}/api/run/{run['id']}/damage")
        if status != 200:
            continue
        for view in server.api(f"contents?run={run['id']}"):
            filled = is_filled(server, run["id"], view["view"])
            # Traces of one folder may be ranks; whether they are is known once they are open.
            may_be = view["view"] == "ranks" and view["filled"]
            assert view["filled"] is filled or may_be, (run["file"], view["view"])
            assert view["record"]
            met.add((view["view"], filled))
    return met


def test_views_have_what_is_said_of_them(server: ViewServer) -> None:
    met = check_contents(server)
    assert {("gpu", True), ("ranks", True), ("ranks", False), ("memory", True)} <= met


def test_that_holds_for_recordings_without_a_gpu(viewed_server: ViewServer) -> None:
    met = check_contents(viewed_server)
    for view in ("steps", "operators", "modules", "functions", "source"):
        assert {(view, True), (view, False)} <= met, view
    assert {("gpu", False), ("kernels", False), ("copies", False)} <= met


@needs_browser
def test_there_are_eight_tabs_and_every_address_still_works(server: ViewServer) -> None:
    steps = [step for view in VIEWS for step in (("show", view, "?run=0"), ("text", "h1"))]
    told = walk(
        server.address, *steps, ("evaluate", LINKS), ("show", "timeline", ""), ("key", "3"), ("text", "h1")
    )
    assert [link["title"] for link in told[len(steps)]] == TABS
    assert len(set(told[1 : len(steps) : 2])) == len(VIEWS)
    assert told[-1] == "Operators"


@needs_browser
def test_an_empty_tab_is_grey_and_says_what_to_record(server: ViewServer, viewed_server: ViewServer) -> None:
    run = next(run["id"] for run in viewed_server.api("runs")["runs"] if run["file"] == "after.hotspan")
    told = walk(
        viewed_server.address,
        ("show", "overview", f"?run={run}"),
        ("wait", ".views a.nothing"),
        ("evaluate", LINKS),
        ("click", ".views a[data-tab=gpu]"),
        ("text", "main .empty"),
    )
    links = {link["title"]: link for link in told[2]}
    assert {title for title, link in links.items() if link["nothing"]} == {"GPU"}
    assert "hotspan run train.py" in links["GPU"]["words"]
    assert links["Compute"]["words"] == "Key 3"
    assert "hotspan run train.py" in told[4]
    alone = next(run["id"] for run in server.api("runs")["runs"] if run["file"] == H200.name)
    told = walk(
        server.address,
        ("show", "overview", f"?run={alone}"),
        ("wait", ".views a.nothing"),
        ("evaluate", LINKS),
    )
    assert [link["title"] for link in told[2] if link["nothing"]] == ["Distributed"]


@needs_browser
def test_a_tab_leads_to_the_first_view_that_has_something(viewed_server: ViewServer) -> None:
    """A recording of single lines has no operators and no functions, but it has source."""
    run = next(run["id"] for run in viewed_server.api("runs")["runs"] if run["file"] == "lines.hotspan")
    contents = {view["view"]: view["filled"] for view in viewed_server.api(f"contents?run={run}")}
    first = next(view for view in ("functions", "source", "flame") if contents[view])
    told = walk(
        viewed_server.address,
        ("show", "overview", f"?run={run}"),
        ("wait", ".views a.nothing"),
        ("key", "5"),
        ("evaluate", "document.querySelector('main').dataset.view"),
    )
    assert told[3] == first


@needs_browser
def test_a_meaning_has_one_colour_on_all_pages(server: ViewServer) -> None:
    views = ("overview", "steps", "gpu", "ranks")
    steps = [step for view in views for step in (("show", view, "?run=0"), ("evaluate", SWATCHES))]
    told = walk(server.address, *steps)
    colours: dict[str, set[str]] = {}
    shown: dict[str, set[str]] = {}
    same = {
        "Synchronising call": "waiting for the GPU",
        "Copy": "copy",
        "Communication call": "communication",
        "Waiting for device": "waiting for the GPU",
        "synchronise": "waiting for the GPU",
    }
    same |= {"Exposed copy": "copy", "exposed copy": "copy", "Exposed communication": "communication"}
    same |= {
        "exposed communication": "communication",
        "Idle": "idle",
        "Compute": "compute",
        "Python": "Python code",
    }
    for view, swatches in zip(views, told[1::2], strict=True):
        assert swatches, view
        for name, colour in swatches:
            colours.setdefault(same.get(name, name), set()).add(colour)
            shown.setdefault(same.get(name, name), set()).add(view)
    assert {name: found for name, found in colours.items() if len(found) > 1} == {}
    assert shown["DataLoader"] >= {"overview", "steps", "gpu"}
    assert shown["compute"] >= {"steps", "gpu", "ranks"}
    # Different meanings that stand beside each other differ.
    kinds = ("DataLoader", "compute", "communication", "copy", "idle", "waiting for the GPU")
    assert len({next(iter(colours[kind])) for kind in kinds if kind in colours}) == len(
        [k for k in kinds if k in colours]
    )


@needs_browser
@pytest.mark.parametrize("view", ["overview", "timeline"])
def test_the_choice_of_light_or_dark_is_remembered(server: ViewServer, view: str) -> None:
    told = walk(
        server.address,
        ("show", view, "?run=0"),
        ("evaluate", BACK),
        ("click", ".theme"),
        ("evaluate", BACK),
        ("reload",),
        ("evaluate", BACK),
        ("evaluate", "document.cookie"),
        ("click", ".theme"),
        ("evaluate", BACK),
    )
    light, dark = told[1], told[3]
    assert light != dark
    assert told[5] == dark
    assert told[8] == light
    # Another start of the server has another port, with a storage of its own; cookies are of the host.
    assert told[6] == "hotspan-theme=dark"


@needs_browser
def test_the_question_mark_leads_to_the_glossary(server: ViewServer) -> None:
    told = walk(
        server.address,
        ("show", "overview", "?run=0"),
        ("key", "?"),
        ("text", "main"),
        ("show", "timeline", "?run=0"),
        ("click", ".help"),
        ("texts", ".glossary h2"),
    )
    for words in (
        "Self time",
        "the duration of a call without the calls inside it",
        "Host too slow to launch",
    ):
        assert words in told[2]
    assert "Keys" in told[5]
    for code in ("hotspan_store", "collect/agent", "**", "]("):
        assert code not in told[2]


@needs_browser
def test_glossary_and_tabs_are_accessible_on_phones_too(server: ViewServer) -> None:
    seen: dict[str, Any] = look(server.address, [visit("glossary", "?run=0"), visit("ranks", "?run=0")])
    assert set(seen) == {"glossary", "ranks"}
