"""What importing hotspan loads, and what ``hotspan run`` loads into the programs it records: no more than is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Prints the modules that are loaded when the program begins, and after what it does.
TELL = "import sys; print('MODULES', *sorted(sys.modules))\n"

# What records a whole program from inside, whatever the program does.
AGENT = {"hotspan", "_agent", "_agent_imports", "_agent_process"}


def modules(text: str) -> set[str]:
    """What the last line of `TELL` says."""
    (*_, told) = [line for line in text.splitlines() if line.startswith("MODULES ")]
    return set(told.split()[1:])


def loaded_by(code: str) -> set[str]:
    """The modules that some code loads beyond those of a bare interpreter."""
    ran = [
        subprocess.run(
            [sys.executable, "-c", program + "\n" + TELL], capture_output=True, text=True, check=True
        )
        for program in ("", code)
    ]
    bare, whole = (modules(one.stdout) for one in ran)
    return whole - bare


def recorded(folder: Path, program: str, *options: str) -> set[str]:
    """The modules of a program under `hotspan run`."""
    (folder / "program.py").write_text(program + "\n" + TELL)
    command = [sys.executable, "-m", "hotspan", "run", *options, "program.py"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    return modules(ran.stdout)


def ours(names: set[str]) -> set[str]:
    return {name.removeprefix("hotspan.") for name in names if name.partition(".")[0] == "hotspan"}


def test_the_package_alone_loads_nothing() -> None:
    assert loaded_by("import hotspan") == {"hotspan"}


def test_opening_traces_loads_neither_torch_nor_numpy_nor_the_recorders() -> None:
    loaded = loaded_by("import hotspan; hotspan.open")
    heavy = {"torch", "numpy", "pyarrow", "asyncio", "multiprocessing", "subprocess", "dataclasses", "json"}
    assert not loaded & heavy
    assert ours(loaded) == {"hotspan", "_core", "_notices", "event_list", "rows", "trace"}


def test_submodules_are_attributes() -> None:
    told = subprocess.run(
        [sys.executable, "-c", "import hotspan; print(hotspan.lines.profile, hotspan.memory.profile)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "ExplicitProfiler" in told.stdout


@pytest.mark.parametrize(("old", "module"), [("profile", "lines"), ("profile_memory", "memory")])
@pytest.mark.parametrize("use", ["hotspan.{old}\nhotspan.{old}", "from hotspan import {old}"])
def test_decorators_have_moved(use: str, old: str, module: str) -> None:
    program = f"import hotspan, hotspan.{module}\n{use.format(old=old)}\nfrom hotspan import {old} as again\n"
    check = f"assert hotspan.{module}.profile is again"
    told = subprocess.run(
        [sys.executable, "-W", "always", "-c", program + check], capture_output=True, text=True, check=True
    )
    # Once, and where the old name was used.
    expected = f"<string>:2: DeprecationWarning: hotspan.{old} is deprecated: use hotspan.{module}.profile\n"
    assert told.stderr == expected


def test_a_recorded_program_gets_the_agent_and_nothing_else(tmp_path: Path) -> None:
    loaded = recorded(tmp_path, "", "--rate", "100")
    assert ours(loaded) == {*AGENT, "_core"}
    (tmp_path / "tell.py").write_text(TELL)
    plain = subprocess.run(
        [sys.executable, "tell.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    added = {name for name in loaded - modules(plain.stdout) if not name.startswith("hotspan")}
    assert added <= {"__future__", "_operator", "atexit", "gc", "operator", "sitecustomize"}


def test_lines_and_functions_need_no_profiler(tmp_path: Path) -> None:
    program = "def work():\n    return 1\nwork()"
    loaded = recorded(tmp_path, program, "--functions", "--lines", "program.py")
    assert ours(loaded) == {*AGENT, "_agent_functions", "_code", "_core", "_statements"}


def test_torch_is_recorded_without_the_profiler(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    # The agent does more at the end of the program; the list is written after that.
    program = "import sys, torch; torch.ones(3).add(1); sys.modules['hotspan._agent'].finish()"
    loaded = recorded(tmp_path, program, "--stack")
    loaded -= {"hotspan._agent_children"}  # torch may start processes when it is imported
    assert ours(loaded) == {
        *AGENT,
        "_agent_torch",
        "_beside_torch",
        "_core",
        "_notices",
        "_stacks",
        "_torch_switches",
    }
