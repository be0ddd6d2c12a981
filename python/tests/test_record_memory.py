"""Memory of a command and its children over time: real processes of known size."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import xml.etree.ElementTree
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


@pytest.mark.parametrize("ending", ["dat", "svg", "hotspan"])
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


def test_mprof_reads_the_memory_of_a_whole_program(tmp_path: Path, hotspan_command: Command) -> None:
    pytest.importorskip("memory_profiler")
    mprof = Path(sys.executable).with_name("mprof")
    program = tmp_path / "program.py"
    program.write_text("import time\nheld = bytearray(80 << 20)\ntime.sleep(1.5)\n")
    hotspan_command("run", "-o", tmp_path / "run.hotspan", program, cwd=tmp_path)
    exported = hotspan_command("export", tmp_path / "run.hotspan", "--to", "mprof", "-o", tmp_path / "m.dat")
    assert exported.returncode == 0, exported.stderr
    assert (tmp_path / "m.dat").read_text().splitlines()[0] == f"CMDLINE {program}"
    peak = subprocess.run([mprof, "peak", "m.dat"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert 80 < float(peak.stdout.split()[1]) < 200


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


def test_a_plot_is_svg(tmp_path: Path, hotspan_command: Command) -> None:
    refused = hotspan_command("record", "--memory", "-o", tmp_path / "m.png", "--", "touch", tmp_path / "ran")
    assert refused.returncode == 2
    assert ".svg" in refused.stderr
    assert list(tmp_path.iterdir()) == [], "the command was not run"


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
