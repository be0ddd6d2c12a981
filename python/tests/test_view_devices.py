"""Views of devices and ranks in a real browser: a training recorded on an H200, and a made one of two ranks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser_visits import Command, check, look, needs_browser, number, pictured, printed, visit
from device_training import write
from shown_tables import shown
from view_server import ViewServer

pytestmark = needs_browser

#: A small transformer on an NVIDIA H200: five steps with shapes, stacks, modules and memory.
H200 = Path(__file__).parent / "data/training_h200.hotspan.zst"


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a job of two ranks, one of them slow."""
    folder = tmp_path_factory.mktemp("logs") / "job"
    folder.mkdir()
    write(folder)
    return folder


@pytest.fixture(scope="module")
def server(ranks: Path) -> Iterator[ViewServer]:
    """`hotspan view` on both."""
    with ViewServer(H200, ranks) as running:
        yield running


def a_kernel(server: ViewServer, run: int) -> str:
    """Where the timeline shows a step with one of the kernels of its backward pass chosen."""
    info = server.api(f"run/{run}/timeline")
    step = info["steps"][3]
    hit = server.api(f"run/{run}/search?text=flash_bprop&after={step['begin']}")["hit"]
    begin, end = hit["begin"] - 900_000, hit["begin"] + 900_000
    groups = list(dict.fromkeys(track["process"] for track in info["tracks"]))
    closed = ",".join(str(place) for place, group in enumerate(groups) if group in ("Memory", "Profiler"))
    folded = ",".join(str(track["id"]) for track in info["tracks"] if "(python3)" in track["name"])
    return f"&from={begin}&to={end}&span={hit['span']}&close={closed}&fold={folded}"


@pytest.fixture(scope="module")
def seen(server: ViewServer) -> dict[str, Any]:
    """What the browser saw of them."""
    run = number(server, H200.name)
    here = f"?run={run}"
    first = next(known["id"] for known in server.api("runs")["runs"] if known["run"] == "job")
    visits = [
        pictured(visit("overview", here, height=1000)),
        pictured(visit("overview", here, "overview-dark", axe=False, phone=False, height=1000), dark=True),
        pictured(visit("advice", here)),
        pictured(visit("timeline", f"{here}{a_kernel(server, run)}", "timeline-device")),
        pictured(visit("steps", here)),
        visit("operators", here, axe=False),
        pictured(visit("kernels", here)),
        visit("kernels", f"{here}&by=streams", "streams", axe=False),
        pictured(visit("copies", here)),
        pictured(visit("modules", here, axe=False)),
        pictured(visit("gpu", here)),
        pictured(visit("functions", here, axe=False)),
        pictured(visit("memory", here, axe=False)),
        pictured(visit("flame", here, axe=False)),
        visit("quality", here, axe=False),
        visit("overview", f"?run={first}", "overview-rank", axe=False),
        visit("steps", f"?run={first}", "steps-rank", axe=False),
        visit("gpu", f"?run={first}", "gpu-rank", axe=False),
        pictured(visit("ranks", f"?run={first}")),
    ]
    return look(server.address, visits)


@pytest.mark.parametrize(
    ("name", "by"), [("operators", "op"), ("kernels", "kernel"), ("streams", "stream"), ("copies", "copy")]
)
def test_tables_are_those_of_the_command_line(
    seen: dict[str, Any], server: ViewServer, hotspan_command: Command, name: str, by: str
) -> None:
    rows = printed(hotspan_command, "stats", H200, "--by", by, "--limit", 0)[0]["rows"]
    table = server.api(f"run/{number(server, H200.name)}/table/{name}")["sections"][0]["table"]
    check(seen[name], 0, table, rows)


def test_functions_are_those_of_the_command_line(
    seen: dict[str, Any], server: ViewServer, hotspan_command: Command
) -> None:
    arguments = ("stats", H200, "--by", "function", "--sort", "tottime", "--limit", 0)
    table = server.api(f"run/{number(server, H200.name)}/table/functions")["sections"][0]["table"]
    check(seen["functions"], 0, table, printed(hotspan_command, *arguments)[0]["rows"])


