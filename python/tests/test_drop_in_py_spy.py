"""py-spy's command lines, typed as they are for py-spy: the same files, the same JSON, the same ends."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sampled_programs import running

# Stands in functions of a package and of a script, with variables of each kind; a child does the same.
STANDING = """
import os, subprocess, sys, threading, time
sys.path.insert(0, sys.argv[1])
from package.inner.module import stands

def begins(depth, number=7, *, flag=True):
    text = "t" * 200
    try:
        import numpy
        scalars = [numpy.float32(1.5), numpy.int8(-3), numpy.uint16(65535), numpy.bool_(True), numpy.float64(0.25)]
    except ImportError:
        scalars = []
    (single, byte, short, truth, double) = scalars or [None] * 5
    print("ready", flush=True)
    stands()

if len(sys.argv) > 2:
    child = subprocess.Popen([sys.executable, sys.argv[2], sys.argv[1]], stdout=subprocess.PIPE)
    child.stdout.readline()
begins(3)
"""
MODULE = """
import time

def stands():
    time.sleep(600)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    inner = tmp_path / "package" / "inner"
    inner.mkdir(parents=True)
    for folder in (inner, inner.parent):
        (folder / "__init__.py").write_text("")
    (inner / "module.py").write_text(MODULE)
    script = tmp_path / "script.py"
    script.write_text(STANDING)
    return script


