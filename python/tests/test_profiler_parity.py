"""A program under torch.profiler and under hotspan.profiler: same operators, counts, shapes, links, FLOPs, bytes.

Where the two differ, torch is at fault; each difference has its test at the end.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchvision")

import torch
import torch.profiler

import hotspan
import hotspan.profiler
from profiled_programs import PROGRAMS, threads

FULL = {"record_shapes": True, "profile_memory": True, "with_flops": True}
SEQUENCE = "Sequence number"


class Pair:
    """One program, recorded by both."""

    def __init__(self, make: Callable[[], Callable[[], None]], folder: Path, **options: Any) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(0)
        run = make()
        run()
        run()  # the second time everything is warm: caches, workspaces, lazily made state
        cpu = [hotspan.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=cpu, **options) as self.theirs:
            run()
        run()  # torch does not know the size of what was allocated unseen, so neither may see what the other allocated
        with hotspan.profiler.profile(activities=cpu, **options) as self.ours:
            run()
        self.their_trace = self.load(self.theirs, folder / "torch.json")
        self.our_trace = self.load(self.ours, folder / "hotspan.json")

    @staticmethod
    def load(prof: Any, path: Path) -> list[dict[str, Any]]:
        prof.export_chrome_trace(str(path))
        events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
        return events


@pytest.fixture(scope="module", params=sorted(PROGRAMS))
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOTSPAN_COLLECTOR", "native")
        return Pair(PROGRAMS[request.param], tmp_path_factory.mktemp("traces"), **FULL)


def operators(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event.get("cat") in ("cpu_op", "user_annotation")]


def test_the_collector_is_hotspans_own(pair: Pair) -> None:
    assert pair.ours.trace.format == "hotspan recording"
    assert pair.ours.trace.losses == {}


def test_same_operators_and_counts(pair: Pair) -> None:
    counts = [
        Counter(event["name"] for event in operators(events)) for events in (pair.our_trace, pair.their_trace)
    ]
    assert counts[0].total() > 10
    assert counts[0] == counts[1]


def test_same_rows(pair: Pair) -> None:
    for grouping in ({}, {"group_by_input_shape": True}):
        ours = {(row.key, str(row.input_shapes or "")): row for row in pair.ours.key_averages(**grouping)}
        theirs = {(row.key, str(row.input_shapes or "")): row for row in pair.theirs.key_averages(**grouping)}
        assert ours.keys() == theirs.keys()
        for key, their in theirs.items():
            assert ours[key].count == their.count, key


def test_same_flops(pair: Pair) -> None:
    ours = {row.key: row.flops for row in pair.ours.key_averages()}
    theirs = {row.key: row.flops for row in pair.theirs.key_averages() if row.flops}
    assert {key: ours[key] for key in theirs} == theirs


def described(events: list[dict[str, Any]]) -> Counter[str]:
    """Each operator with its inputs, and with its sequence number counted from the first."""
    numbers = [event["args"][SEQUENCE] for event in operators(events) if SEQUENCE in event["args"]]
    first = min(numbers, default=0)
    found: Counter[str] = Counter()
    for event in operators(events):
        args = {key: value for key, value in event["args"].items() if key not in ("External id", "Ev Idx")}
        if SEQUENCE in args:
            args[SEQUENCE] -= first
        found[json.dumps([event["name"], args], sort_keys=True)] += 1
    return found


def test_same_inputs_and_sequence_numbers(pair: Pair) -> None:
    ours, theirs = described(pair.our_trace), described(pair.their_trace)
    assert sorted((ours - theirs).elements()) == sorted((theirs - ours).elements())


def test_same_arrows_from_forward_to_backward(pair: Pair) -> None:
    def arrows(events: list[dict[str, Any]]) -> Counter[str]:
        """What each arrow begins and ends at, by the operator that starts there."""
        starts = {(event["tid"], event["ts"]): event["name"] for event in operators(events)}
        ends: dict[Any, list[str]] = {}
        for event in events:
            if event.get("cat") == "fwdbwd":
                ends.setdefault(event["id"], []).append(
                    f"{event['ph']} {starts.get((event['tid'], event['ts']))}"
                )
        return Counter("; ".join(sorted(ended)) for ended in ends.values())

    assert arrows(pair.our_trace) == arrows(pair.their_trace)


def test_same_memory(pair: Pair) -> None:
    def reported(events: list[dict[str, Any]]) -> list[int]:
        return sorted(event["args"]["Bytes"] for event in events if event["name"] == "[memory]")

    ours, theirs = reported(pair.our_trace), reported(pair.their_trace)
    assert sum(value for value in ours if value > 0) == sum(value for value in theirs if value > 0)
    our_rows = {row.key: row.self_cpu_memory_usage for row in pair.ours.key_averages()}
    their_rows = {row.key: row.self_cpu_memory_usage for row in pair.theirs.key_averages()}
    differing = {
        key: (our_rows.get(key), their_rows.get(key))
        for key in our_rows.keys() | their_rows.keys()
        if our_rows.get(key) != their_rows.get(key) and key != "[memory]"
    }
    assert differing == {}


def test_what_is_written_is_what_is_read(pair: Pair, tmp_path: Path) -> None:
    pair.ours.export_chrome_trace(tmp_path / "trace.json")
    read = hotspan.open(tmp_path / "trace.json")
    assert read.counts == pair.ours.trace.counts
    for ours, again in zip(pair.ours.key_averages(), read.key_averages(), strict=True):
        assert (ours.key, ours.count, ours.flops, ours.self_cpu_memory_usage) == (
            again.key,
            again.count,
            again.flops,
            again.self_cpu_memory_usage,
        )
        assert ours.self_cpu_time_total == pytest.approx(again.self_cpu_time_total, abs=0.001 * ours.count)


# Differences, each a defect of torch's.


def test_plain_threads_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch.profiler listens on the thread that started it, and on those that torch itself starts."""
    monkeypatch.setenv("HOTSPAN_COLLECTOR", "native")
    both = Pair(threads, tmp_path, profile_memory=True)
    assert "aten::mm" not in [row.key for row in both.theirs.key_averages()]
    (row,) = [row for row in both.ours.key_averages() if row.key == "aten::mm"]
    assert row.count == 30
    assert row.cpu_memory_usage == 30 * 16 * 16 * 4


def test_plain_threads_equal_torch_when_it_is_told_to_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._C._profiler import _ExperimentalConfig

    monkeypatch.setenv("HOTSPAN_COLLECTOR", "native")
    both = Pair(
        threads,
        tmp_path,
        record_shapes=True,
        experimental_config=_ExperimentalConfig(profile_all_threads=True),
    )
    assert Counter(event["name"] for event in operators(both.our_trace)) == Counter(
        event["name"] for event in operators(both.their_trace)
    )
