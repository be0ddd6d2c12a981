"""The commands of py-spy and pyinstrument in docs/coming-from.md, each run in hotspan's form."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import REPOSITORY
from sampled_programs import SHARES, core_of, running


def documented(section: str) -> list[str]:
    """The hotspan commands in the table of a section."""
    text = (REPOSITORY / "docs" / "coming-from.md").read_text()
    body = text.split(f"## {section}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in body.splitlines() if line.startswith("| `")]
    return [re.findall(r"`([^`]+)`", row.split("|")[2])[0] for row in rows]


SECTIONS = ["py-spy", "pyinstrument"]


@pytest.mark.parametrize(("section", "command"), [(s, c) for s in SECTIONS for c in documented(s)])
def test_each_command_runs(section: str, command: str, tmp_path: Path, hotspan_command: Any) -> None:
    assert section in SECTIONS
    (tmp_path / "script.py").write_text(SHARES)
    with running(SHARES, "60") as process:
        words = shlex.split(command.replace("PID", str(process.pid)))
        assert words[0] == "hotspan"
        words = [sys.executable if word == "python" else word for word in words[1:]]
        if "FILE" in words:
            words[words.index("FILE")] = str(core_of(Path(sys.executable), tmp_path))
        if sys.executable in words:
            words.append("60" if "-d" in words or words[0] == "top" else "0.6")
        elif words[0] == "record" and "-d" not in words:
            words += ["-d", "0.6"]
        if words[0] == "top":
            words[1:1] = ["--once", "-d", "0.5"]
        if words[0] == "tree":
            made = hotspan_command(
                "record", "-d", "0.5", "-o", words[1], "--pid", str(process.pid), cwd=tmp_path
            )
            assert made.returncode == 0, made.stderr
        told = hotspan_command(*words, cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    if "-o" in words:
        assert (tmp_path / words[words.index("-o") + 1]).stat().st_size > 0
    else:
        assert told.stdout