@pytest.fixture
def standing(program: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(program), str(program.parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def py_spy(*arguments: str) -> str:
    command = Path(sys.executable).with_name("py-spy")
    if not command.exists():
        pytest.skip("py-spy is not installed")
    done = subprocess.run(
        [str(command), *arguments, "--nonblocking"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"py-spy cannot: {done.stderr.splitlines()[:1]}")
    return done.stdout


def stacks(path: Path) -> set[str]:
    return {line.rsplit(" ", 1)[0] for line in path.read_text().splitlines()}


@pytest.mark.parametrize(
    "options", [[], ["-t"], ["-F"], ["--nolineno"], ["--full-filenames"], ["-s"], ["-s", "-t", "-F"]]
)
def test_raw_stacks_are_py_spys(
    options: list[str], standing: subprocess.Popen[str], tmp_path: Path, hotspan_command: Any
) -> None:
    ours, theirs = tmp_path / "ours.txt", tmp_path / "theirs.txt"
    command = ["record", "-i", "-d", "1", "-f", "raw", *options, "--pid", str(standing.pid), "-o"]
    py_spy(*command, str(theirs))
    told = hotspan_command(*command, ours)
    assert told.returncode == 0, told.stderr
    assert len(stacks(ours)) == 1
    # py-spy learns the name of a thread late, and then has two stacks.
    assert stacks(ours) <= stacks(theirs) | {
        stack.replace(")", "): MainThread", 1) for stack in stacks(theirs)
    }


def test_json_of_dump_is_py_spys(standing: subprocess.Popen[str], hotspan_command: Any) -> None:
    command = ["dump", "--locals", "--json", "--pid", hex(standing.pid)]
    told = hotspan_command(*command)
    assert told.returncode == 0, told.stderr
    ours, theirs = json.loads(told.stdout), json.loads(py_spy(*command))

    def comparable(threads: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for thread in threads:
            # Known to differ: which frames C called is not told; texts of values are our own.
            for frame in thread["frames"]:
                assert isinstance(frame.pop("is_entry"), bool)
                assert isinstance(frame.pop("is_shim_entry"), bool)
                for variable in frame["locals"]:
                    assert isinstance(variable.pop("repr"), str)
        return threads

    assert comparable(ours) == comparable(theirs)


def test_values_of_numpy_are_shown_and_more_of_all_when_asked_twice(
    standing: subprocess.Popen[str], hotspan_command: Any
) -> None:
    pytest.importorskip("numpy")
    shown = []
    for flag in ("-l", "-ll"):
        told = hotspan_command("dump", flag, "--json", "-p", str(standing.pid))
        (begins,) = (frame for frame in json.loads(told.stdout)[0]["frames"] if frame["name"] == "begins")
        shown.append({variable["name"]: variable["repr"] for variable in begins["locals"]})
    once, twice = shown
    scalars = {"single": "1.5", "byte": "-3", "short": "65535", "truth": "True", "double": "0.25"}
    assert scalars.items() <= once.items()
    assert once["text"] == '"' + "t" * 120 + '"…'
    assert twice["text"] == '"' + "t" * 200 + '"'


def test_dump_of_children(program: Path, hotspan_command: Any) -> None:
    command = [sys.executable, str(program), str(program.parent), str(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            pids = {}
            for flags in ([], ["-s"]):
                told = hotspan_command("dump", "--json", *flags, "--pid", str(process.pid))
                pids[len(flags)] = [thread["pid"] for thread in json.loads(told.stdout)]
            text = hotspan_command("dump", "-s", "--full-filenames", "--pid", str(process.pid)).stdout
        finally:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            process.kill()
            for child in children:
                subprocess.run(["kill", child], check=True)
    assert pids[0] == [process.pid]
    assert pids[1] == [process.pid, int(children[0])]
    assert text.count("Process ") == 2


ENDLESS = """
import os, signal, sys, time
if sys.argv[2:]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "w").write(str(os.getpid()))
while True:
    time.sleep(0.01)
"""


@pytest.mark.parametrize("native", [[], ["--native"]])
@pytest.mark.parametrize("deaf", [[], ["deaf"]])
def test_a_duration_ends_the_program_too(
    native: list[str], deaf: list[str], tmp_path: Path, hotspan_command: Any
) -> None:
    script, note, output = tmp_path / "endless.py", tmp_path / "pid", tmp_path / "profile.txt"
    script.write_text(ENDLESS)
    told = hotspan_command(
        "record",
        *native,
        "-i",
        "-d",
        "1",
        "-f",
        "raw",
        "-o",
        output,
        "--",
        sys.executable,
        script,
        note,
        *deaf,
    )
    assert told.returncode == 0, told.stderr
    assert not Path(f"/proc/{note.read_text()}").exists()
    assert any("endless.py" in stack for stack in stacks(output))


def test_a_program_goes_on_where_it_is_told_to(tmp_path: Path, hotspan_command: Any) -> None:
    output = tmp_path / "profile.txt"
    code = "import time; time.sleep(1); print('finished'); raise SystemExit(3)"
    told = hotspan_command(
        "record", "-d", "0.2", "--keep-running", "-o", output, "--", sys.executable, "-c", code
    )
    assert (told.stdout, told.returncode) == ("finished\n", 3), told.stderr


def test_a_command_needs_no_dashes_and_options_may_follow_it(tmp_path: Path, hotspan_command: Any) -> None:
    script, output = tmp_path / "script.py", tmp_path / "profile.txt"
    script.write_text("import sys; print(sys.argv[1:])")
    told = hotspan_command(
        "record", "-d", "unlimited", sys.executable, script, "word", "-f", "RAW", "-o", output
    )
    assert (told.returncode, told.stdout) == (0, "['word']\n"), told.stderr
    assert output.exists()
    assert hotspan_command("record", "-d", "never", sys.executable, script).returncode == 2


def test_speedscope_files_have_every_sample(
    standing: subprocess.Popen[str], tmp_path: Path, hotspan_command: Any
) -> None:
    output = tmp_path / "profile.json"
    options = ["-i", "-r", "50", "-d", "1", "-f", "speedscope", "--capture", "--hideprogress"]
    told = hotspan_command("record", *options, "-o", output, "--pid", str(standing.pid))
    assert told.returncode == 0, told.stderr
    content = json.loads(output.read_text())
    assert all(set(frame) == {"name", "file", "line", "col"} for frame in content["shared"]["frames"])
    (profile,) = content["profiles"]
    assert f"({len(profile['samples'])} samples)" in told.stderr
    assert len(profile["samples"]) == len(profile["weights"]) > 10
    assert profile["name"].endswith('"MainThread"')


def test_native_frames_of_a_process(
    standing: subprocess.Popen[str], tmp_path: Path, hotspan_command: Any
) -> None:
    process = str(standing.pid)
    output = tmp_path / "profile.txt"
    for command in (
        ["record", "-n", "-d", "0.3", "-i", "-o", str(output)],
        ["dump", "-n"],
        ["top", "-n", "-i", "--once", "-d", "0.3"],
    ):
        told = hotspan_command(*command, "--nonblocking", "--pid", process)
        assert told.returncode == 0, told.stderr
        shown = output.read_text() if command[0] == "record" else told.stdout
        assert "[kernel]" in shown, shown
    assert len(stacks(output)) == 1


SPINS = """
import sys

def spins():
    while True:
        sum(range(100))

print("ready", flush=True)
spins()
"""


def test_native_samples_of_the_lock_alone(tmp_path: Path, hotspan_command: Any) -> None:
    output = tmp_path / "profile.txt"
    told = hotspan_command(
        "record", "-n", "-g", "-d", "1", "-f", "raw", "-o", output, "--", sys.executable, "-c", SPINS
    )
    assert told.returncode == 0, told.stderr
    assert any("spins (<string>" in stack for stack in stacks(output))


def test_top_starts_a_program_and_ends_it(tmp_path: Path, hotspan_command: Any) -> None:
    script, note = tmp_path / "endless.py", tmp_path / "pid"
    script.write_text(ENDLESS)
    told = hotspan_command("top", "--once", "-i", "-d", "1", "--json", "--", sys.executable, script, note)
    assert told.returncode == 0, told.stderr
    process = int(note.read_text())
    assert json.loads(told.stdout)["pid"] == process
    assert not Path(f"/proc/{process}").exists()
    script.write_text("import time; time.sleep(0.3); raise SystemExit('out of paper')")
    told = hotspan_command("top", "--once", "-d", "2", "--", sys.executable, script)
    assert "out of paper" in told.stderr


def test_numbers_of_processes_may_be_hexadecimal(hotspan_command: Any, tmp_path: Path) -> None:
    with running(SPINS) as process:
        for command in (
            ["dump"],
            ["top", "--once", "-d", "0.2"],
            ["record", "-d", "0.2", "-o", str(tmp_path / "x.txt")],
        ):
            told = hotspan_command(*command, "-p", hex(process.pid))
            assert told.returncode == 0, told.stderr
    assert hotspan_command("dump", "-p", "twelve").returncode == 2
