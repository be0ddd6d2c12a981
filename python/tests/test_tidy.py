"""The rules of the house that no linter knows: files say what they are, stay small, and dependencies run one way."""

from __future__ import annotations

import ast
import json
import subprocess
from pathlib import Path

from conftest import REPOSITORY

# Each crate may use those before it, never one after it.
CRATES = [
    "hotspan-store",
    "hotspan-analyze",
    "hotspan-formats",
    "hotspan-view",
    "hotspan-collect",
    "hotspan",
    "hotspan-python",
]
LONGEST_FILE = 800


def sources(suffix: str) -> list[Path]:
    """The files of the repository as git sees them: tracked, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", f"*{suffix}"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    paths = [REPOSITORY / name for name in listed.split("\0") if name]
    return sorted(path for path in paths if path.exists())


def named(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(REPOSITORY)) for path in paths]


def test_every_rust_file_begins_by_saying_what_it_is() -> None:
    files = sources(".rs")
    assert files
    silent = [path for path in files if not path.read_text().startswith(("//! ", "#![no_main]\n//! "))]
    assert named(silent) == []


def test_every_python_file_begins_by_saying_what_it_is() -> None:
    files = sources(".py") + sources(".pyi")
    assert files
    assert named([path for path in files if not ast.get_docstring(ast.parse(path.read_text()))]) == []


def test_no_source_file_is_too_long() -> None:
    files = sources(".rs") + sources(".py") + sources(".pyi")
    assert named([path for path in files if len(path.read_text().splitlines()) > LONGEST_FILE]) == []


def test_no_file_has_a_name_that_says_nothing() -> None:
    empty_words = {"utils", "util", "common", "helpers", "helper", "misc", "manager"}
    assert named([path for path in sources(".rs") + sources(".py") if path.stem in empty_words]) == []


def test_crates_depend_in_one_direction() -> None:
    command = ["cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"]
    told = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    packages = {package["name"]: package for package in json.loads(told)["packages"]}
    assert set(packages) <= set(CRATES), "say in CRATES where the new crate stands"
    backward = [
        f"{name} -> {dependency['name']}"
        for name, package in packages.items()
        for dependency in package["dependencies"]
        if dependency["name"] in packages and CRATES.index(dependency["name"]) >= CRATES.index(name)
    ]
    assert backward == []


def test_every_dependency_carries_its_reason() -> None:
    lines = (REPOSITORY / "Cargo.toml").read_text().splitlines()
    start = lines.index("[workspace.dependencies]")
    end = next(number for number, line in enumerate(lines) if number > start and line.startswith("["))
    dependencies = [line for line in lines[start + 1 : end] if line and not line.startswith("#")]
    own = [line for line in dependencies if "path = " in line]
    assert own
    assert [line for line in dependencies if line not in own and " # " not in line] == []
