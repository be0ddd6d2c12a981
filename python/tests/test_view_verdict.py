"""The verdict: one sentence from the numbers of the tables, in terminal and dashboard alike; then what to change."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser_visits import Command, look, needs_browser, number, printed, visit, walk
from conftest import SHARED_TRACES
from test_view import span
from test_view_devices import H200
from view_server import ViewServer

STEPS = 6
BARS = """[...document.querySelectorAll('.step .track')].map((one) => one.getBoundingClientRect())
    .map(({ x, width }) => [x, width])"""
#: Microseconds of a step: loading, then one kernel, which the host waits for.
STEP, LOADING, KERNEL = 10_000, 4000, 5000


def events(
    steps: int = STEPS, device: bool = True, loading: int = LOADING, length: int = STEP
) -> Iterator[dict[str, Any]]:
    """Steps that wait for a batch before each kernel; the first takes three times as long."""
    at = 0.0
    for step in range(steps):
        slow = 3 if step == 0 else 1
        link = step + 1
        yield span(f"ProfilerStep#{step}", "user_annotation", 1, 1, at, length * slow)
        yield span("/home/me/train.py(42): main", "python_function", 1, 1, at, length * slow)
        loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        yield span(loader, "user_annotation", 1, 1, at + 10, loading * slow)
        begin = at + 20 + loading * slow
        yield span("aten::mm", "cpu_op", 1, 1, begin, 30, **{"External id": link})
        if device:
            yield span("cudaLaunchKernel", "cuda_runtime", 1, 1, begin + 5, 10, correlation=link)
            yield span(
                "sgemm", "kernel", 0, 7, begin + 20, KERNEL * slow, device=0, stream=7, correlation=link
            )
        at += length * slow


def made(path: Path, **options: Any) -> Path:
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": list(events(**options))}))
    return path


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The steps with a device and without one."""
    folder = tmp_path_factory.mktemp("verdict")
    return made(folder / "device.json"), made(folder / "host.json", device=False, loading=7000)


@pytest.fixture(scope="module")
def server(traces: tuple[Path, Path]) -> Iterator[ViewServer]:
    """`hotspan view` on both."""
    with ViewServer(*traces) as running:
        yield running


def test_it_says_why_the_device_is_idle_and_at_which_line(server: ViewServer) -> None:
    verdict = server.api("run/0/verdict")
    rows = [row for row in server.rows("run/0/table/steps", "devices") if row["step"] != "0"]
    idle = sum(row["idle"] for row in rows) / sum(row["time"] for row in rows)
    assert idle == pytest.approx(1 - KERNEL / STEP, abs=0.02)
    expected = rf"GPU idle {idle * 100:.0f} % of the step; (\d+) % of that waits for the DataLoader at train\.py:42\."
    found = re.fullmatch(expected, verdict["sentence"])
    assert found, verdict["sentence"]
    assert int(found[1]) == pytest.approx(LOADING / (STEP - KERNEL) * 100, abs=3)
    assert verdict["source"] == "/home/me/train.py:42"
    assert verdict["view"] == "gpu"


def test_without_a_device_it_speaks_of_the_host(server: ViewServer) -> None:
    verdict = server.api("run/1/verdict")
    assert verdict["sentence"] == "70 % of a step of 10.0 ms waits for the DataLoader at train.py:42."
    assert [bar["title"] for bar in verdict["bars"]] == ["Host"]


def check_bars(server: ViewServer, run: int) -> None:
    """The bars of the typical step are its rows in the tables of steps."""
    verdict = server.api(f"run/{run}/verdict")
    for bar in verdict["bars"]:
        assert sum(part["time"] for part in bar["parts"]) == bar["time"]
        assert sum(part["share"] for part in bar["parts"]) == pytest.approx(100)
    step = "all" if verdict["step"] is None else str(verdict["step"])
    by_key = [{(part["key"], part["idle"]): part["time"] for part in bar["parts"]} for bar in verdict["bars"]]
    (host,) = [row for row in server.rows(f"run/{run}/table/steps", "host") if row["step"] == step]
    for key in ("data_loader", "waiting", "runtime", "operators", "python", "other"):
        assert by_key[0].get((key, False), 0) == host[key]
    sections = [section["key"] for section in server.api(f"run/{run}/table/steps")["sections"]]
    devices = server.rows(f"run/{run}/table/steps", "devices") if "devices" in sections else []
    for device, parts in zip([row for row in devices if row["step"] == step], by_key[1:], strict=True):
        for key in ("compute", "communication", "copy"):
            assert parts.get((key, False), 0) == device[key]
        assert sum(time for (_, idle), time in parts.items() if idle) == device["idle"]


def test_a_typical_step_is_a_row_of_the_table_of_steps(server: ViewServer) -> None:
    for run in (0, 1):
        check_bars(server, run)


def test_that_holds_for_recordings(viewed_server: ViewServer) -> None:
    for file in ("after.hotspan", "run.hotspan"):
        check_bars(viewed_server, number(viewed_server, file))
    with ViewServer(H200) as recorded:
        check_bars(recorded, 0)


