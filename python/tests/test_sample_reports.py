"""Reports of samples: each format is read by an independent reader, and files of py-spy by us."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from sampled_programs import SHARES, running

HOSTILE = '</title><script>alert("1")</script>&;\\x1b[31m'

PROGRAM = f"""
import time
def spin():
    end = time.time() + 0.8
    while time.time() < end: pass
spin.__code__ = spin.__code__.replace(co_name={HOSTILE!r}, **(
    {{"co_qualname": {HOSTILE!r}}} if hasattr(spin.__code__, "co_qualname") else {{}}))
spin()
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of a function with a name that means harm."""
    path = tmp_path_factory.mktemp("samples") / "run.hotspan"
    command = [
        Path(sys.executable).with_name("hotspan"),
        "record",
        "-r",
        "200",
        "-o",
        path,
        "--",
        sys.executable,
    ]
    subprocess.run([*command, "-c", PROGRAM], check=True, capture_output=True)
    return path


def export(hotspan_command: Any, recorded: Path, to: str, output: Path) -> Path:
    told = hotspan_command("export", recorded, "--to", to, "-o", output)
    assert told.returncode == 0, told.stderr
    return output


def test_a_flame_graph_is_one_file_of_valid_xml(recorded: Path, tmp_path: Path, hotspan_command: Any) -> None:
    path = export(hotspan_command, recorded, "flamegraph", tmp_path / "f.svg")
    text = path.read_text()
    root = ET.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    titles = [title.text or "" for title in root.iter(f"{space}title")]
    assert any(HOSTILE.split("\\x1b", maxsplit=1)[0][:20] in title for title in titles)
    assert len(list(root.iter(f"{space}script"))) == 1, "no script but our own"
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", ""), "nothing is fetched"


def test_a_speedscope_file_has_the_shape_of_its_schema(
    recorded: Path, tmp_path: Path, hotspan_command: Any
) -> None:
    profile = json.loads(export(hotspan_command, recorded, "speedscope", tmp_path / "s.json").read_text())
    frames = profile["shared"]["frames"]
    assert any(frame["name"] == HOSTILE for frame in frames)
    for thread in profile["profiles"]:
        assert thread["type"] == "sampled"
        assert len(thread["samples"]) == len(thread["weights"])
        assert all(0 <= index < len(frames) for stack in thread["samples"] for index in stack)
        assert thread["endValue"] == sum(thread["weights"])


def test_a_chrome_trace_of_samples_nests(recorded: Path, tmp_path: Path, hotspan_command: Any) -> None:
    trace = json.loads(export(hotspan_command, recorded, "chrome", tmp_path / "c.json").read_text())
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    inner = [span for span in spans if HOSTILE in span["name"]]
    outer = [span for span in spans if span["name"].startswith("<string>(1): <module>")]
    assert inner
    assert all(
        any(o["ts"] <= i["ts"] and i["ts"] + i["dur"] <= o["ts"] + o["dur"] for o in outer) for i in inner
    )


def test_what_is_exported_opens_again_with_the_same_time(
    recorded: Path, tmp_path: Path, hotspan_command: Any
) -> None:
    def total(path: Path) -> int:
        return int(json.loads(hotspan_command("tree", path, "--json").stdout)[0]["total_ns"])

    expected = total(recorded)
    assert expected > 0
    assert total(export(hotspan_command, recorded, "speedscope", tmp_path / "s.json.gz")) == expected
    stacks = export(hotspan_command, recorded, "collapsed", tmp_path / "c.txt")
    counts = sum(int(line.rsplit(" ", 1)[1]) for line in stacks.read_text().splitlines())
    assert counts * 5_000_000 == expected, "samples of 200 a second"
    assert total(stacks) == counts * 10_000_000, "a file without times says 10 ms a sample"


def test_the_tree_is_text_or_json_and_keeps_names_from_the_terminal(
    recorded: Path, hotspan_command: Any
) -> None:
    text = hotspan_command("tree", recorded, "--least", "0").stdout
    assert "<module>" in text
    assert "\x1b" not in text
    rows = json.loads(hotspan_command("tree", recorded, "--json", "--lines").stdout)[0]["rows"]
    assert any(row["function"] == HOSTILE for row in rows)


@pytest.mark.parametrize("kind", ["speedscope", "raw"])
def test_files_of_py_spy_are_read(kind: str, tmp_path: Path, hotspan_command: Any) -> None:
    py_spy = Path(sys.executable).with_name("py-spy")
    if not py_spy.exists():
        pytest.skip("py-spy is not installed")
    path = tmp_path / "theirs"
    with running(SHARES, "60") as process:
        command = [
            py_spy,
            "record",
            "-d",
            "1",
            "-f",
            kind,
            "--nonblocking",
            "-o",
            path,
            "--pid",
            str(process.pid),
        ]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
        if told.returncode != 0:
            pytest.skip(f"py-spy cannot: {told.stderr.splitlines()[:1]}")
    rows = json.loads(hotspan_command("tree", path, "--json").stdout)[0]["rows"]
    names = {row["function"] for row in rows}
    assert {"<module>", "thirty", "fifty", "twenty", "spin"} <= names


def test_files_of_pyinstrument_are_read(tmp_path: Path, hotspan_command: Any) -> None:
    pytest.importorskip("pyinstrument")
    script, path = tmp_path / "shares.py", tmp_path / "theirs.json"
    script.write_text(SHARES)
    command = [sys.executable, "-m", "pyinstrument", "-r", "speedscope", "-o", path, script, "0.5"]
    subprocess.run(command, check=True, capture_output=True)
    rows = json.loads(hotspan_command("tree", "--all", path, "--json").stdout)[0]["rows"]
    # How many functions it notices is up to pyinstrument, and to how busy the machine is.
    written = {frame["name"] for frame in json.loads(path.read_text())["shared"]["frames"]}
    assert "<module>" in written
    assert {row["function"] for row in rows} == written
