"""The rules of the house for the web app: files say what they are, layers run one way, no registry is named."""

from __future__ import annotations

import json
import re
from pathlib import Path

from conftest import REPOSITORY
from test_tidy import LONGEST_FILE, named, sources

WEB = REPOSITORY / "web"
# Each layer may use those before it, never one after it.
LAYERS = ["base", "data", "widgets", "views"]


def scripts() -> list[Path]:
    files = sources(".ts") + sources(".tsx") + sources(".mjs")
    return [path for path in files if WEB in path.parents]


def test_every_script_begins_by_saying_what_it_is_and_stays_small() -> None:
    files = scripts()
    assert files
    assert named([path for path in files if not path.read_text().startswith("// ")]) == []
    assert named([path for path in files if len(path.read_text().splitlines()) > LONGEST_FILE]) == []


def test_layers_are_used_in_one_direction_and_views_not_by_each_other() -> None:
    wrong = []
    for path in scripts():
        layer = path.parent.name
        if layer not in LAYERS:
            continue
        for used in re.findall(r'from "(\.[^"]+)"', path.read_text()):
            other = (path.parent / used).resolve()
            allowed = LAYERS[: LAYERS.index(layer) + (layer != "views")]
            # What a view is given is told in one file.
            if other.parent.name not in allowed and other.name != "view":
                wrong.append(f"{path.relative_to(WEB)} -> {used}")
    assert wrong == []


def test_the_lock_file_names_no_registry() -> None:
    packages = json.loads((WEB / "package-lock.json").read_text())["packages"]
    assert len(packages) > 5
    assert [name for name, package in packages.items() if "resolved" in package] == []
