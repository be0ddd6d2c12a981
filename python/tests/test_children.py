"""Children of a program under ``hotspan run`` that get another environment, or none: recorded, or told of by name."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

import hotspan
from test_run_deaths import report
from test_run_operators import run

CHILD = "import os; print(sorted(set(os.environ) & {'HOME', 'PYTHONPATH'}), flush=True)"


def processes(folder: Path) -> list[str]:
    """The commands of the processes that are recorded."""
    found = hotspan.open(folder / "program.hotspan").metadata["hotspan.processes"]
    return [process["command"] for process in found]


def missing(folder: Path) -> list[str]:
    found = report(folder, "program.hotspan")["missing"]
    assert isinstance(found, list)
    return found


# How a program starts a Python with an environment in which nothing of ours is left.
STARTS = {
    "subprocess, another PYTHONPATH": """
        subprocess.run([sys.executable, "-c", CODE], env=dict(os.environ, PYTHONPATH="src"))
    """,
    "subprocess, a new environment": """
        subprocess.run([sys.executable, "-c", CODE], env={"PATH": os.environ["PATH"]})
    """,
    "subprocess, os.environ was changed": """
        del os.environ["PYTHONPATH"], os.environ["HOTSPAN_RUN"]
        subprocess.run([sys.executable, "-c", CODE])
    """,
    "subprocess, by posix_spawn": """
        subprocess.Popen([sys.executable, "-c", CODE], env={}, close_fds=False).wait()
    """,
    "posix_spawn": """
        os.waitpid(os.posix_spawn(sys.executable, [sys.executable, "-c", CODE], {"HOME": "/"}), 0)
    """,
    "spawnve": """
        os.spawnve(os.P_WAIT, sys.executable, [sys.executable, "-c", CODE], {b"HOME": b"/"})
    """,
    "a script": """
        with open("script", "w") as file:
            file.write(f"#!{sys.executable}\\n{CODE}\\n")
        os.chmod("script", 0o755)
        subprocess.run(["./script", "-I"], env={})
    """,
    "multiprocessing": """
        import multiprocessing
        del os.environ["PYTHONPATH"]
        if __name__ == "__main__":
            process = multiprocessing.get_context("spawn").Process(target=print, args=("child",))
            process.start()
            process.join()
    """,
}


@pytest.mark.parametrize("way", STARTS)
def test_a_child_is_recorded(tmp_path: Path, way: str) -> None:
    program = f"import os, subprocess, sys\nCODE = {CHILD!r}\n" + textwrap.dedent(STARTS[way])
    seen = run(tmp_path, program, "--rate", "0")
    assert seen.returncode == 0, seen.stderr
    assert seen.stdout, "the child ran"
    own, *others = processes(tmp_path)
    assert own.endswith("program.py")
    assert others, "the child is recorded"
    assert not missing(tmp_path)


def test_what_is_no_python_gets_what_it_is_given(tmp_path: Path) -> None:
    program = """
        import os, subprocess
        print(subprocess.run(["env"], env={"PATH": os.environ["PATH"], "A": "1"}, capture_output=True).stdout)
        try:
            subprocess.run(["/nonexistent/python3"], env={})
        except FileNotFoundError as error:
            print(error.filename)
        os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", "echo ${HOTSPAN_RUN-nothing}"], {}), 0)
    """
    seen = run(tmp_path, program, "--rate", "0")
    assert seen.returncode == 0, seen.stderr
    assert "HOTSPAN" not in seen.stdout
    assert "/nonexistent/python3" in seen.stdout
    assert "nothing" in seen.stdout
    assert len(processes(tmp_path)) == 1


def test_who_sets_the_variable_to_nothing_is_left_alone(tmp_path: Path) -> None:
    program = """
        import os, subprocess, sys
        subprocess.run([sys.executable, "-c", "print('ran')"], env=dict(os.environ, HOTSPAN_RUN=""))
    """
    seen = run(tmp_path, program, "--rate", "0")
    assert (seen.returncode, seen.stdout) == (0, "ran\n"), seen.stderr
    assert len(processes(tmp_path)) == 1


def test_children_that_cannot_be_recorded_are_named(tmp_path: Path) -> None:
    program = """
        import os, subprocess, sys
        waits = "import sys; sys.stdin.read()"
        def start(words):
            return subprocess.Popen(words, stdin=subprocess.PIPE)
        shell = f'exec env -i "{sys.executable}" -c "{waits}" cleared'
        children = [start([sys.executable, option, "-c", waits, option[1]]) for option in ("-I", "-E", "-S")]
        children.append(start(["sh", "-c", shell]))
        # Several rounds of the launcher's look.
        import time; time.sleep(2)
        for child in children:
            child.communicate()
    """
    seen = run(tmp_path, program, "--rate", "0")
    assert seen.returncode == 0, seen.stderr
    assert len(processes(tmp_path)) == 1
    (told,) = [text for text in missing(tmp_path) if "samples" not in text]
    assert told.startswith("4 Python processes were not recorded: ")
    for option in ("I", "E", "S"):
        assert f"{Path(sys.executable).name} -{option} -c import sys" in told
        assert f"-{option} makes it ignore PYTHONPATH or sitecustomize" in told
    assert "it was started with another environment" in told
    named = hotspan.open(tmp_path / "program.hotspan").metadata["hotspan.run"]["unrecorded"]["named"]
    assert {row["command"].split()[-1] for row in named} == {"I", "E", "S", "cleared"}
    assert all(row["alive_ns"] > 0 for row in named)
