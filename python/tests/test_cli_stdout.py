"""``-o -`` is standard output, for every command that writes a file; what must be a file is refused by name."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hotspan
from conftest import complete

BUSY = "import time; end = time.time() + 0.4\nwhile time.time() < end: pass"


def call(folder: Path, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    """Runs the command in a folder, as a shell with a pipe behind it would."""
    words = [sys.executable, "-m", "hotspan", *map(str, arguments)]
    return subprocess.run(words, cwd=folder, capture_output=True)


@pytest.fixture
def trace(write_trace: Callable[..., Path]) -> Path:
    return write_trace([complete("aten::mm", 0, 5), complete("aten::relu ü", 6, 5)])


@pytest.mark.parametrize("to", ["chrome", "speedscope", "collapsed", "flamegraph", "arrow"])
def test_an_export_goes_to_standard_output(to: str, trace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    file = tmp_path / "file"
    assert call(tmp_path, "export", trace, "--to", to, "-o", file).returncode == 0
    piped = call(folder, "export", trace, "--to", to, "-o", "-")
    assert (piped.returncode, piped.stderr) == (0, b"")
    assert piped.stdout == file.read_bytes()
    assert list(folder.iterdir()) == []


def test_whoever_reads_may_stop_early(trace: Path, tmp_path: Path) -> None:
    command = f"{sys.executable} -m hotspan export {trace} --to chrome -o - | head -c 1"
    piped = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (piped.returncode, piped.stdout, piped.stderr) == (0, "{", "")


def test_the_memory_of_a_run_names_its_command(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(BUSY)
    assert call(tmp_path, "run", "-o", "run.hotspan", "program.py", "--fast").returncode == 0
    piped = call(tmp_path, "export", "run.hotspan", "--to", "mprof", "-o", "-")
    assert piped.stdout.splitlines()[0] == b"CMDLINE program.py --fast"


def test_the_dashboard_goes_to_standard_output(trace: Path, tmp_path: Path) -> None:
    page = call(tmp_path, "report", trace, "--html", "-")
    assert (page.returncode, page.stderr) == (0, b"")
    assert page.stdout.lstrip().lower().startswith(b"<!doctype html>")
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize(
    ("kind", "begins"),
    [("flamegraph", b"<"), ("collapsed", b""), ("speedscope", b"{"), ("chrome", b"{"), ("tree", b"")],
)
def test_samples_go_to_standard_output(kind: str, begins: bytes, tmp_path: Path) -> None:
    recorded = call(tmp_path, "record", "-f", kind, "-o", "-", "--", sys.executable, "-c", BUSY)
    assert recorded.returncode == 0, recorded.stderr
    assert recorded.stdout.startswith(begins)
    assert b"<module>" in recorded.stdout.replace(b"&lt;", b"<").replace(b"&gt;", b">")
    if begins == b"{":
        json.loads(recorded.stdout)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("record", "-f", "hotspan", "-o", "-", "--", sys.executable, "-c", "pass"),
        ("record", "--memory", "-o", "-", "--", sys.executable, "-c", "pass"),
        ("run", "-o", "-", "-c", "pass"),
        ("run", "--flamegraph", "-", "-c", "pass"),
        ("export", "trace.hotspan", "--to", "hotspan", "-o", "-"),
    ],
    ids=lambda arguments: " ".join(arguments[:3]),
)
def test_what_must_be_a_file_is_refused(arguments: tuple[str, ...], trace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    hotspan.open(trace).save(folder / "trace.hotspan")
    refused = call(folder, *arguments)
    assert refused.returncode == 2
    assert refused.stdout == b""
    error, hint = refused.stderr.decode().splitlines()
    assert error.endswith("cannot be written to standard output")
    assert hint.startswith("hint: name a file")
    assert [path.name for path in folder.iterdir()] == ["trace.hotspan"]
