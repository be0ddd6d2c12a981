"""Every row of memory_profiler and mprof in docs/coming-from.md works as it is written there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import REPOSITORY
from environments import environment

# `profile` is a builtin under the commands; the imports are put before it.
SCRIPT = """\
@profile
def work():
    return sum(range(1000))
work()
"""


def rows() -> list[tuple[str, str]]:
    """Both sides of the table; where ours is the same, theirs."""
    text = (REPOSITORY / "docs" / "coming-from.md").read_text()
    body = text.split("## memory_profiler\n", 1)[1].split("\n## ", 1)[0]
    cells = [line.split("|")[1:3] for line in body.splitlines() if line.startswith("| `")]
    sides = [(theirs.strip().strip("`"), ours.strip().strip("`")) for theirs, ours in cells]
    return [(theirs, theirs if ours == "the same" else ours) for theirs, ours in sides]


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def command(folder: Path, words: list[str]) -> str:
    program = ["-m", "hotspan"] if words[0] == "hotspan" else []
    return run(folder, *program, *words[1:])


COMMANDS = [ours for _, ours in rows() if ours.startswith(("python ", "hotspan record"))]
NAMES = [ours for _, ours in rows() if ours.startswith("hotspan.")]
MAGICS = [ours for _, ours in rows() if ours.startswith("%")]
IMPORTS = [ours for _, ours in rows() if ours.startswith("from ")]


def test_no_row_is_left_out() -> None:
    tried = {*COMMANDS, *NAMES, *MAGICS, *IMPORTS, "pip install hotspan"}
    assert {ours for _, ours in rows()} == tried
    assert (len(COMMANDS), len(NAMES), len(MAGICS), len(IMPORTS)) == (14, 3, 3, 1)


@pytest.mark.parametrize("ours", COMMANDS)
def test_each_command_runs(ours: str, tmp_path: Path) -> None:
    words = shlex.split(ours)
    # Nothing defines `profile` in a program that is only watched from outside.
    is_watched = "--memory" in words or "-M" in words
    (tmp_path / "script.py").write_text(SCRIPT.removeprefix("@profile\n") if is_watched else SCRIPT)
    if "hotspan.memory.mprof" in words and "run" not in words:
        run(tmp_path, "-m", "hotspan.memory.mprof", "run", "-T", "0.01", "script.py")
    recorded = set(tmp_path.glob("mprofile_*.dat"))
    shown = command(tmp_path, words)
    if "-o" in words:
        assert (tmp_path / words[words.index("-o") + 1]).stat().st_size > 0
    elif {"rm", "clean"} & set(words):
        assert (len(recorded), set(tmp_path.glob("mprofile_*.dat"))) == (1, set())
    elif "run" in words:
        assert len(list(tmp_path.glob("mprofile_*.dat"))) == 1
    elif "plot" in words:
        assert len(list(tmp_path.glob("mprofile_*.svg"))) == 1
    elif "hotspan.memory.mprof" in words:
        assert "mprofile_" in shown
    else:
        assert "return sum(range(1000))" in shown


@pytest.mark.parametrize("ours", NAMES)
def test_each_name_is_there(ours: str, tmp_path: Path) -> None:
    name = ours.partition("(")[0]
    assert run(tmp_path, "-c", f"import hotspan.memory; print(callable({name}))") == "True\n"


@pytest.mark.parametrize("ours", IMPORTS)
def test_each_import_decorates(ours: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(f"{ours}\n{SCRIPT}")
    assert re.search(r"Line #.*Increment", run(tmp_path, "script.py"))


def test_the_magics_work(tmp_path: Path) -> None:
    python = environment("peers", "3.11")
    if not python.exists():
        pytest.skip("the environment with IPython is not here: make real")
    (tmp_path / "module.py").write_text("def work():\n    return sum(range(1000))\n")
    lines = [*MAGICS[:1], "from module import work", *MAGICS[1:]]
    code = f"""
from IPython.testing.globalipapp import start_ipython
shell = start_ipython()
for line in {lines!r}:
    shell.run_cell(line).raise_error()
"""
    package = str(REPOSITORY / "python")
    variables = {**os.environ, "PYTHONPATH": package, "IPYTHONDIR": str(tmp_path), "TERM": "dumb"}
    command = [str(python), "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "peak memory: " in done.stdout
    assert "return sum(range(1000))" in done.stdout
