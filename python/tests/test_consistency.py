"""A quantity that two outputs show is the same in both: command line, report, dashboard, Python and advice."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hotspan
from conftest import REPOSITORY, shared_trace_files
from view_server import ViewServer

Command = Callable[..., subprocess.CompletedProcess[str]]
RECORDED_ON_A_GPU = Path(__file__).parent / "data" / "training_h200.hotspan.zst"


class Outputs:
    """One trace as each of the outputs shows it."""

    def __init__(self, path: Path, command: Command, server: ViewServer) -> None:
        self._command = command
        self._path = path
        self.server = server
        self.trace = hotspan.open(path)
        self.report = json.loads(self._run("report", "--json"))
        self.info = self.json("info")

    def _run(self, *arguments: str) -> str:
        done = self._command(arguments[0], self._path, *arguments[1:])
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self, *arguments: str) -> Any:
        """What a command prints with ``--json`` about the trace."""
        return json.loads(self._run(*arguments, "--json"))[0]

    def section(self, title: str) -> list[dict[str, Any]]:
        """The rows of a section of the report whose title begins so; none where it is left out."""
        return next((rows for name, rows in self.report["report"].items() if name.startswith(title)), [])

    def page(self, name: str, table: str) -> list[dict[str, Any]]:
        """The rows of a table of the dashboard; none where it is left out."""
        sections = self.server.api(f"run/0/table/{name}")["sections"]
        if table not in [section["key"] for section in sections]:
            return []
        return self.server.rows(f"run/0/table/{name}", table)


def is_trace(path: Path) -> bool:
    """Whether hotspan reads the file; some samples are no traces."""
    try:
        hotspan.open(path)
    except hotspan.HotspanError:
        return False
    return True


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, hotspan_command: Command) -> Path:
    """The recording that `make demo` makes."""
    path = tmp_path_factory.mktemp("demo") / "train.hotspan"
    program = REPOSITORY / "examples" / "train.py"
    done = hotspan_command("run", "-o", path, program, cwd=path.parent)
    assert done.returncode == 0, done.stderr
    return path


SAMPLES = [pytest.param(path, id=path.name) for path in shared_trace_files()]


@pytest.fixture(scope="module", params=["demo", "gpu", *SAMPLES])
def outputs(request: pytest.FixtureRequest, hotspan_command: Command) -> Iterator[Outputs]:
    """Every sample trace, the demo, and a recording of a GPU."""
    if request.param == "demo":
        path = request.getfixturevalue("demo")
    elif request.param == "gpu":
        path = RECORDED_ON_A_GPU
    else:
        path = request.param
    if not is_trace(path):
        pytest.skip("no trace")
    with ViewServer(path) as server:
        yield Outputs(path, hotspan_command, server)


def test_there_is_one_wall_time(outputs: Outputs) -> None:
    wall_time = outputs.trace.wall_time_ns
    assert outputs.info["wall_time_ns"] == wall_time
    if outputs.report["wall_time_ns"] is not None:
        assert outputs.report["wall_time_ns"] == wall_time
    parts = outputs.section("Where the time went")
    if parts:
        assert sum(part["time"] for part in parts) == wall_time
        assert outputs.page("overview", "Where the time went") == parts
    facts = {row["fact"]: row["value"] for row in outputs.page("quality", "Trace")}
    assert facts["Wall time"] == wall_time


def test_there_is_one_number_of_steps(outputs: Outputs) -> None:
    steps = [step.duration_ns for step in outputs.trace.steps]
    rows = outputs.section("Steps")
    assert sum(row["count"] for row in rows) == len(steps)
    assert sum(row["total"] for row in rows) == sum(steps)
    assert outputs.page("overview", next(iter(titled(outputs, "Steps")), "Steps")) == rows
    bands = outputs.server.api("run/0/timeline")["steps"]
    assert [band["end"] - band["begin"] for band in bands] == steps
    host = outputs.json("steps").get("host", [])
    assert outputs.page("steps", "host") == host
    if steps:
        assert len(host) == len(steps)
        assert [row.time_ns for row in outputs.trace.step_breakdown()["host"]] == [
            row["time"] for row in host
        ]
    # Rules look at the steps without warm-up; the report and the command line give the same advice.
    advice = outputs.json("advise")
    assert advice["steps"] <= len(steps)
    assert outputs.report["advice"]["steps"] == advice["steps"]


def test_the_dashboard_agrees_about_steps(outputs: Outputs) -> None:
    steps = [step.duration_ns for step in outputs.trace.steps]
    facts = {row["fact"]: row["value"] for row in outputs.page("quality", "Trace")}
    assert facts["Steps"] == len(outputs.info["steps"]) == len(steps)
    assert [row["duration"] for row in outputs.page("quality", "Steps")] == steps
    # The median of the report is that of comparisons: without warm-up, if there is any.
    rows = outputs.section("Steps")
    if rows:
        whole = outputs.server.rows("compare?before=0&after=0&by=op")[0]
        assert whole["before"] == whole["after"] == rows[-1]["median"]


def test_activities_are_the_same_in_the_overview_and_in_steps(outputs: Outputs) -> None:
    parts = {row["activity"]: row["time"] for row in outputs.section("Where the time went")}
    host = outputs.page("steps", "host")
    if not parts or not host or outputs.report["about"] is not None:
        pytest.skip("one of them is left out, or they are about several processes")
    outside = sum(parts.values()) - sum(row["time"] for row in host)
    loading = sum(row["data_loader"] for row in host)
    # What is not in a step may be in either; what is in one has the same name in both.
    assert abs(parts.get("DataLoader", 0) - loading) <= max(0, outside)


def test_gains_are_shares_of_one_time(outputs: Outputs) -> None:
    advice = outputs.server.api("run/0/advice")
    gains = [(finding["gain"], finding["gain_percent"]) for finding in advice["findings"] if finding["gain"]]
    wholes = [gain * 100 / percent for gain, percent in gains if percent]
    assert all(percent <= 100.001 for _, percent in gains)
    assert max(wholes, default=0) == pytest.approx(min(wholes, default=0), rel=1e-6)
    if advice["about"] is None:
        assert max(wholes, default=0) <= outputs.trace.wall_time_ns * 1.000001


def test_idle_time_is_the_same_by_device_and_by_cause(outputs: Outputs) -> None:
    idle: dict[str, int] = {}
    for row in outputs.page("gpu", "idle"):
        idle[row["device"]] = idle.get(row["device"], 0) + row["total"]
    time = {(row["device"], row["part"]): row["total"] for row in outputs.page("gpu", "time")}
    for row in outputs.page("gpu", "devices"):
        free = row["time"] - row["busy"]
        assert idle.get(row["device"], 0) == free
        assert time.get((row["device"], "idle"), 0) == free


def titled(outputs: Outputs, beginning: str) -> list[str]:
    return [title for title in outputs.report["report"] if title.startswith(beginning)]


def test_the_verdict_is_the_same_everywhere(outputs: Outputs) -> None:
    verdict = outputs.server.api("run/0/verdict")
    told = outputs.report["verdict"]
    assert verdict["sentence"] == (told["sentence"] if told else "")
    assert verdict["source"] == (told["source"] if told else None)
    for bar in verdict["bars"]:
        assert sum(part["time"] for part in bar["parts"]) == bar["time"]
    found = re.match(r"GPUs? idle (\d+) % of ", verdict["sentence"])
    if found is None or outputs.report["about"] is not None:
        return
    # The share is that of the table of steps, without warm-up.
    rows = outputs.page("steps", "devices")
    steps = [row["step"] for row in outputs.page("steps", "host")]
    steady = steps[len(steps) - max(1, outputs.json("advise")["steps"]) :]
    rows = [row for row in rows if row["step"] in steady]
    share = sum(row["idle"] for row in rows) * 100 / sum(row["time"] for row in rows)
    assert int(found[1]) == pytest.approx(share, abs=0.51)


def test_there_is_one_peak_of_memory(outputs: Outputs) -> None:
    shown = {row["what"]: row["bytes"] for row in outputs.section("Memory at its peak")}
    peaks = {}
    for timeline in outputs.trace.memory_timeline():
        is_cpu = timeline.device_type == 0
        name = "CPU tensors" if is_cpu else f"device {timeline.device_index}"
        assert shown[name] == timeline.peak_bytes
        peaks["cpu" if is_cpu else f"cuda:{timeline.device_index}"] = timeline.peak_bytes
    curves = {curve["title"]: curve for curve in outputs.server.api("run/0/curves")}
    for device, peak in peaks.items():
        lines = [line["values"] for line in curves[f"Memory of {device}"]["lines"]]
        assert max(map(sum, zip(*lines, strict=True))) == peak
    page = outputs.server.api("run/0/memory")["sections"]
    if "peak" in [section["key"] for section in page]:
        used: dict[str, int] = {}
        for row in outputs.server.rows("run/0/memory", "peak"):
            used[row["device"]] = used.get(row["device"], 0) + row["bytes"]
        assert used == peaks
    if "processes" in [section["key"] for section in page]:
        processes = {
            f"process {row['pid']}": row["peak"] for row in outputs.server.rows("run/0/memory", "processes")
        }
        assert {name: shown[name] for name in processes} == processes
        by_process = outputs.section("Time by process")
        for row in by_process:
            assert row["memory"] in (None, processes.get(f"process {row['process']}"))


def test_lines_cost_the_same_in_the_report_and_beside_the_source(outputs: Outputs) -> None:
    costs: dict[str, int] = {}
    for row in outputs.page("source", "lines"):
        if row.get("program"):
            line = f"{row['file']}:{row['line']}"
            costs[line] = costs.get(line, 0) + row["program"]
    for row in outputs.section("Lines of the program"):
        assert [time for line, time in costs.items() if line.endswith(row["line"])] == [row["time"]]


def test_operators_are_the_same_everywhere(outputs: Outputs) -> None:
    rows = outputs.json("stats", "--by", "op", "--limit", "0")["rows"]
    assert outputs.page("operators", "operators") == rows
    by_name = {(row["name"], row["device"], row["count"]): row for row in rows}
    # Kernels are rows of torch's table, too.
    averages = [row for row in outputs.trace.key_averages() if row.device_type == "CPU"]
    assert len(averages) == len(rows)
    assert sum(row.self_cpu_time_total for row in averages) == pytest.approx(
        sum(row["self_cpu_time_total"] for row in rows) / 1e3
    )
    for row in outputs.section("Operators that cost most"):
        same = [other for (name, _, _), other in by_name.items() if name == row["name"]]
        assert any(all(other.get(key) == value for key, value in row.items()) for other in same), row


def test_device_work_is_the_same_everywhere(outputs: Outputs) -> None:
    kernels = outputs.json("stats", "--by", "kernel", "--limit", "0")["rows"]
    assert outputs.page("kernels", "kernels") == kernels
    listed = [(kernel.name, kernel.calls, kernel.total_ns) for kernel in outputs.trace.kernels()]
    assert listed == [(row["name"], row["calls"], row["total"]) for row in kernels]
    for row in outputs.section("Kernels that cost most"):
        assert (row["name"], row["calls"], row["total"]) in listed
    if not kernels:
        return
    gpu = outputs.json("gpu", "--limit", "0")
    in_python = outputs.trace.gpu()
    for table in ("devices", "time", "idle", "launches", "streams"):
        assert outputs.page("gpu", table) == gpu.get(table, [])
        assert len(in_python.get(table, [])) == len(gpu.get(table, []))
    # What a device did and did not do in its steps is what the whole says, where the steps are all there is.
    for device in gpu["devices"]:
        idle = sum(row["total"] for row in gpu["idle"] if row["device"] == device["device"])
        assert idle == device["time"] - device["busy"]


def test_advice_is_the_same_everywhere(outputs: Outputs) -> None:
    advice = outputs.json("advise")
    told = [(finding["rule"], finding["message"]) for finding in advice["findings"]]
    assert [(f["rule"], f["message"]) for f in outputs.report["advice"]["findings"]] == told
    assert [(f["rule"], f["message"]) for f in outputs.server.api("run/0/advice")["findings"]] == told
    assert [(finding.rule, finding.message) for finding in outputs.trace.advise()] == told


def test_a_second_look_is_the_same(outputs: Outputs) -> None:
    """The model is kept between questions: what was computed for one must not change another."""
    first = outputs.page("operators", "operators")
    outputs.server.api("run/0/advice")
    assert outputs.page("operators", "operators") == first
