"""What docs/coming-from.md says instead of line_profiler's commands and imports works."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import REPOSITORY

# `profile` is a builtin under the commands; the imports are put before it.
SCRIPT = "@profile\ndef work():\n    return sum(range(1000))\nwork()\n"


def documented(section: str) -> list[str]:
    """Our side of the table of a section: code in backquotes."""
    text = (REPOSITORY / "docs" / "coming-from.md").read_text()
    body = text.split(f"## {section}\n", 1)[1].split("\n## ", 1)[0]
    cells = [line.split("|")[2].strip() for line in body.splitlines() if line.startswith("| `")]
    return [found for cell in cells for found in re.findall(r"^`([^`]+)`$", cell) if "pip" not in found]


def run(folder: Path, *arguments: str) -> str:
    # A name that is deprecated would be told.
    ran = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, (arguments, ran.stderr)
    return ran.stdout


@pytest.mark.parametrize("ours", documented("line_profiler"))
def test_each_row_works(ours: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "module.py").write_text("def inner():\n    return 1\n")
    if ours.startswith(("from ", "import ")):
        shown = run(tmp_path, "-c", ours + "\n" + SCRIPT)
        assert "Line #" in shown, "the table of the function"
    elif ours.startswith("hotspan."):
        name = ours.partition("(")[0]
        assert run(tmp_path, "-c", f"import hotspan; print(callable({name}))") == "True\n"
    else:
        if "lprof" in ours:
            run(tmp_path, "-m", "hotspan.lines", "script.py")
        words = shlex.split(ours)
        python = words[0] == "python"
        shown = run(tmp_path, *(words[1:] if python else ["-m", "hotspan", *words[1:]]))
        if "-o" in words:
            assert (tmp_path / words[words.index("-o") + 1]).stat().st_size > 0
        else:
            assert "work" in shown
