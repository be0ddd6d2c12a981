"""Flame graphs of `hotspan view`: steps as one, upside down, searched by pattern, without library code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from browser_visits import look, needs_browser, visit, walk
from conftest import complete
from test_timeline_links import SETTLED
from view_server import ViewServer

STEPS = 5
LIBRARY = "/x/site-packages/torch/nn/functional.py(9): linear"
RECORDER = "/x/site-packages/hotspan/_agent.py(3): note"
IMPORT = "<frozen importlib._bootstrap>(1): _find_and_load"


def events() -> Iterator[dict[str, Any]]:
    """Steps of 1 ms: 400 us in a library below the user's functions, 100 us of recording, 200 us of an import."""
    for step in range(STEPS):
        at = step * 2000
        yield complete(f"ProfilerStep#{step}", at, 1000, cat="user_annotation")
        for name, begin, length in (
            ("/home/me/train.py(3): main", 10, 950),
            ("/home/me/train.py(7): work", 20, 500),
            (LIBRARY, 50, 400),
            (RECORDER, 600, 100),
            (IMPORT, 720, 200),
            ("/home/me/data.py(1): <module>", 730, 150),
        ):
            yield complete(name, at + begin, length, cat="python_function")
        yield complete("aten::linear", at + 60, 300)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewServer]:
    path = tmp_path_factory.mktemp("flame") / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": list(events())}))
    with ViewServer(Path(path)) as running:
        yield running


def paths(data: dict[str, Any]) -> dict[str, int]:
    """The own time of each path, in microseconds; threads are left out."""
    names: list[str] = []
    found: dict[str, int] = {}
    for place, parent, own in zip(data["place"], data["parent"], data["own_time"], strict=True):
        name = data["places"][place]["name"]
        names.append(f"{names[parent]} {name}" if parent >= 0 else name)
        if own > 0:
            found[names[-1].replace("thread 1 ", "").replace(" thread 1", "")] = own // 1000
    return found


def graph(server: ViewServer, query: str = "") -> dict[str, int]:
    return paths(server.api(f"run/0/flame?{query}"))


def test_steps_are_one_frame(server: ViewServer) -> None:
    found = graph(server)
    assert found["ProfilerStep* main work linear aten::linear"] == 300 * STEPS
    assert {path.split()[0] for path in found} == {"ProfilerStep*"}


def test_upside_down_what_took_the_time_is_on_top(server: ViewServer) -> None:
    data = server.api("run/0/flame?inverted=1")
    roots = {
        data["places"][place]["name"]: time // 1000
        for place, parent, time in zip(data["place"], data["parent"], data["total_time"], strict=True)
        if parent < 0
    }
    assert roots["aten::linear"] == 300 * STEPS
    assert graph(server, "inverted=1")["aten::linear linear work main ProfilerStep*"] == 300 * STEPS
    assert data["total"] == server.api("run/0/flame")["total"]


def test_my_code_only_has_the_time_of_what_it_called(server: ViewServer) -> None:
    found = graph(server, "mine=1")
    assert found["main work"] == 500 * STEPS
    assert all("linear" not in path and "ProfilerStep" not in path for path in found)


def test_functions_of_my_code_are_those_of_my_files(server: ViewServer) -> None:
    def rows(query: str) -> dict[str, list[object]]:
        (section,) = server.api(f"run/0/table/functions{query}")["sections"]
        keys = [column["key"] for column in section["table"]["columns"]]
        return {row[keys.index("function")]: row for row in section["table"]["rows"]}

    everything = rows("")
    assert {"linear", "note", "_find_and_load"} < everything.keys()
    assert rows("?mine=1") == {name: everything[name] for name in ("main", "work", "<module>")}


SWITCH = "button:text-is('My code only')"


@needs_browser
def test_my_code_stays_chosen_in_functions_source_and_flame_graph(tmp_path: Path) -> None:
    frames = [
        {"name": "main", "file": "/home/me/train.py", "line": 3},
        {"name": "load", "file": "/x/site-packages/torch/serialization.py", "line": 9},
    ]
    profile = {
        "type": "sampled", "name": "thread 1", "unit": "milliseconds", "startValue": 0, "endValue": 30,
        "samples": [[0, 1], [0, 1], [0]], "weights": [10, 10, 10],
    }  # fmt: skip
    schema = "https://www.speedscope.app/file-format-schema.json"
    trace = {"$schema": schema, "shared": {"frames": frames}, "profiles": [profile]}
    path = tmp_path / "sampled.speedscope.json"
    path.write_text(json.dumps(trace))
    cells = "main section.table tbody td"
    with ViewServer(path) as server:
        told = walk(
            server.address,
            ("show", "functions", ""),
            ("wait", cells),
            ("texts", cells),
            ("click", SWITCH),
            ("until", "!document.querySelector('main').innerText.includes('serialization')"),
            ("wait", cells),
            ("texts", cells),
            ("click", "nav a[href^='#/source']"),
            ("wait", cells),
            ("texts", cells),
            ("texts", "button[aria-pressed=true]"),
            ("click", "nav a[href^='#/flame']"),
            ("wait", "canvas[data-nodes]"),
            ("parameters",),
        )
    assert any("serialization" in cell for cell in told[2])
    assert "main" in told[6]
    assert any("train.py" in cell for cell in told[9])
    assert not any("serialization" in cell for cell in told[9])
    assert told[10] == ["My code only"]
    assert told[13]["mine"] == "1"