@pytest.mark.parametrize("view", ["steps", "gpu"])
def test_sections_are_those_of_the_command_line(
    seen: dict[str, Any], server: ViewServer, ranks: Path, hotspan_command: Command, view: str
) -> None:
    slow = sorted(ranks.iterdir())[0]
    more = () if view == "steps" else ("--limit", 100)
    for name, file in ((view, H200), (f"{view}-rank", slow)):
        told = printed(hotspan_command, view, file, *more)[0]
        sections = server.api(f"run/{number(server, file.name)}/table/{view}")["sections"]
        for place, section in enumerate(sections):
            check(seen[name], place, section["table"], told[section["key"]])


def test_the_overview_has_the_report_the_devices_and_the_advice(
    seen: dict[str, Any], server: ViewServer, hotspan_command: Command
) -> None:
    report = printed(hotspan_command, "report", H200)["report"]
    tables = {table["title"]: place for place, table in enumerate(seen["overview"]["tables"])}
    assert set(tables) == set(report)
    for section in server.api(f"run/{number(server, H200.name)}/table/overview")["sections"]:
        check(seen["overview"], tables[section["key"]], section["table"], report[section["key"]])
    text = seen["overview"]["text"]
    device = printed(hotspan_command, "gpu", H200)[0]["devices"][0]
    for key in ("busy_share", "utilisation", "sm_efficiency", "occupancy", "tensor_cores"):
        assert shown(device[key], "percent") in text
    findings = printed(hotspan_command, "advise", H200)[0]["findings"]
    assert len(findings) > 2
    for finding in findings:
        assert finding["message"].replace("`", "") in seen["advice"]["text"]
    assert findings[0]["message"].replace("`", "") in text


def test_memory_of_the_device_is_that_of_the_command_line(
    seen: dict[str, Any], hotspan_command: Command
) -> None:
    report = printed(hotspan_command, "report", H200)["report"]
    held = {row["what"]: row["bytes"] for row in report["Memory at its peak"]}
    assert "Memory of cuda:0" in seen["memory"]["text"]
    for what in ("CPU tensors", "device 0"):
        assert f"Peak: {shown(held[what], 'bytes')}" in seen["memory"]["text"]


def test_the_timeline_names_the_chosen_kernel(seen: dict[str, Any], hotspan_command: Command) -> None:
    kernels = printed(hotspan_command, "stats", H200, "--by", "kernel", "--limit", 0)[0]["rows"]
    name = next(row["name"] for row in kernels if "flash_bprop" in row["name"])
    assert name in seen["timeline-device"]["text"]
    assert "launched by" in seen["timeline-device"]["text"]


def test_quality_and_flame_graph_are_those_of_the_command_line(
    seen: dict[str, Any], hotspan_command: Command
) -> None:
    info = printed(hotspan_command, "info", H200)[0]
    facts = dict(seen["quality"]["tables"][0]["rows"])
    assert facts["Wall time"] == shown(info["wall_time_ns"], "ns")
    assert facts["Spans"] == shown(info["spans"], "count")
    tree = printed(hotspan_command, "tree", H200, "--threads", "--all", "--least", 0)[0]
    assert f"{shown(tree['total_ns'], 'ns')} in calls" in seen["flame"]["text"]


def test_ranks_are_those_of_the_command_line(
    seen: dict[str, Any], server: ViewServer, ranks: Path, hotspan_command: Command
) -> None:
    told = printed(hotspan_command, "ranks", ranks)
    first = next(run["id"] for run in server.api("runs")["runs"] if run["run"] == "job")
    for place, section in enumerate(server.api(f"ranks?run={first}")["sections"]):
        check(seen["ranks"], place, section["table"], told[section["key"]])
    # Rank 1 comes last to every collective, and rank 0 waits.
    assert [row["last"] for row in told["ranks"]] == [0, 12]
    assert told["ranks"][0]["wait"] > 0 == told["ranks"][1]["wait"]
