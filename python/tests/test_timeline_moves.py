"""Moving through the timeline as in Perfetto: zoom at the cursor, keys from span to span, areas, idle lanes, args."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from browser_visits import needs_browser, walk
from conftest import complete
from test_timeline_links import LAPTOP, RULER, SETTLED, rows_of
from test_view_devices import H200
from view_server import ViewServer

#: Steps with a deep stack, in which each operator launches a kernel that begins late.
STEPS, OPERATORS = 4, 3


def events() -> Iterator[dict[str, Any]]:
    number = 0
    for step in range(STEPS):
        at = step * 1000
        yield complete(f"ProfilerStep#{step}", at, 900, cat="user_annotation")
        yield complete("train.py(7): train", at + 1, 890, cat="python_function")
        for place in range(OPERATORS):
            number += 1
            begin = at + 100 + place * 200
            launch = {"External id": number, "correlation": number}
            shapes = {"Input Dims": [[4, 8 + number], [8, 16]], "External id": number}
            yield complete("aten::mm", begin, 50, args=shapes)
            yield complete("cudaLaunchKernel", begin + 10, 10, cat="cuda_runtime", args=launch)
            kernel = {**launch, "device": 0, "stream": 7}
            yield complete("gemm", begin + 60, 80, cat="kernel", pid=0, tid=7, args=kernel)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("moves") / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": list(events())}))
    return path


@pytest.fixture(scope="module")
def server(trace: Path) -> Iterator[ViewServer]:
    """`hotspan view` on the steps, and on a training recorded on a GPU."""
    with ViewServer(trace, H200) as running:
        yield running


def numbers(server: ViewServer) -> dict[str, int]:
    """What the server calls each trace."""
    return {run["file"].split(".")[0]: run["id"] for run in server.api("runs")["runs"]}


@pytest.fixture(scope="module")
def run(server: ViewServer) -> int:
    return numbers(server)["trace"]


@pytest.fixture(scope="module")
def recorded(server: ViewServer) -> int:
    return numbers(server)["training_h200"]


def hit(server: ViewServer, run: int, text: str, number: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = server.api(f"run/{run}/search?text={quote(text)}&number={number}")["hit"]
    return found


def beside(server: ViewServer, run: int, span: dict[str, Any], to: str) -> dict[str, Any] | None:
    place = f"track={span['track']}&depth={span['depth']}&at={span['begin']}"
    found: dict[str, Any] | None = server.api(f"run/{run}/beside?{place}&to={to}")["hit"]
    return found


def test_every_span_is_reached_from_one_to_the_next(server: ViewServer, run: int) -> None:
    span: dict[str, Any] | None = hit(server, run, "aten::mm")
    begins = []
    while span is not None:
        begins.append(span["begin"])
        span = beside(server, run, span, "right")
    assert len(begins) == STEPS * OPERATORS
    assert begins == sorted(begins)
    last = hit(server, run, "aten::mm", -1)
    before = beside(server, run, last, "left")
    assert before is not None
    assert before["begin"] == begins[-2]


def test_up_is_around_and_down_is_within(server: ViewServer, run: int) -> None:
    span = hit(server, run, "aten::mm", 4)
    names = []
    above: dict[str, Any] | None = span
    while above is not None:
        names.append(above["name"])
        above = beside(server, run, above, "up")
    assert names == ["aten::mm", "train.py(7): train", "ProfilerStep#1"]
    below = beside(server, run, span, "down")
    assert below is not None
    assert below["name"] == "cudaLaunchKernel"
    assert span["begin"] <= below["begin"] < span["end"]
    assert beside(server, run, below, "down") is None


@pytest.mark.parametrize(
    "query", ["track=99&depth=0&at=0", "track=0&depth=9&at=0", "track=0&depth=0&at=-9e18"]
)
def test_beside_nothing_is_nothing(server: ViewServer, run: int, query: str) -> None:
    assert server.api(f"run/{run}/beside?{query}&to=left")["hit"] is None
    assert server.request(f"/{server.token}/api/run/{run}/beside?{query}&to=sideways")[0] == 400


def test_the_next_of_a_name_goes_around_all_of_them(server: ViewServer, run: int) -> None:
    first = span = hit(server, run, "aten::mm")
    seen = []
    for _ in range(STEPS * OPERATORS):
        place = f"track={span['track']}&depth={span['depth']}&at={span['begin']}"
        found = server.api(f"run/{run}/same?{place}&step=1")
        assert found["total"] == STEPS * OPERATORS
        assert server.api(f"run/{run}/same?{place}&step=0")["hit"] == span
        span = found["hit"]
        assert span["name"] == "aten::mm"
        seen.append(span["begin"])
    assert len(set(seen)) == STEPS * OPERATORS
    assert span == first


def test_search_takes_patterns_and_looks_into_args(server: ViewServer, run: int) -> None:
    def total(text: str, more: str) -> int:
        found: int = server.api(f"run/{run}/search?text={quote(text)}{more}")["total"]
        return found

    assert total("^aten::m+$", "&pattern=1") == STEPS * OPERATORS
    assert total("^aten::m+$", "") == 0
    assert total("ProfilerStep#[12]", "&pattern=1") == 2
    assert total(r"Input Dims: \[\[4, ?1[01]\]", "&pattern=1&args=1") == 2
    assert total(r"Input Dims: \[\[4, ?1[01]\]", "&pattern=1") == 0
    assert total("stream: 7", "&args=1") == STEPS * OPERATORS
    found = server.api(f"run/{run}/search?text=gemm|mm%24&pattern=1")
    assert sorted(found["names"]) == ["aten::mm", "gemm"]
    assert found["complete"]


@pytest.mark.parametrize("pattern", ["(", "[", "a{1000}{1000}{1000}", "x" * 2000, "(" * 500, "(?P<", "\\"])
def test_what_is_no_pattern_is_refused_with_words(server: ViewServer, run: int, pattern: str) -> None:
    found = server.api(f"run/{run}/search?pattern=1&args=1&text={quote(pattern, safe='')}")
    assert (found["total"], found["hit"]) == (0, None)
    assert "pattern" in found["problem"] or "expression" in found["problem"]


def test_hostile_patterns_and_names_do_not_hang_the_server(write_trace: Callable[..., Path]) -> None:
    # What takes a backtracking engine longer than the world will last.
    long = "a" * 3000 + "!"
    events = [
        complete(long + str(number), number, 1, args={"note": long + str(number)}) for number in range(200)
    ]
    with ViewServer(write_trace(events)) as server:
        for pattern in ("(a+)+$", "(a|a)*b", "(.*)*x", "((a{0,9}){0,9})b$"):
            found = server.api(f"run/0/search?pattern=1&args=1&text={quote(pattern, safe='')}")
            assert (found["total"], found["problem"]) == (0, None)
        assert server.api("run/0/search?text=a")["total"] == 200


def test_a_span_leads_to_all_calls_of_its_name(server: ViewServer, recorded: int) -> None:
    kinds = {
        "aten::addmm": "Operator",
        "cuLaunchKernelEx": "Operator",
        "vectorized_elementwise": "Kernel",
        "train.py(39): train": "Function",
        "Optimizer.step": "Marked range",
    }
    for text, kind in kinds.items():
        span = hit(server, recorded, text)
        details = server.api(f"run/{recorded}/span/{span['span']}")
        thing = server.api(f"run/{recorded}/thing?{details['door']}")
        assert thing["kind"] == kind
        same = f"track={span['track']}&depth={span['depth']}&at={span['begin']}"
        # A marked range is drawn on the device, too.
        drawn = 2 if kind == "Marked range" else 1
        assert thing["count"] * drawn == server.api(f"run/{recorded}/same?{same}&step=1")["total"]


def test_idle_lanes_add_up_to_the_idle_time(server: ViewServer, recorded: int) -> None:
    info = server.api(f"run/{recorded}/timeline")
    (idle,) = [track for track in info["tracks"] if track["kind"] == "idle"]
    fine: dict[float, tuple[float, str]] = {}
    level = 12
    for index in range((info["end"] >> (level + info["columns"])) + 1):
        part = server.tile(recorded, level, index, [idle["id"]])
        for begin, end, _, look, many in part.lanes[idle["id"]][0]:
            if many == 1:
                fine[begin] = (end, info["categories"][part.looks[look]["category"]])
    rows = server.rows(f"run/{recorded}/table/gpu", "idle")
    whole = server.tile(recorded, 52, 0, [idle["id"]])
    assert sum(many for *_, many in whole.lanes[idle["id"]][0]) == sum(row["pieces"] for row in rows)
    by_cause = {row["cause"]: row["total"] for row in rows}
    loader = sum(end - begin for begin, (end, kind) in fine.items() if kind == "idle data_loader")
    assert loader == pytest.approx(by_cause["data_loader"], rel=0.001)
    begin, (end, _) = max(fine.items(), key=lambda item: item[1][0] - item[0])
    details = server.api(f"run/{recorded}/call?track={idle['id']}&depth=0&at={int(begin)}")
    assert (details["name"], details["duration"]) == ("DataLoader", end - begin)
    assert [link["relation"] for link in details["linked"]] == ["behind it", "ended by"]
    assert server.api(f"run/{recorded}/thing?{details['door']}")["kind"] == "Gap"


def test_devices_come_before_deep_stacks(server: ViewServer, recorded: int) -> None:
    tracks = server.api(f"run/{recorded}/timeline")["tracks"]
    deep = next(place for place, track in enumerate(tracks) if track["depth"] > 10)
    assert all(place < deep for place, track in enumerate(tracks) if track["device"])


def test_an_area_has_the_tables_of_its_tracks(server: ViewServer, recorded: int) -> None:
    info = server.api(f"run/{recorded}/timeline")
    stream = next(track["id"] for track in info["tracks"] if track["device"] and track["kind"] == "spans")
    range_ = f"begin={info['begin']}&end={info['end'] // 2}"
    whole = server.rows(f"run/{recorded}/table/kernels?{range_}")
    part = server.rows(f"run/{recorded}/table/kernels?{range_}&tracks={stream}")
    assert [(row["name"], row["calls"]) for row in part] == [(row["name"], row["calls"]) for row in whole]
    assert server.api(f"run/{recorded}/table/operators?{range_}&tracks={stream}")["sections"] == []
    others = ",".join(str(track["id"]) for track in info["tracks"] if track["id"] != stream)
    assert server.api(f"run/{recorded}/table/kernels?{range_}&tracks={others}")["sections"] == []
    window = f"from={info['begin']}&to={info['end'] // 2}"
    kinds = {row[1] for row in server.api(f"run/{recorded}/within?{window}&{range_}&tracks={stream}")["rows"]}
    assert "kernel" in kinds
    assert "cpu_op" not in kinds


def place_of(
    server: ViewServer, run: int, span: dict[str, Any], box: dict[str, float]
) -> tuple[float, float]:
    """Where the middle of a span is while all of the trace is shown."""
    info = server.api(f"run/{run}/timeline")
    share = ((span["begin"] + span["end"]) / 2 - info["begin"]) / (info["end"] - info["begin"])
    row = rows_of(info)[span["track"]] + span["depth"] * 17 + 8
    return box["x"] + share * box["width"], box["y"] + RULER + row


@pytest.fixture(scope="module")
def stage(server: ViewServer, run: int) -> dict[str, float]:
    """Where the tracks are on the screen."""
    told = walk(server.address, ("show", "timeline", f"?run={run}"), ("drawn",), ("box", ".stage"), **LAPTOP)
    box: dict[str, float] = told[2]
    return box


def everything(server: ViewServer, run: int) -> str:
    info = server.api(f"run/{run}/timeline")
    return f"?run={run}&from={info['begin']}&to={info['end']}&top=0"


@needs_browser
def test_keys_zoom_where_the_mouse_is(server: ViewServer, run: int, stage: dict[str, float]) -> None:
    x = stage["x"] + stage["width"] * 0.8
    told = walk(
        server.address,
        ("show", "timeline", everything(server, run)),
        ("drawn",),
        ("parameters",),
        ("move", x, stage["y"] + 200),
        ("key", "w"),
        ("evaluate", SETTLED),
        ("parameters",),
        ("key", "s"),
        ("evaluate", SETTLED),
        ("parameters",),
        **LAPTOP,
    )

    def at(place: dict[str, str]) -> float:
        return int(place["from"]) + 0.8 * (int(place["to"]) - int(place["from"]))

    assert int(told[6]["to"]) - int(told[6]["from"]) < int(told[2]["to"]) - int(told[2]["from"])
    assert at(told[6]) == pytest.approx(at(told[2]), abs=20_000)
    assert at(told[9]) == pytest.approx(at(told[2]), abs=20_000)


@needs_browser
def test_keys_alone_pick_spans(server: ViewServer, run: int) -> None:
    def press(key: str) -> list[tuple[object, ...]]:
        return [("key", key), ("evaluate", SETTLED), ("texts", "section[aria-label=Span] h2")]

    info = server.api(f"run/{run}/timeline")
    keys = ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "."]
    keys += [",", "ArrowUp", "Escape"]
    told = walk(
        server.address,
        ("show", "timeline", f"?run={run}&from={info['begin']}&to={info['end']}"),
        ("drawn",),
        *itertools.chain.from_iterable(press(key) for key in keys),
        **LAPTOP,
    )
    names = [texts[0] if texts else None for texts in told[4::3]]
    # The idle lane, the stream, then into the thread and down its stack.
    assert names[1] == "gemm"
    assert names[2].startswith("ProfilerStep#")
    assert names[3:6] == ["train.py(7): train", "aten::mm", "cudaLaunchKernel"]
    assert names[6:] == ["cudaLaunchKernel", "cudaLaunchKernel", "cudaLaunchKernel", "aten::mm", None]


@needs_browser
def test_drag_selects_where_one_wants_that_and_edges_move(
    server: ViewServer, run: int, stage: dict[str, float]
) -> None:
    info = server.api(f"run/{run}/timeline")
    rows = rows_of(info)
    stream = next(track for track in info["tracks"] if track["device"] and track["kind"] == "spans")
    thread = next(track for track in info["tracks"] if track["name"].startswith("thread"))
    left, right = stage["x"] + stage["width"] * 0.25, stage["x"] + stage["width"] * 0.5
    top = stage["y"] + RULER + rows[stream["id"]] + 5
    bottom = stage["y"] + RULER + rows[thread["id"]] + 5
    further = stage["x"] + stage["width"] * 0.75
    range_ = ("parameters",)
    told = walk(
        server.address,
        ("show", "timeline", everything(server, run)),
        ("drawn",),
        ("click", "button:text-is('select')"),
        # Flat: all tracks.
        ("drag", left, top, right, top + 4),
        ("wait", "section[aria-label='Selected range'] tbody tr"),
        range_,
        # Down over two tracks.
        ("click", "button[aria-label='Clear the range']"),
        ("drag", left, top, right, bottom),
        ("wait", "section[aria-label='Selected range'] tbody tr"),
        range_,
        ("text", "section[aria-label='Selected range'] strong"),
        # The right edge.
        ("drag", right, top, further, top + 60),
        ("evaluate", SETTLED),
        range_,
        ("reload",),
        ("drawn",),
        ("text", "section[aria-label='Selected range'] strong"),
        # The preference stays, and Shift does the other thing.
        ("evaluate", "document.querySelector('.switch [aria-pressed=true]').textContent"),
        **LAPTOP,
    )
    flat, area, moved = told[5], told[9], told[13]
    assert "tracks" not in flat
    assert int(flat["begin"]) == pytest.approx((info["end"] - info["begin"]) * 0.25, rel=0.02)
    assert [int(track) for track in area["tracks"].split(",")] == [stream["id"], thread["id"]]
    assert told[10].endswith("on 2 tracks")
    assert (moved["begin"], moved["tracks"]) == (area["begin"], area["tracks"])
    assert int(moved["end"]) == pytest.approx((info["end"] - info["begin"]) * 0.75, rel=0.02)
    assert told[16].endswith("on 2 tracks")
    assert told[17] == "select"


@needs_browser
def test_the_palette_has_commands_views_tracks_and_steps(server: ViewServer, run: int) -> None:
    told = walk(
        server.address,
        ("show", "timeline", f"?run={run}"),
        ("drawn",),
        ("key", "Control+k"),
        ("fill", "dialog.palette input", "step 2"),
        ("texts", "dialog.palette li"),
        ("key", "Enter"),
        ("evaluate", SETTLED),
        ("parameters",),
        ("key", "Control+k"),
        ("fill", "dialog.palette input", "track stream"),
        ("texts", "dialog.palette li"),
        ("key", "Escape"),
        ("key", "Control+k"),
        ("fill", "dialog.palette input", "go to oper"),
        ("key", "Enter"),
        ("until", "location.hash.startsWith('#/operators')"),
        ("evaluate", "document.querySelectorAll('dialog').length"),
    )
    assert told[4] == ["Step 2"]
    assert (int(told[7]["from"]), int(told[7]["to"])) == (2_000_000, 2_900_000)
    assert told[10] == ["Track GPU 0, stream 7"]
    assert told[16] == 0


#: Where the edges of the window are in the minimap: the columns that have its colour from top to bottom.
EDGES = """(() => { const canvas = document.querySelector(".minimap canvas");
  const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const drawn = (x, y) => [0x1a, 0x56, 0xc4].every((part, place) => data[(y * width + x) * 4 + place] === part);
  const columns = [...Array(width).keys()].filter((x) => [...Array(height).keys()].every((y) => drawn(x, y)));
  return [columns[0], columns[columns.length - 1]]; })()"""


@needs_browser
def test_the_minimap_shows_and_moves_what_is_seen(server: ViewServer, run: int) -> None:
    info = server.api(f"run/{run}/timeline")
    length = info["end"] - info["begin"]
    around = f"?run={run}&from={info['begin']}&to={info['begin'] + length // 4}&top=0"
    (box,) = walk(server.address, ("show", "timeline", around), ("drawn",), ("box", ".minimap"), **LAPTOP)[2:]
    x, y = box["x"] + box["width"] * 0.1, box["y"] + 10
    told = walk(
        server.address,
        ("show", "timeline", around),
        ("drawn",),
        ("evaluate", EDGES),
        ("drag", x, y, x + box["width"] * 0.5, y),
        ("evaluate", SETTLED),
        ("parameters",),
        **LAPTOP,
    )
    assert told[2] == pytest.approx([0, box["width"] / 4], abs=3)
    assert int(told[5]["from"]) == pytest.approx(info["begin"] + length / 2, rel=0.02)
    assert int(told[5]["to"]) - int(told[5]["from"]) == pytest.approx(length / 4, rel=0.01)


@needs_browser
def test_an_idle_moment_says_why(server: ViewServer, run: int, stage: dict[str, float]) -> None:
    info = server.api(f"run/{run}/timeline")
    idle = next(track for track in info["tracks"] if track["kind"] == "idle")
    # Between the first kernel and the second.
    moment = {"track": idle["id"], "depth": 0, "begin": 300_000, "end": 320_000}
    x, y = place_of(server, run, moment, stage)
    told = walk(
        server.address,
        ("show", "timeline", everything(server, run)),
        ("drawn",),
        ("evaluate", SETTLED),
        ("click_at", x, y),
        ("wait", "section[aria-label=Span]"),
        ("text", "section[aria-label=Span]"),
        ("click", "section[aria-label=Span] a[data-door]"),
        ("wait", "aside.panel dl"),
        ("text", "aside.panel"),
        **LAPTOP,
    )
    assert "Host too slow to launch" in told[5]
    assert "gemm" in told[5]
    assert "Causes" in told[8]


@needs_browser
def test_search_in_the_browser_takes_patterns_and_args(server: ViewServer, run: int) -> None:
    told = walk(
        server.address,
        ("show", "timeline", f"?run={run}"),
        ("drawn",),
        ("click", "button[aria-label='Regular expression']"),
        ("click", "button:text-is('Args')"),
        ("fill", "input[type=search]", r"Dims: \[\[4, ?1[01]\]"),
        ("wait", "[data-hits='2']"),
        ("key", "Enter"),
        ("wait", "section[aria-label=Span]"),
        ("text", "section[aria-label=Span] h2"),
        ("parameters",),
        ("fill", "input[type=search]", "("),
        ("wait", "[role=status]:has-text('no regular expression')"),
    )
    assert told[8] == "aten::mm"
    assert (told[9]["pattern"], told[9]["args"]) == ("1", "1")


@needs_browser
def test_one_drag_gives_tables_and_one_click_the_flame_graph(
    server: ViewServer, run: int, stage: dict[str, float]
) -> None:
    y = stage["y"] + 10
    left, right = stage["x"] + stage["width"] * 0.2, stage["x"] + stage["width"] * 0.8
    told = walk(
        server.address,
        ("show", "timeline", everything(server, run)),
        ("drawn",),
        # One drag, in the ruler: it selects whatever the switch says. Then one click.
        ("drag", left, y, right, y),
        ("wait", "section[aria-label='Selected range'] tbody tr"),
        ("click", "section[aria-label='Selected range'] button:text-is('Flame graph')"),
        ("wait", "section[aria-label='Selected range'] canvas[data-nodes]"),
        ("evaluate", "Number(document.querySelector('canvas[data-nodes]').dataset.nodes)"),
        ("parameters",),
        ("click", "text=Open as a view"),
        ("wait", "canvas[data-nodes]"),
        ("evaluate", "Number(document.querySelector('canvas[data-nodes]').dataset.nodes)"),
    )
    range_ = f"begin={told[7]['begin']}&end={told[7]['end']}"
    assert told[6] == len(server.api(f"run/{run}/flame?{range_}")["parent"]) > 3
    assert told[10] == told[6]


@needs_browser
def test_notes_are_written_with_a_key_and_stay_in_the_address(server: ViewServer, run: int) -> None:
    span = hit(server, run, "aten::mm", 2)
    hostile = "<b>slow</b> here"
    told = walk(
        server.address,
        ("show", "timeline", f"?run={run}&span={span['span']}"),
        ("wait", "section[aria-label=Span] dl"),
        ("key", "t"),
        ("fill", "dialog input", hostile),
        ("key", "Enter"),
        ("wait", "section[aria-label=Notes] li"),
        ("parameters",),
        ("reload",),
        ("text", "section[aria-label=Notes] li"),
        ("evaluate", "document.querySelectorAll('main b').length"),
        ("click", "section[aria-label=Notes] button[aria-label^=Remove]"),
        ("until", "document.querySelector('section[aria-label=Notes]') === null"),
        ("parameters",),
    )
    assert json.loads(told[6]["notes"]) == [[span["begin"], hostile]]
    assert hostile in told[8]
    assert told[9] == 0
    assert "notes" not in told[12]


@needs_browser
@pytest.mark.parametrize("notes", ["{", "[1]", '[["a","b"],[5]]', "null"])
def test_what_is_no_note_is_left_out(server: ViewServer, run: int, notes: str) -> None:
    told = walk(
        server.address,
        ("show", "timeline", f"?run={run}&notes={quote(notes)}"),
        ("drawn",),
        ("evaluate", "document.querySelectorAll('section[aria-label=Notes]').length"),
    )
    assert told[2] == 0


@needs_browser
def test_tracks_are_pinned_by_a_pattern(server: ViewServer, recorded: int) -> None:
    tracks = server.api(f"run/{recorded}/timeline")["tracks"]
    streams = [str(track["id"]) for track in tracks if "stream" in track["name"].lower()]
    assert streams
    told = walk(
        server.address,
        ("show", "timeline", f"?run={recorded}"),
        ("click", ".tracks summary"),
        ("fill", "input[aria-label='Filter tracks']", "str[e]am"),
        ("click", ".tracks button:text-matches('^Pin th')"),
        ("parameters",),
        ("click", ".tracks button:text-is('Unpin all')"),
        ("parameters",),
        ("fill", "input[aria-label='Filter tracks']", "("),
        ("text", ".tracks [role=status]"),
    )
    assert told[4]["pin"].split(",") == streams
    assert "pin" not in told[6]
    assert "valid regular expression" in told[8]
