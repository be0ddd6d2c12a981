"""Sends a real browser through views of the dashboard, and holds what it saw against the command line."""

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
from shown_tables import expected
from view_server import ViewServer

WEB = REPOSITORY / "web"
BROWSER = os.environ.get("CHROMIUM", "/usr/bin/chromium")
#: Where the pictures of the documentation go: into it with HOTSPAN_WRITE=1, else nowhere.
PICTURES = REPOSITORY / "docs/images" if os.environ.get("HOTSPAN_WRITE") else None

Command = Callable[..., subprocess.CompletedProcess[str]]
Visits = list[dict[str, Any]]

# Where both are, the tests must run: without `npm ci` in web/ they fail.
needs_browser = pytest.mark.skipif(
    not (Path(BROWSER).exists() and shutil.which("node")), reason="needs Node and chromium"
)


def visit(view: str, parameters: str = "", name: str = "", **more: Any) -> dict[str, Any]:
    """A place to go to; accessibility and a phone's width are looked at unless told otherwise."""
    return {"name": name or view, "view": view, "parameters": parameters, "axe": True, "phone": True, **more}


def pictured(place: dict[str, Any], dark: bool = False) -> dict[str, Any]:
    """The same with a picture for the documentation, where those are wanted."""
    if PICTURES is None:
        return place
    return {**place, "picture": str(PICTURES / f"view-{place['name']}.png"), "dark": dark}


def look(address: str, visits: Visits, offline: bool = False) -> dict[str, Any]:
    """What the browser saw of each; no view may complain, overflow or make markup of a name."""
    plan = json.dumps({"visits": visits, "offline": offline})
    command = ["node", "e2e/views.mjs", address]
    result = subprocess.run(
        command, cwd=WEB, input=plan, capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["complaints"] == []
    seen: dict[str, Any] = told["seen"]
    wrong: list[str] = []
    for name, view in seen.items():
        if view["problem"] is not None:
            wrong.append(f"{name} has a problem: {view['problem']}")
        wrong += [f"{name} is not accessible: {found}" for found in view.get("violations", [])]
        wrong += [f"{name} {what}" for what in ("markup", "wide", "wideOnPhone") if view.get(what)]
        if not view["text"].strip():
            wrong.append(f"{name} shows nothing")
    assert wrong == []
    for place in visits:
        if place.get("picture"):
            make_small(Path(place["picture"]))
    return seen


def walk(
    address: str, *steps: tuple[object, ...], width: int = 1280, height: int = 800, offline: bool = False
) -> list[Any]:
    """What each step came to; web/e2e/steps.mjs lists the verbs."""
    plan = {"steps": steps, "width": width, "height": height, "offline": offline}
    command = ["node", "e2e/steps.mjs", address]
    result = subprocess.run(
        command, cwd=WEB, input=json.dumps(plan), capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == 0, result.stderr
    done = json.loads(result.stdout)
    assert done["failed"] is None, done["failed"]
    assert done["complaints"] == []
    told: list[Any] = done["told"]
    return told


def make_small(picture: Path) -> None:
    """A page has few colours: with a palette it is a third of the size. This method keeps those of small things too."""
    from PIL import Image

    whole = Image.open(picture).convert("RGB")
    whole.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(picture, optimize=True)


def number(server: ViewServer, file: str) -> int:
    """What the server calls a trace."""
    found: int = next(run["id"] for run in server.api("runs")["runs"] if run["file"] == file)
    return found


def printed(hotspan_command: Command, *arguments: object) -> Any:
    """The JSON of a command."""
    result = hotspan_command(*arguments, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def check(view: dict[str, Any], place: int, table: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """The table at this place of a view has the command line's rows, cell by cell."""
    assert rows
    keys, cells = expected(table, rows)
    assert view["tables"][place]["keys"] == keys
    assert view["tables"][place]["rows"] == cells
