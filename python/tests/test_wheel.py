"""The wheel on a machine that has nothing but an old Python: it installs, runs programs and says what is missing."""

from __future__ import annotations

import io
import json
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from conftest import REPOSITORY
from interpreters import interpreters

BUILT = REPOSITORY / "build" / "wheels"
# The newest first: what `make wheel` built for others, and what `make test` built for this machine.
WHEELS = sorted(
    [*BUILT.glob("*.whl"), *(REPOSITORY / "build" / "wheels-of-tests").glob("*.whl")],
    key=lambda path: path.stat().st_mtime,
    reverse=True,
)
HERE = [wheel for wheel in WHEELS if wheel.stem.endswith(platform.machine())]
NO_WHEEL = "no wheel is built: make test or make wheel does"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment of the oldest Python with nothing but the wheel; returns its programs' folder."""
    if not HERE:
        pytest.skip(NO_WHEEL)
    # Those without a GIL have a letter, and need another build.
    versions = {
        tuple(map(int, name.split("."))): path for name, path in interpreters().items() if name[-1].isdigit()
    }
    python = versions[min(versions)]
    folder = tmp_path_factory.mktemp("clean")
    clean(python, "-m", "venv", folder / "venv", cwd=folder)
    programs = folder / "venv" / "bin"
    clean(programs / "python", "-m", "pip", "install", "--quiet", "--no-index", HERE[0], cwd=folder)
    return programs


def clean(*command: str | Path, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command in an empty environment."""
    words = [str(word) for word in command]
    environment = {"PATH": "/nonexistent"}
    result = subprocess.run(
        words, env=environment, cwd=cwd, capture_output=True, text=True, timeout=180, check=False
    )
    assert result.returncode == code, result.stdout + result.stderr
    return result


def test_it_says_its_version(installed: Path, tmp_path: Path) -> None:
    told = clean(installed / "hotspan", "--version", cwd=tmp_path).stdout
    assert re.fullmatch(r"hotspan \d+\.\d+\.\d+\S*\n", told)


def test_it_records_a_program(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("def work():\n    return sum(range(30_000_000))\n\nprint(work())\n")
    result = clean(installed / "hotspan", "run", "-o", "out.hotspan", "program.py", cwd=tmp_path)
    assert result.stdout == "449999985000000\n"
    assert "work" in result.stderr  # the function, in the report
    told = clean(installed / "hotspan", "info", "--json", "out.hotspan", cwd=tmp_path).stdout
    assert json.loads(told)
    code = "import hotspan; print(hotspan.open('out.hotspan').format)"
    assert "hotspan" in clean(installed / "python", "-c", code, cwd=tmp_path).stdout


def test_doctor_says_that_torch_is_missing(installed: Path, tmp_path: Path) -> None:
    told = clean(installed / "hotspan", "doctor", "--json", cwd=tmp_path, code=1).stdout
    findings = {finding["name"]: finding for finding in json.loads(told)}
    assert findings["torch"]["found"] == "not installed"


@pytest.mark.parametrize("processor", ["x86_64", "aarch64"])
def test_it_is_one_wheel_for_all_pythons_and_many_systems(processor: str) -> None:
    """By its name, by what it holds, and by what its libraries ask of the system."""
    wheels = [wheel for wheel in BUILT.glob("*.whl") if wheel.stem.endswith(processor)]
    if not wheels:
        pytest.skip(f"no wheel for {processor} is built: make wheel does")
    wheel = max(wheels, key=lambda path: path.stat().st_mtime)
    assert re.search(r"-cp310-abi3-manylinux_2_\d+_", wheel.name), wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "hotspan/_core.abi3.so" in names
    carried = [name for name in names if name.startswith("hotspan/_hooks/") and name.endswith(".so")]
    assert all(f"-{processor}-" in name for name in carried), carried
    assert all(name.removesuffix(".so") + ".headers" in names for name in carried)
    pytest.importorskip("auditwheel", reason="make wheel installs auditwheel")
    command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True).stdout
    tag = re.search(r'"manylinux_2_(\d+)_', told.replace("\n", " "))
    assert tag is not None, told
    assert int(tag[1]) <= 28, told
    assert of_no_library(wheel) == []


def of_no_library(wheel: Path) -> list[str]:
    """Return what the module needs and neither Python nor a library of that version has: the linker lets it pass."""
    from elftools.elf.elffile import ELFFile

    with zipfile.ZipFile(wheel) as archive:
        file = ELFFile(io.BytesIO(archive.read("hotspan/_core.abi3.so")))
    versions = file.get_section_by_name(".gnu.version")
    return [
        symbol.name
        for index, symbol in enumerate(file.get_section_by_name(".dynsym").iter_symbols())
        if symbol["st_shndx"] == "SHN_UNDEF"
        and symbol["st_info"]["bind"] == "STB_GLOBAL"
        and not symbol.name.startswith(("Py", "_Py"))
        and isinstance(versions.get_symbol(index)["ndx"], str)
    ]
