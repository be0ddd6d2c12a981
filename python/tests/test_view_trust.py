"""What people must be able to rely on in the dashboard: order and verdict of comparisons, rows that belong together."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hotspan
from browser_visits import Command, needs_browser, printed, walk
from conftest import SHARED_TRACES, complete
from view_server import ViewServer

RESNET = SHARED_TRACES / "kineto_tb_plugin"
SLOW = RESNET / "resnet50_num_workers_0" / "worker0.1623143089861.pt.trace.json.gz"
FAST = RESNET / "resnet50_num_workers_4" / "worker0.1623212756351.pt.trace.json.gz"
H200 = Path(__file__).parent / "data" / "training_h200.hotspan.zst"
#: Steps of two real trainings, in milliseconds; the first of the second one is its warm-up.
STEPS_BEFORE = (176.1, 174.0, 176.9, 181.3, 176.5, 164.3)
STEPS_AFTER = (181.6, 123.9, 126.8, 126.3, 163.5, 116.1)

needs_shared = pytest.mark.skipif(
    not SLOW.exists(), reason="shared/traces does not lie beside the repository"
)


def training(steps: tuple[float, ...]) -> list[dict[str, Any]]:
    """Steps of so many milliseconds: operators that take the same time always, and loading that takes the rest."""
    events, at = [], 0.0
    for place, length in enumerate(steps):
        events.append(complete(f"ProfilerStep#{place}", at, length * 1000, cat="user_annotation"))
        begin = at + 100
        for name, milliseconds in (("mm", 40), ("add_", 15), ("relu", 10), ("conv2d", 30)):
            events.append(complete(f"aten::{name}", begin, milliseconds * 1000 + place * 20))
            begin += milliseconds * 1000 + 200
        events.append(complete("enumerate(DataLoader)#_next", begin, at + length * 1000 - begin - 50))
        at += length * 1000 + 10
    return events


@pytest.fixture
def pair(write_trace: Callable[..., Path]) -> tuple[Path, Path]:
    """A slow training and the fixed one, which sorts before it by name."""
    return (
        write_trace(training(STEPS_BEFORE), "with_0_workers.json"),
        write_trace(training(STEPS_AFTER), "fixed.json"),
    )


def step_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return next(row for row in rows if row["name"] == "step")


def test_a_step_that_is_a_third_quicker_is_a_change(
    pair: tuple[Path, Path], hotspan_command: Command
) -> None:
    step = step_of(printed(hotspan_command, "diff", *pair)["rows"])
    assert step["verdict"] == "change"
    assert step["before"] == pytest.approx(176.3e6, rel=0.001)
    assert step["after"] == pytest.approx(126.55e6, rel=0.001)
    back = step_of(printed(hotspan_command, "diff", *reversed(pair))["rows"])
    assert (back["verdict"], back["change"]) == ("change", -step["change"])


@needs_shared
def test_a_real_training_that_was_fixed_is_a_change(hotspan_command: Command) -> None:
    step = step_of(printed(hotspan_command, "diff", SLOW, FAST)["rows"])
    assert step["verdict"] == "change"
    assert step["change"] < -40e6


@needs_browser
def test_the_first_of_two_traces_is_the_one_before(
    pair: tuple[Path, Path], tmp_path: Path, hotspan_command: Command
) -> None:
    page = tmp_path / "report.html"
    made = hotspan_command("report", *pair, "--html", page)
    assert made.returncode == 0, made.stderr
    step = step_of(printed(hotspan_command, "diff", *pair)["rows"])
    with ViewServer(*pair) as server:
        for address, offline in ((server.address, False), (page.as_uri(), True)):
            told = walk(
                address,
                ("show", "compare", "?by=op"),
                ("evaluate", "document.querySelector('select[name=before]').selectedOptions[0].text"),
                ("snapshot",),
                ("click", "text=Swap"),
                ("evaluate", "document.querySelector('select[name=before]').selectedOptions[0].text"),
                ("snapshot",),
                offline=offline,
            )
            assert told[1].endswith("with_0_workers.json")
            assert told[4].endswith("fixed.json")
            first, swapped = (
                dict(zip(seen["tables"][0]["keys"], seen["tables"][0]["rows"][0], strict=True))
                for seen in (told[2], told[5])
            )
            assert (first["before"], first["after"]) == (swapped["after"], swapped["before"])
            assert first["change"].startswith("-")
            assert first["verdict"] == step["verdict"] == "change"


@needs_browser
def test_a_single_step_is_unknown_and_has_no_colour(write_trace: Callable[..., Path]) -> None:
    one = write_trace(training(STEPS_BEFORE[:1]), "one.json")
    other = write_trace(training(STEPS_AFTER[1:2]), "other.json")
    coloured = "[...document.querySelectorAll('.worse, .better')].map((cell) => cell.innerText)"
    with ViewServer(one, other) as server:
        rows = server.rows("compare?before=0&after=1&by=op")
        assert {row["verdict"] for row in rows} == {"unknown"}
        told = walk(server.address, ("show", "compare", "?by=op"), ("evaluate", coloured))
    assert told[1] == []


@pytest.fixture(scope="module")
def h200() -> Iterator[ViewServer]:
    """`hotspan view` on a training recorded on a GPU."""
    with ViewServer(H200) as running:
        yield running


@pytest.mark.parametrize("table", ["operators", "shapes", "stacks", "modules", "threads"])
def test_operators_are_not_mixed_with_kernels(h200: ViewServer, table: str) -> None:
    rows = h200.rows(f"run/0/table/{table}")
    assert {row["device"] for row in rows} == {"CPU"}
    kernels = {row["name"] for row in h200.rows("run/0/table/kernels")}
    assert not kernels & {row["name"] for row in rows}
    shares = [row["self_device_percent"] for row in rows]
    assert max(shares) < 100
    # Each kernel is counted once, beside what launched it.
    assert 95 < sum(shares) <= 100.01


def test_no_share_of_a_device_is_above_all(h200: ViewServer, hotspan_command: Command) -> None:
    sections = printed(hotspan_command, "report", H200)["report"]
    names = {row["name"] for row in sections["Operators that cost most"]}
    assert not names & {row["name"] for row in h200.rows("run/0/table/kernels")}
    # torch lists everything in one table, as its users know it.
    keys = {row.key for row in hotspan.open(H200).key_averages()}
    assert {row["name"] for row in h200.rows("run/0/table/kernels")} <= keys


@needs_browser
def test_a_filter_filters_the_chart_too(h200: ViewServer) -> None:
    told = walk(
        h200.address,
        ("show", "operators", ""),
        ("texts", ".barlist .name"),
        ("fill", "section.table input[type=search]", "backward"),
        ("texts", ".barlist .name"),
        ("texts", "section.table tbody td:first-child"),
        ("fill", "section.table input[type=search]", "no operator has this name"),
        ("evaluate", "document.querySelectorAll('.barlist li').length"),
    )
    assert any("backward" not in name.lower() for name in told[1])
    assert told[3]
    assert all("backward" in name.lower() for name in told[3])
    assert set(told[3]) <= set(told[4])
    assert told[6] == 0


VIEWS = (
    *("overview", "advice", "timeline", "steps", "operators", "kernels", "copies", "modules", "gpu"),
    *("functions", "source", "flame", "memory", "ranks", "compare", "quality"),
)


@needs_browser
def test_every_view_says_that_a_trace_was_cut_off(
    write_trace: Callable[..., Path], tmp_path: Path, hotspan_command: Command
) -> None:
    whole = write_trace(training(STEPS_AFTER), "whole.json")
    cut = tmp_path / "cut.json"
    cut.write_text(whole.read_text()[:-700])
    page = tmp_path / "report.html"
    assert hotspan_command("report", cut, "--html", page).returncode == 0
    (missing, *_) = printed(hotspan_command, "report", cut)["missing"]
    looks = [step for view in VIEWS for step in (("show", view, "?run=0"), ("text", ".missing"))]
    with ViewServer(cut, whole) as server:
        assert server.api("run/0/damage") == server.api("run/0/missing")
        assert server.api("run/0/missing") == printed(hotspan_command, "report", cut)["missing"]
        assert server.api("run/1/missing") == server.api("run/1/damage") == []
        for address, offline in ((server.address, False), (page.as_uri(), True)):
            seen = walk(address, *looks, offline=offline)[1::2]
            assert [text for text in seen if missing not in text] == []
        quiet = walk(
            server.address, ("show", "steps", "?run=1"), ("evaluate", "document.querySelector('.missing')")
        )
        assert quiet[1] is None


def test_recordings_of_one_worker_are_one_rank(tmp_path: Path, hotspan_command: Command) -> None:
    for file in ("worker0.100", "worker0.200", "worker1.110", "worker1.210"):
        path = tmp_path / "job" / f"{file}.pt.trace.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": training(STEPS_AFTER)}))
    alone = tmp_path / "alone"
    alone.mkdir()
    for file in ("worker0.100", "worker0.200"):
        (alone / f"{file}.pt.trace.json").write_text((tmp_path / "job" / f"{file}.pt.trace.json").read_text())
    with ViewServer(tmp_path / "job", alone) as server:
        ids = {(run["run"], run["worker"], run["cycle"]): run["id"] for run in server.api("runs")["runs"]}
        for cycle in ("100", "200"):
            sections = server.api(f"ranks?run={ids['job', 'worker0', cycle]}")["sections"]
            assert [len(section["table"]["rows"]) for section in sections[:1]] in ([2], [])
        assert server.api(f"ranks?run={ids['alone', 'worker0', '100']}")["sections"] == []
    done = hotspan_command("ranks", tmp_path / "job")
    assert done.returncode == 0
    assert "the last is compared (2 left out)" in done.stderr


def test_tracks_have_names_of_words(h200: ViewServer) -> None:
    tracks = h200.api("run/0/timeline")["tracks"]
    processes = {track["process"] for track in tracks}
    assert "GPU 0" in processes
    assert {
        name for name in processes if not re.match(r"[A-Za-z]", name) or re.search(r"GPU 0 0", name)
    } == set()
    assert [track["name"] for track in tracks if not re.match(r"[A-Za-z]", track["name"])] == []
    devices = [track for track in tracks if track["device"]]
    assert devices
    assert {track["process"] for track in devices} == {"GPU 0"}


@needs_browser
def test_numbers_have_one_style(write_trace: Callable[..., Path], hotspan_command: Command) -> None:
    args = {"blocks per SM": 0.007575757575757576, "bytes": 2048, "grid": [1, 1, 1]}
    path = write_trace([*training(STEPS_AFTER), complete("aten::odd", 100, 20, tid=2, args=args)])
    text = hotspan_command("report", H200).stdout
    assert re.findall(r"\d us\b|\d [KMG]B\b|\d%", text) == []
    assert re.search(r"\d µs", text)
    with ViewServer(path, H200) as server:
        span = server.api("run/0/search?text=aten::odd&number=0")["hit"]["span"]
        assert {arg["key"]: arg["value"] for arg in server.api(f"run/0/span/{span}")["args"]} == {
            "blocks per SM": "0.00758",
            "bytes": "2048",
            "grid": "[1, 1, 1]",
        }
        for table in ("functions", "source"):
            for section in server.api(f"run/1/table/{table}")["sections"]:
                units = {column["key"]: column["unit"] for column in section["table"]["columns"]}
                assert units.get("line", "ordinal") == "ordinal"
        told = walk(
            server.address,
            ("show", "operators", "?run=1"),
            ("snapshot",),
            ("show", "functions", "?run=1"),
            ("snapshot",),
            ("show", "advice", "?run=1"),
            ("text", "main"),
        )
    cells = [cell for row in told[1]["tables"][0]["rows"] for cell in row]
    for pattern in (r"-?[\d.]+ (?:ns|µs|ms|s)", r"-?[\d.]+ (?:B|KiB|MiB|GiB)", r"-?[\d.]+ %"):
        found = [cell for cell in cells if re.fullmatch(pattern, cell)]
        assert found
        numbers = [cell.split()[0].lstrip("-") for cell in found]
        # Three digits that count; what is below a hundredth of a percent is 0.
        assert [number for number in numbers if len(number.replace(".", "").lstrip("0")) > 4] == []
    functions = told[3]["tables"][0]
    lines = [row[functions["keys"].index("line")] for row in functions["rows"]]
    assert max(int(line) for line in lines) > 1000
    assert re.findall(r"\d us\b|\d [KMG]B\b|\d%", told[5]) == []
