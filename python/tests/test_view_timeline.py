"""The timeline of `hotspan view`: what is drawn is what was recorded, at every detail, of all or a selected range."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from conftest import REPOSITORY
from test_view import device_events, span
from view_server import Tile, ViewServer

Command = Callable[..., subprocess.CompletedProcess[str]]
NO_SPAN = 2**32 - 1
GPU_TRACE = REPOSITORY.parent / "shared/traces/hta/df_index_resolver/df_index_resolver.json.gz"

TRAINING = """
import torch
def forward(model, data):
    return model(data).square().mean()
def train():
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(30):
        optimizer.zero_grad()
        forward(model, torch.randn(256, 64)).backward()
        optimizer.step()
train()
"""


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small training, recorded with all that `hotspan run` records."""
    folder = tmp_path_factory.mktemp("training")
    (folder / "train.py").write_text(TRAINING)
    command = [sys.executable, "-m", "hotspan", "run", "--shapes", "-o", "train.hotspan", "train.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "train.hotspan"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, recorded: Path) -> Iterator[ViewServer]:
    """`hotspan view` on a trace made by hand, the recorded one, and a real one with a GPU where it is here."""
    made = tmp_path_factory.mktemp("timeline") / "made.json"
    events = device_events(300)
    events += [
        {"ph": "C", "name": "queue", "pid": 1, "tid": 1, "ts": at * 10.0, "args": {"length": at % 7}}
        for at in range(1000)
    ]
    events += arrow("fwdbwd", 5, (60.0, 1), (1360.0, 1)) + arrow("mine", 5, (55.0, 1), (2060.0, 1))
    made.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    with ViewServer(made, recorded, *([GPU_TRACE] if GPU_TRACE.exists() else [])) as running:
        yield running


def arrow(kind: str, number: int, begin: tuple[float, int], end: tuple[float, int]) -> list[dict[str, Any]]:
    """Both ends of an arrow."""
    common = {"cat": kind, "name": kind, "id": number, "pid": 1}
    return [
        {"ph": "s", "ts": begin[0], "tid": begin[1], **common},
        {"ph": "f", "bp": "e", "ts": end[0], "tid": end[1], **common},
    ]


def whole(server: ViewServer, run: int, level: int) -> tuple[dict[str, Any], list[Tile]]:
    """All tiles of a level."""
    info = server.api(f"run/{run}/timeline")
    tracks = [track["id"] for track in info["tracks"]]
    last = info["end"] >> (level + info["columns"])
    return info, [server.tile(run, level, index, tracks) for index in range(last + 1)]


@pytest.mark.parametrize("level", [10, 14, 17, 22, 40])
def test_every_span_is_drawn_or_counted_at_every_detail(server: ViewServer, level: int) -> None:
    info, tiles = whole(server, 0, level)
    expected = {track["id"]: track["spans"] for track in info["tracks"] if track["kind"] == "spans"}
    assert sum(expected.values()) == len([event for event in device_events(300) if event["ph"] == "X"])
    for track, count in expected.items():
        seen: dict[int, set[tuple[float, ...]]] = {}
        for tile in tiles:
            for lane, rectangles in enumerate(tile.lanes[track]):
                drawn = ((begin, end, of, many) for begin, end, of, _, many in rectangles)
                seen.setdefault(lane, set()).update(drawn)
        # What reaches over the edge of a tile is in both; nothing else may be told twice or overlap.
        assert sum(rectangle[3] for lane in seen.values() for rectangle in lane) == count
        for lane in seen.values():
            assert all(one[1] <= two[0] for one, two in itertools.pairwise(sorted(lane)))


def test_coarse_tiles_are_small_and_fine_ones_exact(server: ViewServer) -> None:
    (_, (tile,)) = whole(server, 0, 30)
    assert max(len(lane) for lanes in tile.lanes.values() for lane in lanes) <= 2048
    _, tiles = whole(server, 0, 11)
    kernels = {
        rectangle
        for tile in tiles
        for lanes in tile.lanes.values()
        for rectangle in itertools.chain(*lanes)
        if tile.looks[rectangle[3]]["name"] == "kernel<0>"
    }
    assert {(begin, end) for begin, end, *_ in kernels} == {
        (step * 1e6 + 110_000, step * 1e6 + 360_000) for step in range(300)
    }
    details = {server.api(f"run/0/span/{rectangle[2]}")["name"] for rectangle in list(kernels)[:3]}
    assert details == {"kernel<0>"}


def test_counters_keep_their_peaks(server: ViewServer) -> None:
    info, (coarse,) = whole(server, 0, 30)
    (queue,) = [track for track in info["tracks"] if track["name"] == "queue length"]
    assert (queue["kind"], queue["least"], queue["most"]) == ("counter", 0, 6)
    assert {value for _, value in coarse.counters[queue["id"]]} >= {6.0}
    fine = server.tile(0, 10, 0, [queue["id"]]).counters[queue["id"]]
    assert fine[:8] == [(at * 10_000.0, float(at % 7)) for at in range(8)]
    (busy,) = [track for track in info["tracks"] if track["name"] == "Busy"]
    (tile,) = whole(server, 0, 30)[1]
    points = tile.counters[busy["id"]]
    # Two kernels of 250 us in each step of 1000 us.
    assert max(value for _, value in points) <= 100
    assert points


def test_spans_know_what_they_belong_to(server: ViewServer) -> None:
    kernel = server.api("run/0/search?text=KERNEL%3C1&number=0")
    assert (kernel["total"], kernel["place"]) == (300, 0)
    details = server.api(f"run/0/span/{kernel['hit']['span']}")
    assert {arg["key"]: arg["value"] for arg in details["args"]}["stream"] == "7"
    assert [(link["relation"], link["name"]) for link in details["linked"]] == [
        ("launched by", "cudaLaunchKernel")
    ]
    # What a kernel is inside of is told of its launch.
    assert [caller["name"] for caller in details["stack"]] == [
        "ProfilerStep#0",
        "<img src=x onerror=alert(1)>",
        "cudaLaunchKernel",
    ]
    operator = server.api("run/0/search?text=aten%3A%3Amm&number=0")["hit"]
    links = server.api(f"run/0/span/{operator['span']}")["linked"]
    assert [(link["relation"], link["name"]) for link in links] == [
        ("launched", "kernel<0>"),
        ("arrow to", "aten::mm"),
        ("backward", "<img src=x onerror=alert(1)>"),
    ]
    back = server.api(f"run/0/span/{links[2]['span']}")["linked"]
    assert ("forward", operator["span"]) in [(link["relation"], link["span"]) for link in back]


def test_search_goes_through_the_whole_trace_and_around(server: ViewServer) -> None:
    def find(which: str) -> Any:
        return server.api(f"run/0/search?text=Aten::MM&{which}")

    assert find("number=0")["hit"]["begin"] == 50_000
    assert find("number=299")["hit"]["begin"] == 299_050_000
    assert find("number=300")["hit"] == find("number=0")["hit"]
    assert find("number=-1")["place"] == 299
    assert find("after=7000000")["hit"]["begin"] == 7_050_000
    assert find("after=299900000")["place"] == 0
    none = server.api("run/0/search?text=no-such-name")
    assert (none["total"], none["place"], none["hit"], none["names"]) == (0, 0, None, [])


def test_a_range_of_everything_has_the_tables_of_the_command_line(
    server: ViewServer, recorded: Path, hotspan_command: Command
) -> None:
    info = server.api("run/1/timeline")
    everything = f"begin={info['begin']}&end={info['end'] + 1}"
    printed = json.loads(hotspan_command("stats", recorded, "--by", "op", "--limit", "0", "--json").stdout)
    assert printed[0]["rows"]
    assert server.rows(f"run/1/table/operators?{everything}") == printed[0]["rows"]


def test_a_part_has_only_its_own_numbers(server: ViewServer) -> None:
    # Ten steps, from the beginning of one to the beginning of another, each with one kernel of each kind.
    rows = server.rows("run/0/table/kernels?begin=20000000&end=30000000")
    assert {row["name"]: row["calls"] for row in rows} == {"kernel<0>": 10, "kernel<1>": 10}
    # Cut in the middle of a kernel of 250 us that begins at 110 us.
    rows = server.rows("run/0/table/kernels?begin=0&end=200000")
    assert [(row["name"], row["total"]) for row in rows] == [("kernel<0>", 90_000)]
    everything = server.rows("run/0/table/kernels")
    assert {row["calls"] for row in everything} == {300}


def test_a_recorded_training_has_samples_operators_memory_and_arrows(server: ViewServer) -> None:
    info = server.api("run/1/timeline")
    kinds = {track["kind"] for track in info["tracks"]}
    assert kinds == {"spans", "samples", "counter"}
    assert any(track["unit"] == "bytes" and track["most"] > 1e6 for track in info["tracks"])
    called = server.api("run/1/search?text=train&number=0")["hit"]
    assert called["span"] == -1
    where = f"track={called['track']}&depth={called['depth']}&at={called['begin']}"
    sampled = server.api(f"run/1/call?{where}")
    assert sampled["name"] == called["name"]
    assert any("train.py:" in caller["place"] for caller in sampled["sampled"])
    operator = server.api("run/1/search?text=aten::addmm&number=0")["hit"]
    details = server.api(f"run/1/span/{operator['span']}")
    assert "[256, 64]" in {arg["key"]: arg["value"] for arg in details["args"]}["Input Dims"]
    assert "aten::linear" in [caller["name"] for caller in details["stack"]]
    total = server.api("run/1/search?text=aten::linear")["total"]
    linked = set()
    for number in range(0, total, max(1, total // 5)):
        linear = server.api(f"run/1/search?text=aten::linear&number={number}")["hit"]
        inside = [server.api(f"run/1/span/{linear['span']}")]
        linked |= {link["relation"] for found in inside for link in found["linked"]}
    forward = server.api("run/1/search?text=aten::mean&number=0")["hit"]
    linked |= {link["relation"] for link in server.api(f"run/1/span/{forward['span']}")["linked"]}
    assert "backward" in linked


@pytest.mark.skipif(not GPU_TRACE.exists(), reason="needs the shared traces")
def test_a_real_trace_is_drawn_whole(server: ViewServer, hotspan_command: Command) -> None:
    info = server.api("run/2/timeline")
    drawn = sum(track["spans"] for track in info["tracks"] if track["kind"] == "spans")
    arguments = ("stats", GPU_TRACE, "--by", "kernel", "--limit", "1", "--json")
    (kernel,) = json.loads(hotspan_command(*arguments).stdout)[0]["rows"]
    name, count = kernel["name"], kernel["calls"]
    found = server.api(f"run/2/search?text={quote(name)}&number=0")
    assert found["total"] == count
    assert drawn > 100_000
    level = math.ceil(math.log2(info["end"])) - info["columns"]
    _, tiles = whole(server, 2, level)
    told = sum(r[4] for tile in tiles for lanes in tile.lanes.values() for r in itertools.chain(*lanes))
    assert told >= drawn


@pytest.mark.parametrize(
    "call",
    [
        "tile?level=-5&index=1e300&tracks=0",
        "tile?level=99&index=-9e18&tracks=0,0,77,-1,x",
        "tile?level=52&index=9e18&tracks=0",
    ],
)
def test_absurd_tiles_are_empty(server: ViewServer, call: str) -> None:
    status, _, _ = server.request(f"/{server.token}/api/run/0/{call}")
    assert status == 200


def test_a_hostile_nesting_is_cut_and_said(tmp_path: Path) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text(json.dumps([span("x", "cpu_op", 1, 1, at, 2000 - 2 * at) for at in range(900)]))
    with ViewServer(deep) as server:
        info = server.api("run/0/timeline")
        assert info["tracks"][0]["depth"] == 400
        assert info["hidden"] == 500
