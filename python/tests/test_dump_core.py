"""``hotspan dump --core``: the threads of a program that died, from the file the kernel wrote."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from sampled_programs import core_of, each_python


@pytest.mark.parametrize("python", each_python())
def test_the_threads_of_a_dead_program(python: Path, tmp_path: Path, hotspan_command: Any) -> None:
    core = core_of(python, tmp_path)
    told = hotspan_command("dump", "--core", core, "--locals", "--json")
    assert told.returncode == 0, told.stderr
    threads = {thread["thread_name"]: thread for thread in json.loads(told.stdout)}
    assert set(threads) == {"MainThread", "the waiter"}
    dies, module = threads["MainThread"]["frames"]
    assert (dies["name"], dies["line"], module["line"]) == ("dies", 14, 16)
    shown = {variable["name"]: (variable["repr"], variable["arg"]) for variable in dies["locals"]}
    assert shown == {"number": ("3", True), "text": ('"hello"', True)}
    waiting = [frame["name"].rsplit(".", 1)[-1] for frame in threads["the waiter"]["frames"]]
    assert "waits" in waiting
    text = hotspan_command("dump", "-c", core).stdout
    # The kernel keeps the first 80 bytes of the command.
    assert re.match(rf"Process \d+: {re.escape(str(python)[:70])}", text)
    assert f"dies ({tmp_path / 'program.py'}:14)" in text
    # A file that is cut off says so; what is no core file, too.
    with core.open("r+b") as file:
        file.truncate(100_000)
    assert hotspan_command("dump", "-c", core).returncode == 1


def test_what_is_no_core_file_is_refused(tmp_path: Path, hotspan_command: Any) -> None:
    for path in (tmp_path / "nothing", Path(__file__), Path(sys.executable).resolve(), tmp_path):
        told = hotspan_command("dump", "-c", path)
        assert told.returncode == 1, path
        assert "error" in told.stderr
        assert "panicked" not in told.stderr
    assert hotspan_command("dump").returncode == 2
    assert hotspan_command("dump", "-c", "core", "--pid", "1").returncode == 2
