"""Comparing two runs: a waterfall from the step before to the step after, a dot for each step, steps paired by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from browser_visits import Command, look, needs_browser, printed, visit, walk
from test_view_trust import STEPS_AFTER, STEPS_BEFORE, training
from test_view_verdict import made
from view_server import ViewServer

READY = "document.querySelectorAll('.aligned canvas[data-state=ready]').length === 2"
#: Brings the second of two aligned timelines into sight.
BELOW = (
    ("evaluate", "document.querySelectorAll('.aligned canvas')[1].scrollIntoView({ block: 'center' })"),
    ("box", ".aligned section:nth-of-type(2) canvas"),
)
BARS = """[...document.querySelectorAll('.waterfall .track .part')].map((bar) => bar.getBoundingClientRect())
    .map(({ left, right }) => [left, right])"""


@pytest.fixture
def pair(write_trace: Callable[..., Path]) -> tuple[Path, Path]:
    """A training that loads slowly, and the fixed one with another number of steps."""
    after = training((*STEPS_AFTER, *STEPS_AFTER[1:]))
    return write_trace(training(STEPS_BEFORE), "slow.json"), write_trace(after, "fixed.json")


@pytest.fixture
def server(pair: tuple[Path, Path]) -> Iterator[ViewServer]:
    """`hotspan view` on both."""
    with ViewServer(*pair) as running:
        yield running


def check(data: dict[str, Any]) -> None:
    """Changes add up to that of the whole, times to the whole itself."""
    for side in ("before", "after"):
        assert sum(cause[side] for cause in data["causes"]) == data[side]
    assert sum(cause["change"] for cause in data["causes"]) == data["after"] - data["before"]
    sizes = [abs(cause["change"]) for cause in data["causes"]]
    assert sizes == sorted(sizes, reverse=True)


def test_causes_add_up_to_the_change_of_the_step(server: ViewServer) -> None:
    data = server.api("compare/waterfall?before=0&after=1")
    check(data)
    assert data["measure"] == "Mean step on the host"
    # Nothing but loading differs.
    assert data["causes"][0]["key"] == "data_loader"
    assert data["causes"][0]["change"] == pytest.approx(data["after"] - data["before"], rel=0.05)
    # Means are those of the table of steps, without warm-up.
    for run, side, skipped in ((0, "before", 0), (1, "after", 0)):
        rows = server.rows(f"run/{run}/table/steps", "host")[skipped:]
        dots = data[f"steps_{side}"]
        assert [dot["time"] for dot in dots] == [row["time"] for row in rows]
        steady = [dot["time"] for dot in dots if not dot["warm_up"]]
        assert data[side] == pytest.approx(sum(steady) / len(steady), abs=10)


def test_on_devices_causes_are_those_of_idle_time(tmp_path: Path, hotspan_command: Command) -> None:
    slow, quick = made(tmp_path / "slow.json"), made(tmp_path / "quick.json", loading=1000, length=7000)
    with ViewServer(slow, quick) as server:
        data = server.api("compare/waterfall?before=0&after=1")
        check(data)
        assert data["measure"] == "Mean step on the device"
        loading = data["causes"][0]
        assert (loading["key"], loading["idle"]) == ("data_loader", True)
        assert loading["change"] < 0
        assert data["words"] == printed(hotspan_command, "report", slow, quick)["summary"]


def test_recordings_without_steps_are_compared_by_wall_time(viewed_server: ViewServer) -> None:
    runs = {run["file"]: run["id"] for run in viewed_server.api("runs")["runs"]}
    for before, after in (("before.hotspan", "after.hotspan"), ("run.hotspan", "lines.hotspan")):
        data = viewed_server.api(f"compare/waterfall?before={runs[before]}&after={runs[after]}")
        if data["measure"]:
            check(data)


def test_steps_are_paired_by_kind_and_not_by_number(server: ViewServer) -> None:
    data = server.api("compare/flame?before=0&after=1")
    names = [data["places"][place]["name"] for place in data["place"]]
    assert names.count("ProfilerStep*") == 1
    assert not [name for name in names if name.startswith("ProfilerStep#")]
    step = names.index("ProfilerStep*")
    # One recording has nearly twice as many steps: times are those of one.
    assert data["before"][step] == pytest.approx(sum(STEPS_BEFORE) / len(STEPS_BEFORE) * 1e6, rel=0.01)
    assert data["total_time"][step] < data["before"][step]
    assert data["source"] == "calls, per step"
    loader = next(place for place, name in enumerate(names) if name.startswith("enumerate(DataLoader)"))
    assert data["parent"][loader] == step
    assert 0 < data["total_time"][loader] < data["before"][loader]


@needs_browser
def test_what_got_slower_is_one_click_away(server: ViewServer) -> None:
    told = walk(
        server.address,
        ("show", "overview", "?run=0"),
        ("click", ".views a[data-tab=compare]"),
        ("wait", ".waterfall li"),
        ("texts", ".verdict .sentence"),
        ("texts", ".waterfall li .name"),
        ("evaluate", "document.querySelectorAll('.dots.before circle').length"),
        ("evaluate", "document.querySelectorAll('.dots.after circle').length"),
        (
            "evaluate",
            BARS,
        ),
        ("evaluate", "document.querySelector('.dots').getBoundingClientRect().bottom < innerHeight"),
    )
    assert told[3][0].startswith("A step (the median of 6 and of ")
    assert told[4][0] == "Before"
    assert told[4][-1] == "After"
    assert told[4][1].strip() == "DataLoader"
    assert (told[5], told[6]) == (len(STEPS_BEFORE), 2 * len(STEPS_AFTER) - 1)
    # Each bar begins where the one before it ended.
    bars = told[7]
    assert bars[1][1] == pytest.approx(bars[0][1], abs=2)
    assert bars[-1][1] == pytest.approx(bars[-2][0], abs=4)
    assert told[8]


@needs_browser
def test_it_is_accessible_and_part_of_a_page_to_share(
    server: ViewServer, pair: tuple[Path, Path], tmp_path: Path, hotspan_command: Command
) -> None:
    page = tmp_path / "report.html"
    assert hotspan_command("report", *pair, "--html", page).returncode == 0
    look(server.address, [visit("compare", "?run=0")])
    seen = look(page.as_uri(), [visit("compare", "", axe=False)], offline=True)
    assert "Mean step on the host, by cause" in seen["compare"]["text"]


@needs_browser
def test_typical_steps_are_aligned_on_one_scale(server: ViewServer) -> None:
    """Both begin at the same place, what is moved in one moves in the other, and a click leads to its timeline."""
    steps = [server.api(f"run/{run}/verdict") for run in (0, 1)]
    longest = max(step["end"] - step["begin"] for step in steps)
    shown = "[...document.querySelectorAll('.aligned canvas')].map((canvas) => canvas.dataset.seen)"
    together = f"new Set({shown}).size === 1"
    told = walk(
        server.address,
        ("show", "compare", "?run=0"),
        ("until", READY),
        ("until", together),
        ("evaluate", shown),
        ("texts", ".aligned h3"),
        ("click", ".aligned button[aria-label='Zoom in']"),
        ("until", f"{together} && {shown}[0].split(' ')[0] > 0"),
        ("evaluate", shown),
        ("click", ".aligned button:text-is('Reset')"),
        ("until", f"{together} && {shown}[0].split(' ')[0] < 0"),
        *BELOW,
    )
    (first, second) = told[3]
    assert first == second
    begin, end = map(int, first.split())
    assert begin < 0 < longest < end < longest * 1.1
    assert [title.split(":")[0] for title in told[4]] == ["Before", "After"]
    for title, step in zip(told[4], steps, strict=True):
        assert f"step {step['step']}" in title
    begin, end = map(int, told[7][0].split())
    assert end - begin < longest
    # In the first row of the first track is the step.
    box = told[-1]
    clicked = walk(
        server.address,
        ("show", "compare", "?run=0"),
        ("until", f"{READY} && {together}"),
        *BELOW,
        ("click_at", box["x"] + box["width"] / 2, box["y"] + 34 + 20 + 18 + 8),
        ("wait", "section[aria-label=Span] dl"),
        ("text", "section[aria-label=Span] h2"),
        ("parameters",),
    )
    assert clicked[-2] == f"ProfilerStep#{steps[1]['step']}"
    assert clicked[-1]["run"] == "1"
