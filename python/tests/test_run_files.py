"""``hotspan run`` writes one file, under a name that is nobody else's; where it cannot, the program does not start."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hotspan

LAUNCHED = {
    "train": ["train.py"],
    "pkg.train": ["-m", "pkg.train"],
    "pkg": ["pkg"],
    "command": ["-c", "print(1)"],
    "stdin": ["-"],
    "sh": ["sh", "-c", "exec python -c 'print(1)'"],
}


def run(folder: Path | str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hotspan", "run", *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        input="print(1)",
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **more},
    )


def make_programs(folder: Path) -> None:
    (folder / "pkg").mkdir()
    for name in ("train.py", "pkg/__init__.py", "pkg/__main__.py", "pkg/train.py"):
        (folder / name).write_text("" if "init" in name else "print(1)")


@pytest.mark.parametrize("name", LAUNCHED)
def test_one_file_named_after_the_program(name: str, tmp_path: Path) -> None:
    make_programs(tmp_path)
    before = set(tmp_path.rglob("*"))
    seen = run(tmp_path, *LAUNCHED[name], PYTHONDONTWRITEBYTECODE="1")
    assert (seen.returncode, seen.stdout) == (0, "1\n")
    assert set(tmp_path.rglob("*")) - before == {tmp_path / f"{name}.hotspan"}
    assert seen.stderr.endswith(f"The recording is {name}.hotspan\n")


def test_nothing_of_the_program_or_of_an_earlier_run_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "plot.py").write_text("open('plot.svg', 'w').write('mine')")
    for name in ("plot.hotspan", "plot-2.hotspan"):
        seen = run(tmp_path, "plot.py")
        assert seen.stderr.endswith(f"The recording is {name}\n")
    assert (tmp_path / "plot.svg").read_text() == "mine"
    first = (tmp_path / "plot.hotspan").read_bytes()
    # A folder that a killed run left behind is evidence; its name is not used again.
    (tmp_path / "plot-3.hotspan.spool").mkdir()
    assert run(tmp_path, "plot.py").stderr.endswith("The recording is plot-4.hotspan\n")
    assert (tmp_path / "plot.hotspan").read_bytes() == first
    # What was asked for by name is replaced, as other tools do.
    assert run(tmp_path, "-o", "plot.hotspan", "plot.py").returncode == 0
    assert (tmp_path / "plot.hotspan").read_bytes() != first
    assert len(list(tmp_path.glob("*.hotspan"))) == 3


def test_a_recording_that_the_program_itself_writes_is_kept(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("open('train.hotspan', 'w').write('mine')")
    seen = run(tmp_path, "train.py")
    assert seen.stderr.endswith("The recording is train-2.hotspan\n")
    assert (tmp_path / "train.hotspan").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "train-2.hotspan",
        "train.hotspan",
        "train.py",
    ]


def test_runs_at_once_have_files_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys; print(sys.stdin.read())")
    command = [sys.executable, "-m", "hotspan", "run", "train.py"]
    runs = [
        subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    # None gets what it reads before the last has started: they all run at once.
    for _ in range(1200):
        if len(list(tmp_path.glob("*.spool*/run.json"))) == 3:
            break
        time.sleep(0.05)
    said = {process.communicate("x")[1].splitlines()[-1] for process in runs}
    names = {"train.hotspan", "train-2.hotspan", "train-3.hotspan"}
    assert said == {f"The recording is {name}" for name in names}
    processes = {hotspan.open(tmp_path / name).metadata["hotspan.run"]["pid"] for name in names}
    assert len(processes) == 3


def test_a_flame_graph_is_drawn_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("sum(range(10 ** 7))")
    seen = run(tmp_path, "--flamegraph", "picture.svg", "train.py")
    assert seen.stderr.endswith("The flame graph is picture.svg\n")
    assert "<svg" in (tmp_path / "picture.svg").read_text()


def test_a_folder_that_cannot_be_written_is_said_before_the_program_starts(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('ran')")
    # Nobody, not even the administrator, can make files in there.
    for folder, arguments in (
        ("/proc", []),
        (tmp_path, ["-o", "no/folder/x.hotspan"]),
        (tmp_path, ["-o", "."]),
    ):
        seen = run(folder, *arguments, str(tmp_path / "train.py"))
        assert (seen.returncode, seen.stdout) == (2, "")
        assert "error: " in seen.stderr
        assert "-o FILE" in seen.stderr or "is a folder" in seen.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_a_recording_that_was_not_saved_is_not_claimed(tmp_path: Path) -> None:
    program = (
        "import pathlib; pathlib.Path('out.hotspan').mkdir(); pathlib.Path('out.hotspan/x').touch(); exit(5)"
    )
    (tmp_path / "train.py").write_text(program)
    seen = run(tmp_path, "-o", "out.hotspan", "train.py")
    assert seen.returncode == 5
    assert "The recording is" not in seen.stderr
    assert "error: the recording was not saved" in seen.stderr
    (spool,) = tmp_path.glob("*.spool")
    assert f"`hotspan report {spool}`" in seen.stderr
    command = [sys.executable, "-m", "hotspan", "report", str(spool)]
    again = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "with exit code 5" in again.stdout
