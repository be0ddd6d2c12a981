"""Traces that are dropped onto the page: they go to the server of the page alone, and leave nothing behind."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from browser_visits import needs_browser, walk
from test_view import device_events
from view_server import ViewServer


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "first.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": device_events(3)}))
    return path


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Where the server keeps what it is given."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


@pytest.fixture
def server(trace: Path, scratch: Path) -> Iterator[ViewServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(scratch))
        running = ViewServer(trace)
    with running:
        yield running


def drop(server: ViewServer, name: str, content: bytes, **headers: str) -> tuple[int, dict[str, Any]]:
    """Sends a file as the page does."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    own = {"Origin": f"http://127.0.0.1:{server.port}", **headers}
    path = f"/{headers.pop('secret', server.token)}/api/dropped?name={quote(name)}"
    own.pop("secret", None)
    connection.request("POST", path, content, {key: value for key, value in own.items() if value})
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return response.status, answer


def content(steps: int) -> bytes:
    return json.dumps({"schemaVersion": 1, "traceEvents": device_events(steps)}).encode()


def test_a_dropped_file_is_a_trace_like_others(server: ViewServer, scratch: Path) -> None:
    status, run = drop(server, "../../later.pt.trace.json", content(7))
    assert status == 200
    assert (run["run"], run["file"], run["bytes"]) == ("dropped", "later.pt.trace.json", len(content(7)))
    assert [known["file"] for known in server.api("runs")["runs"]] == ["first.json", "later.pt.trace.json"]
    assert len(server.api(f"run/{run['id']}/steps")) == 7
    assert server.api(f"compare/waterfall?before=0&after={run['id']}")["words"]
    # It has no name that anybody else could open it by.
    assert list(scratch.iterdir()) == []


def test_what_is_no_trace_is_told_by_its_name(server: ViewServer) -> None:
    status, run = drop(server, "<img src=x>.txt", b"this is no trace")
    assert status == 200
    problem = server.api(f"run/{run['id']}/timeline", status=422)
    assert "<img src=x>.txt" in problem["message"]
    assert "/proc/" not in problem["message"]
    assert server.api("run/0/timeline")["tracks"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"secret": "0" * 32}, 403),
        ({"Origin": "http://example.com"}, 403),
        ({"Origin": ""}, 403),
        ({"Host": "example.com"}, 403),
    ],
)
def test_only_the_page_itself_may_send_files(
    server: ViewServer, scratch: Path, headers: dict[str, str], status: int
) -> None:
    got, problem = drop(server, "a.json", content(1), **headers)
    assert got == status, problem
    assert len(server.api("runs")["runs"]) == 1
    assert list(scratch.iterdir()) == []


def test_nothing_else_can_be_sent_to(server: ViewServer) -> None:
    own = {"Origin": f"http://127.0.0.1:{server.port}"}
    for call in ("api/runs", "api/run/0/table/operators", "", "api/dropped/more"):
        assert server.request(f"/{server.token}/{call}", "POST", own)[0] == 405
    for method in ("PUT", "DELETE"):
        assert server.request(f"/{server.token}/api/dropped?name=a", method, own)[0] == 405


def test_there_is_an_end_to_what_is_taken(server: ViewServer) -> None:
    for number in range(16):
        assert drop(server, f"{number}.json", content(1))[0] == 200
    status, problem = drop(server, "one too many.json", content(1))
    assert status == 413
    assert "16 files" in problem["message"]
    assert len(server.api("runs")["runs"]) == 17


def test_a_file_that_breaks_off_is_not_listed(server: ViewServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.putrequest("POST", f"/{server.token}/api/dropped?name=half.json")
    connection.putheader("Origin", f"http://127.0.0.1:{server.port}")
    connection.putheader("Content-Length", "100000")
    connection.endheaders()
    connection.send(b"[")
    connection.close()
    assert drop(server, "whole.json", content(2))[0] == 200
    assert [run["file"] for run in server.api("runs")["runs"]] == ["first.json", "whole.json"]


@needs_browser
def test_a_file_dropped_onto_the_page_is_shown(server: ViewServer, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    file = tmp_path / "other" / "dropped <b>here.json"
    file.write_bytes(content(9))
    told = walk(
        server.address,
        ("show", "timeline", "?run=0"),
        ("drop", str(file)),
        ("until", "document.querySelector('header.top select').selectedOptions[0].text.includes('<b>here')"),
        ("parameters",),
        ("text", "header.top select option:checked"),
        ("evaluate", "document.querySelectorAll('main b').length"),
        ("reload",),
        ("text", "header.top select option:checked"),
    )
    assert told[3]["run"] == "1"
    assert "dropped <b>here" in told[4]
    assert told[5] == 0
    assert told[7] == told[4]


@needs_browser
def test_an_empty_folder_says_that_a_trace_can_be_dropped(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    file = tmp_path / "a.json"
    file.write_bytes(content(2))
    with ViewServer(folder) as server:
        told = walk(
            server.address,
            ("show", "overview", ""),
            ("text", "main"),
            ("drop", str(file)),
            ("wait", "main[data-view=overview] .verdict"),
        )
    assert "dropped onto this page" in told[1]
