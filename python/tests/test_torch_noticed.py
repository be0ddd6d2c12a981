"""``hotspan run`` notices torch whichever way it comes into the program; where it does not, the report says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import hotspan
from test_run_deaths import report
from test_run_operators import counts, run

pytest.importorskip("torch")

MULTIPLY = """
def multiply(count):
    for _ in range(count):
        torch.ones(8, 8) @ torch.ones(8, 8)
"""

# Each way leaves `torch` in the program's names. What follows is recorded from the first operator.
WAYS = {
    "looked for before": """
        import importlib.util
        assert importlib.util.find_spec("torch") and importlib.util.find_spec("torch")
        import torch
    """,
    "lazy": """
        import importlib.util, sys
        spec = importlib.util.find_spec("torch")
        spec.loader = importlib.util.LazyLoader(spec.loader)
        torch = importlib.util.module_from_spec(spec)
        sys.modules["torch"] = torch
        spec.loader.exec_module(torch)
        assert not [name for name in sys.modules if name.startswith("torch.")], "nothing has loaded it"
    """,
    "by another thread": """
        import threading
        def load():
            import torch
        thread = threading.Thread(target=load)
        thread.start()
        thread.join()
        import torch
    """,
    "at the second attempt": """
        import os, sys
        os.mkdir("broken")
        with open("broken/torch.py", "w") as file:
            file.write("1 / 0")
        sys.path.insert(0, "broken")
        try:
            import torch
        except ZeroDivisionError:
            del sys.path[0]
        import torch
    """,
    "by a part of it": "import torch._C\nimport torch",
}

# Past the import hook: recorded from soon after.
DETOURS = {
    "another finder": """
        import sys
        from importlib.machinery import PathFinder
        class Finder:
            def find_spec(self, name, path, target=None):
                return PathFinder.find_spec(name, path) if name.partition(".")[0] == "torch" else None
        sys.meta_path.insert(0, Finder())
        import torch
    """,
    "by hand": """
        import importlib.util, sys
        from importlib.machinery import PathFinder
        spec = PathFinder.find_spec("torch")
        torch = importlib.util.module_from_spec(spec)
        sys.modules["torch"] = torch
        spec.loader.exec_module(torch)
    """,
}

WAIT_FOR_TORCH = """
import sys, time
while sys.modules["hotspan._agent"]._torch is None:
    time.sleep(0.01)
"""


def unindented(code: str) -> str:
    """Return code as it would stand at the top of a file."""
    lines = code.strip("\n").splitlines()
    margin = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[margin:] for line in lines) + "\n"


def missing(folder: Path) -> list[str]:
    found = report(folder, "program.hotspan")["missing"]
    assert isinstance(found, list)
    # The programs here run without samples.
    return [text for text in found if "no samples" not in text]


@pytest.mark.parametrize("way", WAYS)
def test_every_operator_is_there(tmp_path: Path, way: str) -> None:
    seen = run(tmp_path, unindented(WAYS[way]) + MULTIPLY + "multiply(300)", "--rate", "0")
    assert seen.returncode == 0, seen.stderr
    assert counts(tmp_path / "program.hotspan")["aten::mm"] == 300
    assert not [text for text in missing(tmp_path) if "torch" in text]


@pytest.mark.parametrize("way", DETOURS)
def test_a_detour_is_noticed_soon_after(tmp_path: Path, way: str) -> None:
    program = unindented(DETOURS[way]) + WAIT_FOR_TORCH + MULTIPLY + "multiply(300)"
    seen = run(tmp_path, program, "--rate", "0")
    assert seen.returncode == 0, seen.stderr
    assert counts(tmp_path / "program.hotspan")["aten::mm"] == 300
    (told,) = [text for text in missing(tmp_path) if "torch" in text]
    assert "the operators of its first moments are not recorded" in told


def test_what_is_done_to_the_module_later_changes_nothing(tmp_path: Path) -> None:
    program = """
        import importlib, sys
        import torch
        for _ in range(100): torch.ones(8, 8) @ torch.ones(8, 8)
        try:
            importlib.reload(torch)
        except Exception as error:
            print("reload:", type(error).__name__)
        for _ in range(100): torch.ones(8, 8) @ torch.ones(8, 8)
        kept = sys.modules.pop("torch")
        try:
            import torch
        except Exception as error:
            print("import:", type(error).__name__)
        sys.modules["torch"] = torch = kept
        for _ in range(100): torch.ones(8, 8) @ torch.ones(8, 8)
    """
    seen = run(tmp_path, program, "--rate", "0")
    assert seen.returncode == 0, seen.stderr
    assert counts(tmp_path / "program.hotspan")["aten::mm"] == 300
    bare = hotspan.open(tmp_path / "program.hotspan").metadata["hotspan.operators"]
    assert bare == {"recorded": True, "is_late": False}


def test_a_failed_import_looks_as_it_would_without_us(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("1 / 0")
    seen = run(tmp_path, "import torch", "--rate", "0")
    bare = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True)
    assert seen.returncode == bare.returncode == 1
    assert seen.stderr.startswith(bare.stderr)


def test_another_module_of_that_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import sys\nsys.modules[__name__].answer = 42\n")
    seen = run(tmp_path, "import torch\nprint(torch.answer)", "--rate", "0")
    assert (seen.returncode, seen.stdout) == (0, "42\n"), seen.stderr
    assert "hotspan:" not in seen.stderr
    assert not missing(tmp_path)


def test_operators_that_cannot_be_recorded_are_told(tmp_path: Path) -> None:
    """No hooks came with hotspan, none are in the cache, and no compiler makes them."""
    options = ["--rate", "0", "--python", sys.executable]
    (tmp_path / "hooks").mkdir()
    environment = {"PATH": "/nonexistent", "CXX": "", "HOTSPAN_CACHE_DIR": str(tmp_path / "cache")}
    environment["HOTSPAN_HOOKS_DIR"] = str(tmp_path / "hooks")
    seen = run(tmp_path, "import torch; torch.ones(2) + 1", *options, **environment)
    assert seen.returncode == 0, seen.stderr
    assert "aten::add" not in counts(tmp_path / "program.hotspan")
    (told,) = [text for text in missing(tmp_path) if "torch operators" in text]
    assert "are not recorded: " in told
    assert "program.py" in told


def test_finders_are_as_they_were(tmp_path: Path) -> None:
    """Nothing of ours is left in the way of imports, once there is nothing to wait for."""
    program = "import subprocess, sys, torch\nprint(*[type(finder).__module__ for finder in sys.meta_path])"
    seen = run(tmp_path, program, "--rate", "0")
    assert seen.returncode == 0, seen.stderr
    assert "hotspan" not in seen.stdout
