"""``hotspan run`` starts programs in all ways in which people start them, and they see no difference."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import hotspan

#: What a program knows of how it was started.
SELF = "import sys; print(sys.argv, sys.path[0], globals().get('__file__'), __name__, sys.flags.dev_mode); sys.exit(6)"
PYTHON = sys.executable
#: What hotspan is given, and the same without it.
WAYS = {
    "script": (["script.py", "-a"], [PYTHON, "script.py", "-a"]),
    "folder": (["folder", "-a"], [PYTHON, "folder", "-a"]),
    "this folder": ([".", "-a"], [PYTHON, ".", "-a"]),
    "archive": (["archive.pyz", "-a"], [PYTHON, "archive.pyz", "-a"]),
    "zip": (["archive.zip", "-a"], [PYTHON, "archive.zip", "-a"]),
    "module": (["-m", "folder", "-a"], [PYTHON, "-m", "folder", "-a"]),
    "code": (["-c", SELF, "-a"], [PYTHON, "-c", SELF, "-a"]),
    "standard input": (["-", "-a"], [PYTHON, "-", "-a"]),
    "python with options": (
        ["python", "-X", "dev", "-u", "script.py", "-a"],
        [PYTHON, "-X", "dev", "-u", "script.py", "-a"],
    ),
    "python and standard input": (["python", "-", "-a"], [PYTHON, "-", "-a"]),
    "script without ending": (["./plain", "-a"], ["./plain", "-a"]),
    "script that is not executable": (["text", "-a"], [PYTHON, "text", "-a"]),
    "shell": (["sh", "-c", "python script.py -a"], ["sh", "-c", "python script.py -a"]),
    "environment": (["env", "A=1", "python", "script.py"], ["env", "A=1", "python", "script.py"]),
}


def outcome(
    command: list[str], folder: Path, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, input=SELF, capture_output=True, text=True, timeout=120, env=environment
    )


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    for name in ("script.py", "folder/__main__.py", "__main__.py"):
        (tmp_path / name).write_text(SELF)
    for name in ("archive.pyz", "archive.zip"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("__main__.py", SELF)
    for name in ("plain", "text"):
        (tmp_path / name).write_text(f"#!{PYTHON}\n{SELF}")
    (tmp_path / "plain").chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("way", WAYS)
def test_a_program_does_not_see_how_it_was_started(way: str, programs: Path) -> None:
    recorded, bare = WAYS[way]
    expected = outcome(bare, programs)
    assert expected.returncode == 6, expected.stderr
    seen = outcome([PYTHON, "-m", "hotspan", "run", "-o", "x.hotspan", *recorded], programs)
    assert (seen.returncode, seen.stdout) == (6, expected.stdout), seen.stderr
    environment = hotspan.open(programs / "x.hotspan").metadata["hotspan.environment"]
    assert environment["python"] == sys.version.split()[0]


def test_scripts_of_an_environment_that_is_not_activated(tmp_path: Path) -> None:
    bare = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    bare["PATH"] = "/usr/bin:/bin"
    (tmp_path / "test_it.py").write_text("def test_it(): pass")
    seen = outcome([PYTHON, "-m", "hotspan", "run", "pytest", "-q", "test_it.py"], tmp_path, bare)
    assert seen.returncode == 0, seen.stderr
    assert "1 passed" in seen.stdout
    assert (tmp_path / "pytest.hotspan").exists()


def test_what_is_no_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    seen = outcome([PYTHON, "-m", "hotspan", "run", "./empty"], tmp_path)
    assert (seen.returncode, "without __main__.py" in seen.stderr) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]
