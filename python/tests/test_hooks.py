"""Hooks that come with hotspan: chosen for the right torch, refused for others, and enough on a bare machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("torch")

import hotspan
from carried_hooks import TORCH, BareMachine, copy_of_torch, make
from hotspan import _core

# The systems of manylinux_2_28: newer symbols than theirs would keep the hooks from being loaded there.
NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}

PROGRAM = textwrap.dedent(
    """
    import json, sys
    import torch

    def work():
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(20):
            optimizer.zero_grad()
            model(torch.ones(4, 8)).sum().backward()
            optimizer.step()

    if "--count" in sys.argv:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            work()
        print(json.dumps({row.key: row.count for row in profile.key_averages() if row.key.startswith("aten::")}))
    else:
        work()
    """
)


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not any(shutil.which(name) for name in (os.environ.get("CXX", "g++"), "c++", "clang++")):
        pytest.skip("needs a C++ compiler, to make what then needs none")
    return make(tmp_path_factory.mktemp("hooks"))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    return path


def operators(path: Path) -> Counter[str]:
    """Count the operators of a recording; an operator that calls its own name counts once, as in torch's table."""
    trace = hotspan.open(path)
    return Counter({row.key: row.count for row in trace.key_averages() if row.key.startswith("aten::")})


def test_they_run_on_older_systems(hooks: Path) -> None:
    if shutil.which("objdump") is None:
        pytest.skip("needs objdump")
    text = subprocess.run(["objdump", "-T", hooks], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"\*UND\*.*\((GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+)\)", text)
    assert len(needed) > 10, text
    for library, version in needed:
        assert tuple(map(int, version.split("."))) <= NEWEST[library], (library, version)


def test_they_are_found_for_the_torch_they_were_made_for(
    hooks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOTSPAN_HOOKS_DIR", str(hooks.parent))
    found, why_not = _core.find_torch_hooks(str(TORCH))
    assert (Path(found[0][0]), found[0][1], why_not) == (hooks, "came with hotspan", None)


def test_headers_decide(hooks: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A torch of the same version whose headers say something else is another torch."""
    monkeypatch.setenv("HOTSPAN_HOOKS_DIR", str(hooks.parent))
    monkeypatch.setenv("HOTSPAN_CACHE_DIR", str(tmp_path / "cache"))
    torch = copy_of_torch(hooks, tmp_path / "torch")
    assert Path(_core.find_torch_hooks(str(torch))[0][0][0]) == hooks
    header = torch / "include" / "ATen" / "record_function.h"
    header.write_text(header.read_text() + "\n")
    found, why_not = _core.find_torch_hooks(str(torch))
    assert found == []
    assert "are not those of the release" in str(why_not)
    header.unlink()
    with pytest.raises(_core.CollectError, match="is missing"):
        _core.find_torch_hooks(str(torch))


def test_hooks_of_another_torch_or_hotspan_are_left_alone(
    hooks: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOTSPAN_HOOKS_DIR", str(tmp_path))
    monkeypatch.setenv("HOTSPAN_CACHE_DIR", str(tmp_path / "cache"))
    assert "were made" in str(_core.find_torch_hooks(str(TORCH))[1])
    for file in (hooks, hooks.with_suffix(".headers")):
        shutil.copy(file, tmp_path)
    assert _core.find_torch_hooks(str(TORCH))[1] is None
    listed = tmp_path / hooks.with_suffix(".headers").name
    lines = listed.read_text().splitlines()
    listed.write_text("\n".join([f"{int(lines[0], 16) ^ 1:016x}", *lines[1:]]))
    found, why_not = _core.find_torch_hooks(str(TORCH))
    assert found == []
    assert "of another hotspan" in str(why_not)


def test_hooks_that_cannot_be_loaded_are_passed_over(hooks: Path, tmp_path: Path) -> None:
    """The next ones are taken: here those that this machine compiled."""
    shutil.copy(hooks.with_suffix(".headers"), tmp_path)
    (tmp_path / hooks.name).write_bytes(b"\x7fELF and nothing more")
    code = "import torch; from hotspan import _core; print(*_core.load_torch_hooks(torch.__path__[0]), sep='\\n')"
    environment = {**os.environ, "HOTSPAN_HOOKS_DIR": str(tmp_path)}
    environment.pop("HOTSPAN_CACHE_DIR", None)
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=180, check=True
    )
    path, origin = result.stdout.splitlines()
    assert Path(path).parent != tmp_path
    assert origin.startswith("compiled")


def test_a_machine_without_compiler_network_and_home(hooks: Path, program: Path, tmp_path: Path) -> None:
    """Every operator is recorded, from the hooks that came with hotspan; as many as torch.profiler counts."""
    machine = BareMachine(tmp_path)
    result = machine.run("run", "-o", "train.hotspan", program, HOTSPAN_HOOKS_DIR=str(hooks.parent))
    assert result.returncode == 0, result.stderr
    assert "compiling the hooks" not in result.stderr
    assert "are not recorded" not in result.stderr
    command = [sys.executable, program, "--count"]
    counted = subprocess.run(command, capture_output=True, text=True, check=True, timeout=180).stdout
    assert operators(machine.results / "train.hotspan") == Counter(json.loads(counted))


def test_doctor_on_such_a_machine(hooks: Path, tmp_path: Path) -> None:
    machine = BareMachine(tmp_path)
    result = machine.run("doctor", "--json", HOTSPAN_HOOKS_DIR=str(hooks.parent))
    assert result.returncode == 0, result.stdout + result.stderr
    findings = {finding["name"]: finding["found"] for finding in json.loads(result.stdout)}
    assert findings["torch hooks"] == f"came with hotspan: {hooks}"
    assert findings["C++ compiler"].startswith("none")
