"""Memory of a command and its children over time: real processes of known size."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import xml.etree.ElementTree
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

import hotspan

Command = Callable[..., subprocess.CompletedProcess[str]]

TREE = """\
import subprocess, sys
own = bytearray(30 << 20)
child = subprocess.Popen([sys.executable, "-c", "x = bytearray(60 << 20); import time; time.sleep(0.5)"])
child.wait()
sys.exit(7)
"""


def pixels(path: Path) -> tuple[int, int, list[bytes]]:
    """Width, height and rows of a PNG of three bytes a pixel, whose checksums must be right."""
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(content):
        (length,) = struct.unpack_from(">I", content, at)
        kind, body = content[at + 4 : at + 8], content[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", content, at + 8 + length) == (zlib.crc32(kind + body),)
        chunks[kind] = body
        at += 12 + length
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert rest == [8, 2, 0, 0, 0]
    raw, size = zlib.decompress(chunks[b"IDAT"]), 1 + 3 * width
    assert len(raw) == height * size
    assert {raw[start] for start in range(0, len(raw), size)} == {0}
    return width, height, [raw[start + 1 : start + size] for start in range(0, len(raw), size)]


@pytest.mark.parametrize("ending", ["dat", "svg", "png", "hotspan"])
def test_the_tree_is_followed(ending: str, tmp_path: Path, hotspan_command: Command) -> None:
    path = tmp_path / f"memory.{ending}"
    ended = hotspan_command("record", "--memory", "-T", "0.02", "-o", path, "--", sys.executable, "-c", TREE)
    assert ended.returncode == 7, "the exit code is the command's"
    assert "peak" in ended.stderr
    if ending == "svg":
        root = xml.etree.ElementTree.parse(path).getroot()
        assert root.tag.endswith("svg")
        assert sum(element.tag.endswith("title") for element in root.iter()) == 3, (
            "two processes and their sum"
        )
    elif ending == "png":
        width, height, rows = pixels(path)
        assert (width, height) == (1920, 960)
        seen = {row[at : at + 3] for row in rows for at in range(0, 3 * width, 3)}
        red, blue, orange = b"\xd6\x27\x28", b"\x1f\x77\xb4", b"\xff\x7f\x0e"
        assert seen == {b"\xff\xff\xff", b"\x00\x00\x00", b"\xdd\xdd\xdd", red, blue, orange}
        # The peak, marked by a red dot, is as far up as the scale lets it be, and nothing is drawn over the margins.
        first_red = next(index for index, row in enumerate(rows) if red in row)
        assert 100 < first_red < 200
        assert rows[0] == rows[-1] == b"\xff" * 3 * width
    elif ending == "dat":
        lines = [line.split() for line in path.read_text().splitlines()]
        assert lines[0][0] == "CMDLINE"
        own = [float(words[1]) for words in lines if words[0] == "MEM"]
        child = [float(words[2]) for words in lines if words[0] == "CHLD"]
        assert 30 < max(own) < 60 < max(child) < 100
        assert len({words[1] for words in lines if words[0] == "CHLD"}) == 1
    else:
        trace = hotspan.open(path)
        assert trace.counts["counters"] > 10
        assert trace.losses == {}


def test_mprof_reads_our_file(tmp_path: Path, hotspan_command: Command) -> None:
    pytest.importorskip("memory_profiler")
    mprof = Path(sys.executable).with_name("mprof")
    hotspan_command(
        "record", "--memory", "-T", "0.02", "-o", tmp_path / "m.dat", "--", sys.executable, "-c", TREE
    )
    peak = subprocess.run([mprof, "peak", "m.dat"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert 30 < float(peak.stdout.split()[1]) < 60


def test_children_can_be_left_out(tmp_path: Path, hotspan_command: Command) -> None:
    path = tmp_path / "m.dat"
    hotspan_command(
        "record", "--memory", "-T", "0.02", "--no-children", "-o", path, "--", sys.executable, "-c", TREE
    )
    assert "CHLD" not in path.read_text()


def test_commands_that_cannot_run_or_are_killed(tmp_path: Path, hotspan_command: Command) -> None:
    missing = hotspan_command("record", "--memory", "-o", tmp_path / "m.dat", "--", "no-such-command")
    assert missing.returncode == 127
    assert "no-such-command" in missing.stderr
    killed = hotspan_command("record", "--memory", "-o", tmp_path / "m.dat", "--", "sh", "-c", "kill -9 $$")
    assert killed.returncode == -signal.SIGKILL
    assert hotspan_command("record", "--memory", "-T", "0", "--", "true").returncode == 2
    assert hotspan_command("record", "--memory").returncode == 2


def test_signals_are_handed_on(tmp_path: Path) -> None:
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        "print('ready', flush=True)\ntime.sleep(30)"
    )
    program = Path(sys.executable).with_name("hotspan")
    command = [program, "record", "--memory", "-o", tmp_path / "m.dat", "--", sys.executable, "-c", code]
    process = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(timeout=20) == 5
    assert (tmp_path / "m.dat").exists()
