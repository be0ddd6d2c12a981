"""The timeline in a real browser: moved with keys, mouse and fingers, searched, selected, with the server's numbers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser_visits import PICTURES, WEB, Command, make_small, needs_browser, printed
from test_view import device_events
from test_view_timeline import GPU_TRACE, recorded  # noqa: F401  (a fixture)
from view_server import ViewServer

pytestmark = needs_browser


@pytest.fixture(scope="module")
def server(recorded: Path) -> Iterator[ViewServer]:  # noqa: F811
    """`hotspan view` on a recorded training and a real trace with a GPU."""
    with ViewServer(recorded, *([GPU_TRACE] if GPU_TRACE.exists() else [])) as running:
        yield running


def look(server: ViewServer, run: int, text: str, picture: Path | None = None) -> dict[str, Any]:
    """What the browser saw."""
    command = ["node", "e2e/timeline.mjs", server.address, str(run), text]
    command += [] if picture is None else [str(picture)]
    result = subprocess.run(command, cwd=WEB, capture_output=True, text=True, timeout=180, check=False)
    assert result.returncode == 0, result.stderr
    told: dict[str, Any] = json.loads(result.stdout)
    assert "failed" not in told, told["failed"]
    assert told["complaints"] == []
    return told


@pytest.fixture(scope="module")
def training(server: ViewServer) -> dict[str, Any]:
    """The recorded training."""
    picture = None if PICTURES is None else PICTURES / "timeline.png"
    told = look(server, 0, "aten::addmm", picture)
    if picture is not None:
        make_small(picture)
    return told


@pytest.fixture(scope="module")
def device(server: ViewServer) -> dict[str, Any]:
    """The real trace with a GPU."""
    if not GPU_TRACE.exists():
        pytest.skip("needs the shared traces")
    return look(server, 1, "ncclKernel_AllReduce")


@pytest.fixture(params=["training", "device"])
def seen(request: pytest.FixtureRequest) -> tuple[int, dict[str, Any]]:
    """Each of them, with its number."""
    told: dict[str, Any] = request.getfixturevalue(request.param)
    return ["training", "device"].index(request.param), told


def test_keys_mouse_and_fingers_move_and_zoom(seen: tuple[int, dict[str, Any]]) -> None:
    _, told = seen
    lengths = told["lengths"]
    assert lengths["up"] < lengths["w"] < lengths["all"]
    assert lengths["s"] == pytest.approx(lengths["w"], abs=3)
    assert lengths["pinch"] < lengths["wheel"] < lengths["s"]
    assert int(told["d"]["from"]) > int(told["up"]["from"])
    assert int(told["left"]["from"]) < int(told["d"]["from"])
    # 200 of some 1246 pixels, with a pause on the way.
    moved = (int(told["wheel"]["from"]) - int(told["drag"]["from"])) / lengths["wheel"]
    assert moved == pytest.approx(200 / 1246, abs=0.01)
    assert told["reloaded"] == told["drag"]


def test_search_finds_what_the_server_counts_and_shows_it(
    server: ViewServer, seen: tuple[int, dict[str, Any]]
) -> None:
    run, told = seen
    text = told["firstPlace"]["search"]
    first, second = (server.api(f"run/{run}/search?text={text}&number={number}") for number in (0, 1))
    assert told["hits"] == first["total"] > 1
    assert told["first"] == first["hit"]["name"]
    assert told["duration"] == first["hit"]["end"] - first["hit"]["begin"]
    assert told["firstPlace"]["span"] == str(first["hit"]["span"])
    assert told["secondPlace"]["span"] == str(second["hit"]["span"])
    begin, end = int(told["firstPlace"]["from"]), int(told["firstPlace"]["to"])
    assert begin <= first["hit"]["begin"] <= first["hit"]["end"] <= end
    assert told["outlined"]["count"] > 20
    assert told["hover"].startswith(first["hit"]["name"][:100])


def test_search_finds_as_many_as_the_command_line_counts(
    training: dict[str, Any],
    recorded: Path,  # noqa: F811
    hotspan_command: Command,
) -> None:
    rows = printed(hotspan_command, "stats", recorded, "--by", "op", "--limit", 0)[0]["rows"]
    assert training["hits"] == sum(row["count"] for row in rows if "aten::addmm" in row["name"])


def test_going_back_and_forward_restores_what_was_seen(seen: tuple[int, dict[str, Any]]) -> None:
    _, told = seen
    assert told["back"] == told["firstPlace"]
    assert told["forward"] == told["secondPlace"]


def test_links_lead_from_span_to_span(device: dict[str, Any], training: dict[str, Any]) -> None:
    assert device["relation"] == "launched by"
    assert "launched" in device["backLinks"]
    assert training["relation"] == "backward"
    assert "AddmmBackward" in training["linked"]
    assert "forward" in training["backLinks"]


def test_the_tables_of_a_range_are_those_of_the_server(
    server: ViewServer, seen: tuple[int, dict[str, Any]]
) -> None:
    run, told = seen
    begin, end = told["range"]["begin"], told["range"]["end"]
    rows = server.rows(f"run/{run}/table/operators?begin={begin}&end={end}")
    assert rows
    place = told["columns"].index("count")
    shown = [(row[0], row[place].replace(" ", "")) for row in told["operators"]]
    assert shown == [(row["name"], str(row["count"])) for row in rows][: len(shown)]
    whole = server.rows(f"run/{run}/table/operators")
    # A training may run its first operator after a tenth of its time, and its last one early.
    some, all_of_them = (sum(row["count"] for row in table) for table in (rows, whole))
    assert some < all_of_them or (run == 0 and some == all_of_them)


def test_pins_and_folds_stay_and_keys_are_told(seen: tuple[int, dict[str, Any]]) -> None:
    _, told = seen
    assert told["kept"]["pin"] == told["pinned"]
    assert told["pinned"] in told["kept"]["fold"].split(",")
    assert "next and previous match" in told["help"]
    assert told["phone"]


def test_the_page_tells_what_happened_to_files(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("this is no trace")
    good = tmp_path / "good.json"
    good.write_text(json.dumps({"traceEvents": device_events(5)}))
    (tmp_path / "other.json").write_text(good.read_text())
    with ViewServer(tmp_path) as server:
        ids = {run["file"]: str(run["id"]) for run in server.api("runs")["runs"]}
        browser = subprocess.Popen(
            ["node", "e2e/messages.mjs", server.address, ids["broken.json"], ids["good.json"]],
            cwd=WEB, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        with browser:
            assert browser.stdin is not None
            assert browser.stdout is not None
            for line in browser.stdout:
                if line.startswith("{"):
                    break
                if line.strip() == "change":
                    good.write_text(json.dumps({"traceEvents": device_events(9)}))
                elif line.strip() == "arrive":
                    (tmp_path / "newest.json").write_text(json.dumps({"traceEvents": device_events(3)}))
                else:
                    good.unlink()
                browser.stdin.write("done\n")
                browser.stdin.flush()
        assert server.process.poll() is None
    seen = json.loads(line)
    assert "failed" not in seen, seen["failed"]
    assert "broken.json" in seen["broken"]
    assert "has changed" in seen["changed"]
    assert "tracks" in seen["again"]
    assert "newest.json" in seen["arrived"]
    assert "newest" in seen["shown"]
    assert "no longer in the folder" in seen["gone"]
    assert seen["complaints"] == []
