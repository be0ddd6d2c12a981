"""What a notebook shows: the report of a trace or profile in a cell, and the dashboard in a frame."""

from __future__ import annotations

import json
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import hotspan
from browser_visits import WEB, needs_browser
from conftest import REPOSITORY, complete

TRAINING = REPOSITORY / "python/tests/data/training_h200.hotspan.zst"
HOSTILE = '<img src="x" onerror="alert(1)">&"'


class Parts(HTMLParser):
    """The tags of a piece of HTML, and the text of its cells and headings."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, _attributes: list[tuple[str, str | None]]) -> None:  # type: ignore[override]
        """Count it."""
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        """Keep it."""
        self.texts.append(data)


@pytest.fixture
def hostile(tmp_path: Path) -> hotspan.Trace:
    events = [
        complete(f"ProfilerStep#{step}", step * 100, 90, cat="user_annotation", pid=1, tid=1)
        for step in range(4)
    ]
    events += [complete(HOSTILE, step * 100 + 10, 50, cat="cpu_op", pid=1, tid=1) for step in range(4)]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": events}))
    return hotspan.open(tmp_path / "t.json")


def test_a_trace_shows_its_report(hotspan_command: Any) -> None:
    told = json.loads(hotspan_command("report", str(TRAINING), "--json").stdout)
    parts = Parts(hotspan.open(TRAINING)._repr_html_())
    assert told["verdict"]["sentence"] in parts.texts
    for title, rows in told["report"].items():
        assert title in parts.texts
        assert len(rows) > 0
    for row in told["report"]["Where the time went"]:
        assert row["activity"] in parts.texts
    assert parts.tags.count("table") == len(told["report"])
    assert any("data-loading-bound" in text for text in parts.texts)


def test_names_stay_text(hostile: hotspan.Trace) -> None:
    for shown in (hostile, hostile.key_averages()):
        parts = Parts(shown._repr_html_())
        assert "img" not in parts.tags
        assert any(HOSTILE in text for text in parts.texts)


def test_a_profile_shows_its_last_window() -> None:
    torch = pytest.importorskip("torch")
    from hotspan.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as recorder:
        assert recorder._repr_html_() is None
        torch.ones(3) + 1
    assert recorder._repr_html_() == recorder.trace._repr_html_()
    assert "aten::ones" in Parts(recorder._repr_html_()).texts


def in_browser(page: Path, frame: str) -> dict[str, Any]:
    page.write_text(f"<!doctype html><meta charset=utf-8><title>cell</title>{frame}")
    command = ["node", "e2e/notebook.mjs", page.as_uri()]
    done = subprocess.run(
        command, cwd=WEB, input="{}", capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert told.pop("complaints") == []
    assert told.pop("failed", None) is None
    return told


@needs_browser
def test_the_dashboard_works_in_a_frame(hotspan_command: Any, tmp_path: Path) -> None:
    told = json.loads(hotspan_command("report", str(TRAINING), "--json").stdout)
    seen = in_browser(tmp_path / "cell.html", hotspan.view(TRAINING)._repr_html_())
    assert seen["sentence"].startswith(told["verdict"]["sentence"].rstrip("."))
    assert seen["operators"].startswith("aten::")
    assert seen["theme"] == "dark"


@needs_browser
def test_names_stay_text_in_the_frame(hostile: hotspan.Trace, tmp_path: Path) -> None:
    seen = in_browser(tmp_path / "cell.html", hotspan.view(hostile)._repr_html_())
    assert seen["markup"] == 0
    assert HOSTILE in seen["operators"]
