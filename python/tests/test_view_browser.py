"""The dashboard in a real browser: every view opens, with the numbers of the command line, and keeps its state."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import REPOSITORY
from test_view import device_events
from view_server import ViewServer

WEB = REPOSITORY / "web"
BROWSER = os.environ.get("CHROMIUM", "/usr/bin/chromium")

pytestmark = pytest.mark.skipif(
    not (Path(BROWSER).exists() and shutil.which("node") and (WEB / "node_modules/playwright-core").is_dir()),
    reason="needs Node, chromium and `npm ci` in web/",
)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace with steps, operators, kernels and names that are markup."""
    path = tmp_path_factory.mktemp("browser") / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": device_events(6)}))
    return path


@pytest.fixture(scope="module")
def seen(trace: Path) -> dict[str, Any]:
    """What the browser saw."""
    with ViewServer(trace) as server:
        command = ["node", "e2e/run.mjs", server.address]
        result = subprocess.run(command, cwd=WEB, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    told: dict[str, Any] = json.loads(result.stdout)
    assert "failed" not in told, told["failed"]
    return told


def test_every_view_opens_without_a_complaint(seen: dict[str, Any]) -> None:
    assert seen["complaints"] == []
    assert {name: view["problem"] for name, view in seen["views"].items() if view["problem"]} == {}
    assert all(view["text"].strip() for view in seen["views"].values())
    assert not any(view["wide"] for view in seen["views"].values())


def test_names_are_text_and_never_markup(seen: dict[str, Any]) -> None:
    assert sum(view["images"] for view in seen["views"].values()) == 0
    assert "<img src=x onerror=alert(1)>" in [row[0] for row in seen["operators"]]


def test_tables_show_the_numbers_of_the_command_line(
    seen: dict[str, Any], trace: Path, hotspan_command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    for by, shown in (("op", seen["operators"]), ("kernel", seen["kernels"])):
        rows = json.loads(hotspan_command("stats", trace, "--by", by, "--limit", "0", "--json").stdout)[0][
            "rows"
        ]
        assert [row[0] for row in shown] == [next(iter(row.values())) for row in rows]


def test_sorting_filtering_and_reloading(seen: dict[str, Any]) -> None:
    assert sorted(row[0] for row in seen["sorted"]) == sorted(row[0] for row in seen["operators"])
    assert seen["filtered"]
    assert all(any("mm" in cell.lower() for cell in row) for row in seen["filtered"])
    assert len(seen["filtered"]) < len(seen["operators"])
    assert seen["reloaded"] == seen["filtered"]
    assert seen["sort_after_reload"] == "descending"


def test_the_timeline_zooms_searches_and_selects(seen: dict[str, Any]) -> None:
    before, after, reloaded = (seen["zoom"][name] for name in ("before", "after", "reloaded"))
    assert int(after["to"]) - int(after["from"]) < int(before["to"]) - int(before["from"])
    assert (reloaded["from"], reloaded["to"]) == (after["from"], after["to"])
    # Twelve kernels and twelve calls named cudaLaunchKernel.
    assert seen["hits"] == 24
    assert "kernel" in seen["span"].lower()
    assert seen["within"]


def test_a_link_to_a_span_shows_the_span(seen: dict[str, Any]) -> None:
    # The first match is the launch at 70 us, 10 us long.
    begin, end = int(seen["linked"]["from"]), int(seen["linked"]["to"])
    assert begin <= 70_000 < 80_000 <= end
    assert end - begin < 200_000


def test_views_fit_a_phone(seen: dict[str, Any]) -> None:
    assert [name for name, fits in seen["phone"].items() if not fits] == []


def test_a_page_to_share_works_from_the_disk_with_the_network_off(
    trace: Path, tmp_path: Path, hotspan_command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    page = tmp_path / "report.html"
    made = hotspan_command("report", trace, "--html", page)
    assert made.returncode == 0, made.stderr
    command = ["node", "e2e/static.mjs", str(page)]
    result = subprocess.run(command, cwd=WEB, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["complaints"] == []
    assert {name: view["problem"] for name, view in told["views"].items() if view["problem"]} == {}
    assert sum(view["images"] for view in told["views"].values()) == 0
    assert "<img src=x onerror=alert(1)>" in told["views"]["operators"]["text"]
    assert told["spans"] > 0