@pytest.mark.parametrize("file", ["after.hotspan", "run.hotspan", "lines.hotspan"])
def test_terminal_and_dashboard_say_the_same(
    viewed_server: ViewServer, viewed_traces: Path, hotspan_command: Command, file: str
) -> None:
    verdict = viewed_server.api(f"run/{number(viewed_server, file)}/verdict")
    told = printed(hotspan_command, "report", viewed_traces / file)["verdict"]
    assert (told["sentence"] if told else "") == verdict["sentence"]
    text = " ".join(hotspan_command("report", viewed_traces / file).stdout.split())
    assert verdict["sentence"] in text
    assert verdict["sentence"] in hotspan_command("report", viewed_traces / file, "--markdown").stdout


def test_a_whole_program_without_steps_is_judged_by_its_wall_time(
    viewed_server: ViewServer, viewed_traces: Path, hotspan_command: Command
) -> None:
    sentence = viewed_server.api(f"run/{number(viewed_server, 'run.hotspan')}/verdict")["sentence"]
    assert sentence
    rows = printed(hotspan_command, "report", viewed_traces / "run.hotspan")["report"]["Where the time went"]
    shares = [row["share"] for row in rows if row["activity"] != "not recorded"]
    first = re.search(r"takes (\d+) % of", sentence)
    if first is not None:
        assert int(first[1]) <= round(max(shares))


@pytest.mark.skipif(not SHARED_TRACES.exists(), reason="shared/traces does not lie beside the repository")
def test_a_real_training_that_waits_for_its_loader(hotspan_command: Command) -> None:
    path = SHARED_TRACES / "kineto_tb_plugin/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz"
    sentence = printed(hotspan_command, "report", path)["verdict"]["sentence"]
    assert re.match(r"GPU idle \d+ % of the step; \d+ % of that waits for the DataLoader", sentence), sentence


@needs_browser
def test_where_the_time_goes_is_told_without_a_click(server: ViewServer) -> None:
    told = walk(
        server.address,
        ("show", "overview", "?run=0"),
        ("wait", ".finding"),
        ("text", ".verdict .sentence"),
        ("evaluate", "document.querySelector('.verdict').getBoundingClientRect().bottom < innerHeight"),
        (
            "evaluate",
            "[...document.querySelectorAll('main section, main article')].map((one) => one.className || one.ariaLabel)",
        ),
        (
            "evaluate",
            BARS,
        ),
    )
    assert server.api("run/0/verdict")["sentence"].rstrip(".") in told[2]
    assert told[3]
    order = told[4]
    assert order[0] == "verdict"
    assert order.index("finding") < order.index("table")
    assert told[5][0] == told[5][1], "the bars of host and device stand below each other"


@needs_browser
def test_why_the_device_is_idle_is_one_click_away(server: ViewServer) -> None:
    """The line is told at once; the click shows what kept the device waiting."""
    told = walk(
        server.address, ("show", "overview", "?run=0"), ("click", ".why"), ("text", "main"), ("text", "h1")
    )
    assert told[3] == "GPU"
    assert "enumerate(DataLoader)" in told[2]
    assert "/home/me/train.py(42): main" in told[2]


@needs_browser
def test_advice_has_a_patch_a_gain_and_links_that_work(server: ViewServer) -> None:
    finding = server.api("run/0/advice")["findings"][0]
    assert finding["rule"] == "data-loading-bound"
    assert finding["gain_per_step"] == pytest.approx(finding["gain"] / (STEPS - 1), abs=1)
    card = "#rule-data-loading-bound"
    told = walk(
        server.address,
        ("show", "overview", "?run=0"),
        ("text", f"{card} .gain"),
        ("text", f"{card} .patch code"),
        ("evaluate", f"[...document.querySelectorAll('{card} .links a')].map((link) => link.hash)"),
        ("click", f"{card} .links a:has-text('timeline')"),
        ("wait", "section[aria-label=Span]"),
        ("text", "section[aria-label=Span] h2"),
        ("show", "overview", "?run=0"),
        ("click", f"{card} .links a:has-text('Evidence')"),
        ("text", f"{card} table"),
    )
    assert "per step" in told[1]
    assert told[2].startswith("DataLoader(")
    assert any(hash_.startswith("#/source?") and "line=42" in hash_ for hash_ in told[3])
    assert "enumerate(DataLoader)" in told[6]
    assert "enumerate(DataLoader)" in told[9]


@needs_browser
def test_a_page_to_share_begins_with_it_too(
    server: ViewServer, traces: tuple[Path, Path], tmp_path: Path, hotspan_command: Command
) -> None:
    page = tmp_path / "report.html"
    assert hotspan_command("report", traces[0], "--html", page).returncode == 0
    seen = look(page.as_uri(), [visit("overview", "")], offline=True)
    assert server.api("run/0/verdict")["sentence"].rstrip(".") in seen["overview"]["text"]
    look(server.address, [visit("overview", "?run=0"), visit("overview", "?run=1", "host")])
