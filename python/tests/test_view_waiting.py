"""What the page says while it waits: how much of a trace has been read, how many events, what is being computed."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from browser_visits import needs_browser, number, walk
from test_view import device_events
from view_server import ViewServer

#: Goes to another trace, and collects what the page says until that is shown.
COLLECTED = """new Promise((resolve) => {
    const seen = new Set();
    const look = () => document.querySelectorAll('.waiting').forEach((line) => seen.add(line.textContent));
    const observer = new MutationObserver(() => {
        look();
        if (seen.size === 0 || document.querySelector('main .waiting') !== null) return;
        observer.disconnect();
        resolve([...seen]);
    });
    observer.observe(document.body, { childList: true, subtree: true, characterData: true });
    location.hash = '#/timeline?run=%d';
})"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small trace, and one that takes a while to read."""
    folder = tmp_path_factory.mktemp("waiting")
    (folder / "small.json").write_text(json.dumps({"traceEvents": device_events(2)}))
    (folder / "large.json").write_text(json.dumps({"traceEvents": device_events(60_000)}))
    return folder


def test_bytes_and_events_are_told(folder: Path) -> None:
    with ViewServer(folder) as server:
        run = number(server, "large.json")
        assert server.api(f"run/{run}/progress") == {"bytes": 0, "total": 0, "events": None, "computing": []}
        told: list[dict[str, Any]] = []
        done = threading.Event()

        def ask() -> None:
            server.api(f"run/{run}/timeline")
            done.set()

        asking = threading.Thread(target=ask)
        asking.start()
        while not done.is_set():
            told.append(server.api(f"run/{run}/progress"))
        asking.join()
        reading = [answer for answer in told if answer["events"] is None and answer["total"] > 0]
        size = (folder / "large.json").stat().st_size
        assert reading
        assert {answer["total"] for answer in reading} == {size}
        read = [answer["bytes"] for answer in reading]
        assert read == sorted(read)
        last = server.api(f"run/{run}/progress")
        assert (last["events"], last["computing"]) == (60_000 * 7, [])


@needs_browser
def test_the_page_says_what_it_waits_for(folder: Path) -> None:
    with ViewServer(folder) as server:
        small, large = number(server, "small.json"), number(server, "large.json")
        told = walk(server.address, ("show", "timeline", f"?run={small}"), ("evaluate", COLLECTED % large))
    # How far it had come at these moments is up to the machine.
    assert any(line.startswith("Reading the trace") or "events read" in line for line in told[1]), told[1]
