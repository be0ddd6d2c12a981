"""Every command of cProfile and pstats in docs/coming-from.md runs, and says what the original says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from conftest import REPOSITORY

SCRIPT = """\
def forward(): return sum(range(100))
def my_function():
    for _ in range(3): forward()
my_function()
"""


def rows() -> list[tuple[str, str]]:
    """The commands of the table, theirs and ours."""
    text = (REPOSITORY / "docs" / "coming-from.md").read_text()
    section = text.split("## cProfile and pstats")[1].split("\n## ")[0]
    return re.findall(r"^\| `(.+?)` \| `(.+?)` \|$", section, re.MULTILINE)


def run(command: str, folder: Path) -> str:
    if command.startswith(("import ", "pstats")):
        arguments = [sys.executable, "-c", SCRIPT + command]
    else:
        program, *rest = shlex.split(command)
        arguments = [str(Path(sys.executable).with_name(program)), *rest]
    ran = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, (command, ran.stderr)
    return ran.stdout


def test_every_command_runs(tmp_path: Path) -> None:
    (tmp_path / "myscript.py").write_text(SCRIPT)
    for name in ("profile.txt", "a.prof", "b.prof"):
        run(f"python -m hotspan.cprofile -o {name} myscript.py", tmp_path)
    commands = rows()
    assert len(commands) == 10
    for theirs, ours in commands:
        told = run(ours, tmp_path)
        if " -o " in ours:
            assert told == ""
            continue
        assert "forward" in told, ours
        if theirs.startswith("python") or theirs.startswith("import"):
            original = run(theirs, tmp_path)
            # Times differ; the rows of the program do not.
            calls = [re.findall(r"(\S+) +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ (.*(?:forward|my_function|sum).*)", text) for text in (told, original)]
            assert sorted(calls[0]) == sorted(calls[1]), ours