def test_imports_are_one_call_and_the_recorder_is_left_out(server: ViewServer) -> None:
    assert graph(server, "imports=1")["ProfilerStep* main imports"] == 200 * STEPS
    assert "ProfilerStep* main note" in graph(server)
    assert "ProfilerStep* main note" not in graph(server, "recorder=1")


def test_a_range_and_tracks_have_a_flame_graph_of_their_own(server: ViewServer) -> None:
    found = graph(server, "begin=0&end=1000000")
    assert found["ProfilerStep* main work linear aten::linear"] == 300
    (track, *_) = (track["id"] for track in server.api("run/0/timeline")["tracks"] if track["spans"] > 5)
    assert graph(server, f"begin=0&end=1000000&tracks={track}") == found
    assert graph(server, "begin=0&end=1000000&tracks=77") == {}


def test_places_tell_whose_code_it_is(server: ViewServer) -> None:
    places = {place["name"]: place for place in server.api("run/0/flame")["places"]}
    assert (places["linear"]["origin"], places["linear"]["library"]) == ("library", "torch")
    assert (places["work"]["origin"], places["work"]["library"]) == ("yours", "")
    assert places["aten::linear"]["origin"] == "other"


def test_patterns_are_the_servers(server: ViewServer) -> None:
    def names(text: str) -> Any:
        return server.api(f"run/0/flame/names?text={quote(text, safe='')}")

    matching = names("^(main|work) .*train")["names"]
    assert sorted(matching) == ["main /home/me/train.py", "work /home/me/train.py"]
    assert "expression" in names("(")["problem"]
    assert names("(a+)+$" * 20)["problem"] is None


STATUS = ".tabs [role=status]"


@needs_browser
def test_zoom_search_and_invert_take_a_click_each(server: ViewServer) -> None:
    told = walk(
        server.address,
        ("show", "flame", ""),
        ("wait", "canvas[data-nodes]"),
        ("box", "canvas"),
        ("click", "button:text-is('Inverted')"),
        ("wait", "canvas[data-nodes]"),
        ("parameters",),
        ("click", "button[aria-label='Regular expression']"),
        ("fill", "input[type=search]", "^aten::lin"),
        ("wait", f"{STATUS}:has-text('match')"),
        ("text", STATUS),
        ("fill", "input[type=search]", "("),
        ("wait", f"{STATUS}:has-text('no regular expression')"),
    )
    assert told[5]["inverted"] == "1"
    # 300 of the 1000 microseconds of a step.
    assert told[9] == "1.50 ms (30.0 %) match"
    box = told[2]
    zoomed = walk(
        server.address,
        ("show", "flame", ""),
        ("wait", "canvas[data-nodes]"),
        # The third row, on the left: a function of the step.
        ("click_at", box["x"] + 30, box["y"] + 18 * 3 + 9),
        ("parameters",),
        ("click", "button:text-is('All')"),
        ("parameters",),
    )
    assert "node" in zoomed[3]
    assert "node" not in zoomed[5]


@needs_browser
def test_a_link_restores_the_graph(server: ViewServer) -> None:
    parameters = "?run=0&mine=1&inverted=1&search=work&colour=code&begin=0&end=3000000"
    nodes = "Number(document.querySelector('canvas[data-nodes]').dataset.nodes)"
    told = walk(
        server.address,
        ("show", "flame", parameters),
        ("wait", "canvas[data-nodes]"),
        ("evaluate", nodes),
        ("texts", "button[aria-pressed=true]"),
        ("text", ".tabs .quiet"),
        ("texts", ".legend li"),
        ("reload",),
        ("wait", "canvas[data-nodes]"),
        ("evaluate", nodes),
        ("parameters",),
    )
    assert (
        told[2]
        == told[8]
        == len(server.api("run/0/flame?mine=1&inverted=1&recorder=1&begin=0&end=3000000")["parent"])
    )
    assert told[3] == ["Left heavy", "My code only", "Inverted", "Hide hotspan"]
    assert "of the selected 3.00 ms" in told[4]
    assert "Your code" in told[5]
    assert "&".join(f"{key}={value}" for key, value in told[9].items()) == parameters[1:]


@needs_browser
def test_tooltips_are_not_clipped_in_short_graphs(server: ViewServer) -> None:
    told = walk(
        server.address,
        ("show", "flame", "?mine=1"),
        ("wait", "canvas[data-nodes]"),
        ("box", "canvas"),
        ("evaluate", "document.querySelector('canvas').focus()"),
        ("key", "ArrowDown"),
        ("key", "ArrowDown"),
        ("key", "ArrowDown"),
        ("evaluate", SETTLED),
        ("box", ".hover"),
        (
            "evaluate",
            "(() => { const box = document.querySelector('.hover').getBoundingClientRect();"
            "document.querySelector('.hover').style.pointerEvents = 'auto';"
            "return [[box.left + 3, box.top + 3], [box.right - 3, box.bottom - 3]].every(([x, y]) =>"
            "document.elementFromPoint(x, y)?.closest('.hover') !== null); })()",
        ),
    )
    # It reaches beyond the canvas, and is on top of everything there.
    assert told[8]["y"] + told[8]["height"] > told[2]["y"] + told[2]["height"]
    assert told[9]


@needs_browser
def test_flame_graphs_are_accessible(server: ViewServer) -> None:
    look(
        server.address,
        [visit("flame", "?run=0&colour=code"), visit("flame", "?run=0&inverted=1", "inverted")],
    )
