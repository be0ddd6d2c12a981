"""``hotspan run`` on a terminal: what a person sees is what the program writes, and then the report."""

from __future__ import annotations

import os
import pty
import select
import sys
from pathlib import Path

#: Asks, draws a bar in one line as tqdm does, and sets the size of nothing; long enough for anyone to interfere.
PROGRAM = """
import sys, time
name = input("What is your name? ")
for part in range(6):
    print(f"\\rstep {part}", end="", file=sys.stderr, flush=True)
    time.sleep(0.5)
print("\\nHello,", name, sys.stdin.isatty(), sys.stdout.isatty(), sys.stderr.isatty())
sys.exit(3)
"""


def on_a_terminal(command: list[str], folder: Path, typed: bytes) -> tuple[str, int]:
    """What a person would have seen, and the exit code; they type after the question and a long thought."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execv(command[0], command)
    seen = b""
    while True:
        # Nothing may come while the program waits for an answer.
        ready = select.select([terminal], [], [], 3 if typed and b"name?" in seen else 60)[0]
        if not ready:
            assert typed, seen
            os.write(terminal, typed)
            typed = b""
            continue
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        assert not (typed and b"name?" in seen), f"{part!r} came while the program was waiting for an answer"
        seen += part
    os.close(terminal)
    return seen.decode(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_the_terminal_is_the_program_s_own(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    bare, code = on_a_terminal([sys.executable, "program.py"], tmp_path, b"Ada\n")
    assert code == 3
    assert "Hello, Ada True True True" in bare
    command = [sys.executable, "-m", "hotspan", "run", "program.py"]
    text, code = on_a_terminal(command, tmp_path, b"Ada\n")
    assert code == 3
    assert text.startswith(bare), "the program's own output comes first, unchanged, byte for byte"
    report = text.removeprefix(bare)
    assert "Where the time went" in report
    assert "\r\x1b[K" not in text, "nothing is drawn over"
    assert "\x1b]" not in text, "the title of the window is not ours"
