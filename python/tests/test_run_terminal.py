"""``hotspan run`` on a terminal: a line says how it goes, and leaves no trace of itself."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path


def on_a_terminal(command: list[str], folder: Path) -> tuple[str, int]:
    """What a person would have seen, and the exit code."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execv(command[0], command)
    seen = b""
    while select.select([terminal], [], [], 60)[0]:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(terminal)
    return seen.decode(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_line_of_progress(tmp_path: Path) -> None:
    program = (
        "import time, sys\nprint('begin', flush=True)\ntime.sleep(4)\nprint('end', flush=True)\nsys.exit(3)"
    )
    (tmp_path / "program.py").write_text(program)
    text, code = on_a_terminal([sys.executable, "-m", "hotspan", "run", "program.py"], tmp_path)
    assert code == 3
    pattern = r"\r\x1b\[Khotspan: (\d+) s, 1 process, [\d.]+ million events, recording costs [\d.]+ %, \d+ MB in use\r"
    seconds = [int(found) for found in re.findall(pattern, text)]
    assert seconds == sorted(seconds)
    assert seconds[0] >= 2, "a short program is never disturbed"
    before, after = text.rsplit("MB in use\r", 1)
    assert "\x1b[K" in after, "the line is taken away again"
    assert "Where the time went" in after
    assert "hotspan:" not in before.split("begin")[0]


def test_no_line_without_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import time; time.sleep(2.5)")
    command = [sys.executable, "-m", "hotspan", "run", "program.py"]
    seen = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert "million events" not in seen.stderr
