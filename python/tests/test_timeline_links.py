"""Links into the timeline lead to what they name: spans at their depth, callers on their track, gaps of a device."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from browser_visits import needs_browser, walk
from conftest import complete
from view_server import ViewServer

pytestmark = needs_browser

H200 = Path(__file__).parent / "data" / "training_h200.hotspan.zst"
LAPTOP = {"width": 1366, "height": 768}
#: Of web/src/widgets/timeline_layout.ts.
GROUP, HEAD, ROW, GAP, RULER, COUNTER, DEEP = 20, 18, 17, 4, 34, 40, 120
#: How much of the outline of the chosen span is seen.
OUTLINE = """(() => { const canvas = document.querySelector("canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const chosen = (at) => data[at] === 0xe8 && data[at + 1] === 0x71 && data[at + 2] === 0x0a;
  let count = 0;
  for (let at = 0; at < data.length; at += 4) if (chosen(at)) count++;
  return count; })()"""
SCROLL = "document.querySelector('.stage').scrollTop"
SETTLED = "new Promise((done) => setTimeout(done, 500))"


@pytest.fixture(scope="module")
def server() -> Iterator[ViewServer]:
    """`hotspan view` on a training recorded on a GPU."""
    with ViewServer(H200) as running:
        yield running


def rows_of(info: dict[str, Any]) -> dict[int, int]:
    """How far down the first lane of each track is."""
    tops, top, group = {}, 0, None
    for track in info["tracks"]:
        if track["process"] != group:
            group, top = track["process"], top + GROUP
        tops[track["id"]] = top + HEAD
        lanes = min(1, track["depth"]) if track["depth"] > DEEP else track["depth"]
        top += HEAD + (COUNTER if track["kind"] == "counter" else lanes * ROW) + GAP
    return tops


def a_deep_span(server: ViewServer) -> dict[str, Any]:
    """An operator below many calls of Python."""
    total = server.api("run/0/search?text=aten::native_layer_norm")["total"]
    hits = [
        server.api(f"run/0/search?text=aten::native_layer_norm&number={number}")["hit"]
        for number in range(total)
    ]
    deepest: dict[str, Any] = max(hits, key=lambda hit: int(hit["depth"]))
    assert deepest["depth"] > 8
    return deepest


def test_a_link_to_a_span_shows_it_at_its_depth(server: ViewServer) -> None:
    hit = a_deep_span(server)
    begin, end = hit["begin"] - 1_000_000, hit["end"] + 1_000_000
    for parameters in (f"?span={hit['span']}", f"?span={hit['span']}&from={begin}&to={end}"):
        told = walk(
            server.address,
            ("show", "timeline", parameters),
            ("drawn",),
            ("evaluate", SETTLED),
            ("evaluate", OUTLINE),
            ("evaluate", SCROLL),
            ("box", ".stage"),
            height=600,
        )
        assert told[3] > 20
        row = rows_of(server.api("run/0/timeline"))[hit["track"]] + hit["depth"] * ROW
        assert told[4] <= row <= told[4] + told[5]["height"] - RULER - ROW


def test_a_link_opens_what_is_folded_over_the_span(server: ViewServer) -> None:
    hit = a_deep_span(server)
    told = walk(
        server.address,
        ("show", "timeline", f"?span={hit['span']}&fold={hit['track']}&close=0,1,2,3"),
        ("drawn",),
        ("evaluate", SETTLED),
        ("evaluate", OUTLINE),
        ("parameters",),
    )
    assert told[3] > 20
    assert str(hit["track"]) not in told[4]["fold"].split(",")


def test_a_caller_is_on_its_own_track(server: ViewServer) -> None:
    kernel = server.api("run/0/search?text=flash_fprop&number=0")["hit"]
    details = server.api(f"run/0/span/{kernel['span']}")
    caller = details["stack"][-1]
    assert caller["track"] != details["track_id"]
    told = walk(
        server.address,
        ("show", "timeline", f"?span={kernel['span']}"),
        ("drawn",),
        ("click", ".stack button >> nth=0"),
        ("evaluate", SETTLED),
        ("parameters",),
        ("evaluate", OUTLINE),
        ("text", "section[aria-label=Span] h2"),
    )
    assert told[4]["span"] == str(caller["span"])
    assert told[5] > 20
    assert told[6] == caller["name"]
    assert server.api(f"run/0/span/{caller['span']}")["depth"] == caller["depth"]


def test_an_address_restores_scroll_range_and_selection(server: ViewServer) -> None:
    hit = a_deep_span(server)
    first = walk(
        server.address,
        ("show", "timeline", f"?span={hit['span']}&begin={hit['begin']}&end={hit['end']}"),
        ("drawn",),
        ("evaluate", SETTLED),
        ("evaluate", "document.querySelector('.stage').scrollBy(0, 45)"),
        ("evaluate", SETTLED),
        ("parameters",),
        ("evaluate", SCROLL),
        ("evaluate", OUTLINE),
    )
    address = first[5]
    assert {"from", "to", "top", "span", "begin", "end"} <= set(address)
    again = walk(
        server.address,
        ("show", "timeline", "?" + "&".join(f"{key}={value}" for key, value in address.items())),
        ("drawn",),
        ("evaluate", SETTLED),
        ("parameters",),
        ("evaluate", SCROLL),
        ("evaluate", OUTLINE),
        ("text", "section[aria-label=Span] h2"),
        ("text", "section[aria-label='Selected range'] strong"),
    )
    assert again[3] == address
    assert (again[4], again[5]) == (first[6], first[7])
    assert again[6] == hit["name"]


def idle_device() -> list[dict[str, Any]]:
    """Steps in which the device works for a tenth of the time; the host has deep stacks above it."""
    events: list[dict[str, Any]] = []
    for step in range(6):
        at = step * 10_000
        events.append(complete(f"ProfilerStep#{step}", at, 9_900, cat="user_annotation"))
        for depth in range(60):
            events.append(
                complete(
                    f"train.py({depth}): f{depth}", at + depth + 1, 9_000 - 2 * depth, cat="python_function"
                )
            )
        launch = {"correlation": step + 1, "External id": step + 1}
        events.append(complete("aten::mm", at + 100, 300, args={"External id": step + 1}))
        events.append(complete("cudaLaunchKernel", at + 150, 20, cat="cuda_runtime", args=launch))
        kernel = {**launch, "device": 0, "stream": 7}
        events.append(complete("gemm", at + 200, 900 + step, cat="kernel", pid=0, tid=7, args=kernel))
    return events


def test_an_idle_finding_opens_the_gap_with_its_device_in_view(write_trace: Callable[..., Path]) -> None:
    with ViewServer(write_trace(idle_device())) as server:
        findings = server.api("run/0/advice")["findings"]
        finding = next(finding for finding in findings if finding["rule"] == "low-device-use")
        (gap, *_) = finding["gaps"]
        # The longest: from the end of a kernel to the end of the step.
        assert (gap["begin"], gap["end"]) == (1_100_000, 9_900_000)
        told = walk(
            server.address,
            ("show", "advice", ""),
            ("click", "article:has-text('low-device-use') td a >> nth=0"),
            ("drawn",),
            ("evaluate", SETTLED),
            ("parameters",),
            ("evaluate", SCROLL),
            ("box", ".stage"),
            **LAPTOP,
        )
        info = server.api("run/0/timeline")
        device = next(track["id"] for track in info["tracks"] if track["device"])
        place = told[4]
        assert (int(place["begin"]), int(place["end"])) == (gap["begin"], gap["end"])
        assert int(place["from"]) < gap["begin"] < gap["end"] < int(place["to"])
        assert told[5] <= rows_of(info)[device] <= told[5] + told[6]["height"] - RULER - ROW


def test_the_card_of_a_clicked_span_is_in_view_and_resizable(server: ViewServer) -> None:
    hit = a_deep_span(server)
    around = f"?from={hit['begin'] - 50_000}&to={hit['end'] + 50_000}&top={{top}}"
    row = rows_of(server.api("run/0/timeline"))[hit["track"]] + hit["depth"] * ROW
    stage = walk(
        server.address,
        ("show", "timeline", around.format(top=row - 300)),
        ("drawn",),
        ("box", ".stage"),
        **LAPTOP,
    )
    box = stage[2]
    middle = box["x"] + box["width"] / 2
    told = walk(
        server.address,
        ("show", "timeline", around.format(top=row - 300)),
        ("drawn",),
        ("click_at", middle, box["y"] + RULER + 300 + ROW / 2),
        ("wait", "section[aria-label=Span]"),
        ("evaluate", SETTLED),
        ("text", "section[aria-label=Span] h2"),
        ("box", ".dock"),
        ("evaluate", "scrollY"),
        ("evaluate", OUTLINE),
        ("evaluate", "document.querySelector('[role=separator]').focus()"),
        ("key", "ArrowUp"),
        ("box", ".dock"),
        ("box", "[role=separator]"),
        **LAPTOP,
    )
    assert told[5] == hit["name"]
    dock = told[6]
    assert told[7] == 0
    assert dock["y"] >= 0
    assert dock["y"] + dock["height"] <= LAPTOP["height"]
    assert told[8] > 20
    assert told[11]["height"] == dock["height"] + 30
    edge = told[12]
    dragged = walk(
        server.address,
        ("show", "timeline", f"?span={hit['span']}"),
        ("drawn",),
        ("box", ".dock"),
        ("box", "[role=separator]"),
        ("drag", middle, edge["y"] + 33, middle, edge["y"] - 27),
        ("box", ".dock"),
        ("evaluate", SETTLED),
        ("evaluate", OUTLINE),
        **LAPTOP,
    )
    assert dragged[5]["height"] > dragged[2]["height"] + 40
    assert dragged[7] > 20


def test_the_wheel_scrolls_the_page_where_the_timeline_ends(server: ViewServer) -> None:
    info = server.api("run/0/timeline")
    told = walk(
        server.address,
        ("show", "timeline", f"?begin={info['begin']}&end={info['end']}"),
        ("drawn",),
        ("wheel", 600, 400, 300),
        ("evaluate", SCROLL),
        ("evaluate", "scrollY"),
        ("evaluate", "document.querySelector('.stage').scrollTo(0, 1e6)"),
        ("evaluate", SETTLED),
        ("wheel", 600, 400, 300),
        ("evaluate", "scrollY"),
        **LAPTOP,
    )
    assert told[3] > 0
    assert told[4] == 0
    assert told[8] > 0


def test_no_lane_is_empty_above_what_crosses_a_short_call(server: ViewServer) -> None:
    """An annotation begins within the call that opened it and outlives that call by far."""
    for name, number in itertools.product(("forward", "backward"), range(3)):
        hit = server.api(f"run/0/search?text={name}&number={number}")["hit"]
        if hit["name"] != name:
            continue
        middle = (hit["begin"] + hit["end"]) // 2
        above = [
            caller["depth"]
            for caller in server.api(f"run/0/span/{hit['span']}")["stack"]
            if caller["begin"] <= middle < caller["end"]
        ]
        assert above == list(range(hit["depth"]))


#: Around which points an arrow is drawn.
ARROW = """((points) => { const canvas = document.querySelector(".stage canvas");
  const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const drawn = (x, y) => {
    const at = (y * width + x) * 4;
    return Math.abs(data[at] - 0xc2) + Math.abs(data[at + 1] - 0x41) + Math.abs(data[at + 2] - 0x0c) < 30;
  };
  const near = [-3, -2, -1, 0, 1, 2, 3];
  return points.map(([x, y]) => near.some((right) => near.some((down) => drawn(x + right, y + down))));
})"""


def test_an_arrow_leaves_the_launch_and_arrives_at_the_kernel(write_trace: Callable[..., Path]) -> None:
    launch = {"correlation": 1, "External id": 1}
    kernel = {**launch, "device": 0, "stream": 7}
    events = [
        complete("train.py(1): train", 0, 1000, cat="python_function"),
        complete("aten::mm", 100, 500, args={"External id": 1}),
        complete("cudaLaunchKernel", 400, 20, cat="cuda_runtime", args=launch),
        complete("gemm", 700, 200, cat="kernel", pid=0, tid=7, args=kernel),
    ]
    with ViewServer(write_trace(events)) as server:
        spans = {
            name: server.api(f"run/0/search?text={name}&number=0")["hit"]
            for name in ("aten::mm", "cudaLaunchKernel", "gemm")
        }
        info = server.api("run/0/timeline")
        around = f"?from=0&to=1000000&span={spans['aten::mm']['span']}&top=0"
        (box,) = walk(server.address, ("show", "timeline", around), ("drawn",), ("box", ".stage canvas"))[2:]

        def point(name: str) -> list[float]:
            hit = spans[name]
            y = RULER + rows_of(info)[hit["track"]] + (hit["depth"] + 0.5) * ROW
            return [round(hit["begin"] / 1e6 * box["width"]), round(y)]

        told = walk(
            server.address,
            ("show", "timeline", around),
            ("drawn",),
            ("evaluate", SETTLED),
            ("evaluate", f"{ARROW}({[point(name) for name in spans]})"),
        )
        # The operator is marked all around: an arrow from its beginning would lie inside of that.
        assert told[3] == [False, True, True]
