"""The report of a program with many processes, files and generated code: short, and about what the user wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

CHILDREN = 40


def record(folder: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    command = [sys.executable, "-m", "hotspan"]
    seen = subprocess.run(
        [*command, "run", "-o", "x.hotspan", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert seen.returncode == 0, seen.stderr
    text = subprocess.run(
        [*command, "report", "x.hotspan", "--json"], cwd=folder, capture_output=True, text=True, check=True
    )
    return json.loads(text.stdout)["report"], seen.stderr


def test_many_children_are_rows_of_their_commands(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text("import sys\nfor _ in range(20): sum(range(100_000))\n")
    (tmp_path / "program.py").write_text(
        "import subprocess, sys\n"
        f"for number in range({CHILDREN}):\n"
        "    sum(range(3_000_000))\n"
        "    subprocess.run([sys.executable, 'child.py', str(number)], check=True)\n"
    )
    found, text = record(tmp_path, "program.py")
    rows = found["Time by process"]
    assert [(row["what"], row["count"]) for row in rows] == [("the program", 1), ("child.py", CHILDREN)]
    child = rows[1]
    assert child["shortest"] <= child["median"] <= child["longest"] <= child["running"]
    assert len(found["Memory at its peak"]) <= 8
    assert len(text.splitlines()) < 100
    assert all(len(line) <= 100 for line in text.splitlines() if "hotspan" not in line), text


def test_a_file_has_one_spelling(tmp_path: Path) -> None:
    """The same lines run as `train.py`, as `./train.py`, and by their whole path."""
    (tmp_path / "other").mkdir()
    work = "def work():\n    for _ in range(150):\n        sum(range(100_000))\nwork()\n"
    (tmp_path / "work.py").write_text(work)
    (tmp_path / "program.py").write_text(
        "import subprocess, sys\n"
        "from pathlib import Path\n"
        "text = Path('work.py').read_text()\n"
        "for path in ('work.py', './work.py', str(Path('other/../work.py')), str(Path('work.py').resolve())):\n"
        "    exec(compile(text, path, 'exec'), {})\n"
        "    subprocess.run([sys.executable, path], check=True)\n"
    )
    found, _ = record(tmp_path, "program.py")
    lines = [row["line"] for row in found["Lines of the program that cost most"]]
    assert lines.count("work.py:3") == 1, lines
    assert not any(line.startswith(("/", ".")) for line in lines), lines
    functions = [row["place"] for row in found["Functions that cost most"] if row["function"] == "work"]
    assert functions == ["work.py:1"]


def test_generated_code_counts_for_the_line_that_runs_it(tmp_path: Path) -> None:
    generated = tmp_path / "torchinductor_me" / "ab"
    generated.mkdir(parents=True)
    (generated / "cabcd.py").write_text("def call():\n    for _ in range(200): sum(range(100_000))\n")
    (tmp_path / "program.py").write_text(
        "import importlib.util\n"
        f"spec = importlib.util.spec_from_file_location('c', {str(generated / 'cabcd.py')!r})\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "namespace = {}\n"
        "exec('def made():\\n    for _ in range(200): sum(range(100_000))', namespace)\n"
        "module.call()\n"
        "namespace['made']()\n"
    )
    found, _ = record(tmp_path, "program.py")
    lines = [row["line"] for row in found["Lines of the program that cost most"]]
    assert {"program.py:7", "program.py:8"} <= set(lines)
    assert not any("torchinductor" in line or "<string>" in line for line in lines)


def test_code_that_has_no_file_has_lines(tmp_path: Path) -> None:
    code = "def work():\n    for _ in range(300): sum(range(100_000))\nwork()"
    found, _ = record(tmp_path, "-c", code)
    assert found["Lines of the program that cost most"][0]["line"] == "<string>:2"


def test_text_that_modules_run_is_no_package(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("exec('for _ in range(300): sum(range(100_000))')\n")
    (tmp_path / "program.py").write_text("import slow")
    found, _ = record(tmp_path, "program.py")
    packages = [row["package"] for row in found["Imports that cost most"]]
    assert "slow.py" in packages
    assert "<string>" not in packages


def test_an_import_names_the_line_that_led_to_it(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import slower\n")
    (tmp_path / "slower.py").write_text("for _ in range(300): sum(range(100_000))\n")
    (tmp_path / "program.py").write_text("import sys\n\nimport slow\n")
    found, _ = record(tmp_path, "program.py")
    lines = {row["package"]: row["line"] for row in found["Imports that cost most"]}
    assert lines["slow.py"] == "program.py:3"
    assert lines["slower.py"] == "slow.py:1", "the nearest line of the program"
