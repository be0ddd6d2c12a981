"""Comparing traces: a program made slower on purpose, the same one twice, and rows that come and go."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

import hotspan
from advice_programs import Step, record, threads
from conftest import complete
from hotspan.diff import compare
from hotspan.profiler import profile
from hotspan.trace import Trace

Command = Callable[..., subprocess.CompletedProcess[str]]
STEP = 1000


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Two threads wait for each other, on a busy machine a thousand times as long as they compute."""
    with threads(1):
        yield


def products(count: int) -> Step:
    """Some matrix products too small for more than one thread."""
    matrix = torch.randn(24, 24)

    def step() -> None:
        for _ in range(count):
            torch.mm(matrix, matrix)

    return step


def steps_of(durations: list[float], operator: str = "aten::mm", **extra: float) -> list[dict[str, object]]:
    """Steps of 1 ms with one operator that takes this long, and others of one length."""
    events = []
    for number, duration in enumerate(durations):
        start = number * STEP
        events.append(complete(f"ProfilerStep#{number}", start, STEP, cat="user_annotation"))
        events.append(complete(operator, start + 10, duration))
        for place, (name, length) in enumerate(extra.items()):
            events.append(complete(f"aten::{name}", start + 600 + place * 100, length))
    return events


def test_a_program_made_slower_is_a_change() -> None:
    # Other programs may hold up this one at any time: what counts is that it can be seen.
    for _ in range(4):
        found = record(products(20), steps=7).diff(record(products(400), steps=7))
        product = next(row for row in found.rows if row.name == "aten::mm")
        if product.change_ns > 0 and {product.verdict, found.total.verdict} == {"change"}:
            break
    assert product.verdict == "change"
    assert product.before is not None
    assert product.after is not None
    assert (product.before.calls, product.after.calls) == (20, 400)
    assert product.change_ns == product.after.time_ns - product.before.time_ns > 0
    assert found.steps is not None
    assert min(found.steps) >= 6
    assert found.total.verdict == "change"


def test_a_trace_beside_itself_has_no_changes() -> None:
    trace = record(products(5), steps=5)
    same = trace.diff(trace)
    assert {row.verdict for row in [same.total, *same.rows]} == {"noise"}
    assert all(row.change_ns == 0 for row in same.rows)


@pytest.fixture
def pair(write_trace: Callable[..., Path]) -> tuple[Path, Path]:
    before = steps_of([100, 102, 98, 101, 99, 100], old=50, same=30)
    after = steps_of([150, 152, 148, 151, 149, 150], new=20, same=30)
    return write_trace(before, "before.json"), write_trace(after, "after.json")


def test_rows_come_go_and_change_by_numbers_one_can_check(pair: tuple[Path, Path]) -> None:
    before, after = (hotspan.open(path) for path in pair)
    found = before.diff(after)
    told = {row.name: (row.change_ns, row.change_percent, row.verdict) for row in found.rows}
    assert told == {
        "aten::mm": (50_000, 50.0, "change"),
        "aten::old": (-50_000, -100.0, "gone"),
        "aten::new": (20_000, None, "new"),
        "ProfilerStep*": (-20_000, pytest.approx(-2.44, abs=0.01), "noise"),
        "aten::same": (0, 0.0, "noise"),
    }
    assert found.total.verdict == "noise"
    assert found.steps == (6, 6)


def test_overlapping_steps_are_noise(write_trace: Callable[..., Path]) -> None:
    before = hotspan.open(write_trace(steps_of([100, 140, 90, 120, 95, 130]), "before.json"))
    after = hotspan.open(write_trace(steps_of([110, 150, 92, 125, 99, 135]), "after.json"))
    assert {row.name: row.verdict for row in before.diff(after).rows}["aten::mm"] == "noise"


def test_what_may_be_a_change_is_named_with_what_would_tell(
    write_trace: Callable[..., Path], hotspan_command: Command
) -> None:
    name = "aten::\x1b[31mmm"
    before = write_trace(steps_of([100, 140, 90, 120, 95, 130], name), "before.json")
    after = write_trace(steps_of([120, 170, 95, 145, 105, 160], name), "after.json")
    shown = hotspan_command("diff", before, after).stdout
    assert "Three recordings of each side may tell" in shown
    assert "\x1b" not in shown
    three = hotspan_command("diff", before, before, before, "--", after, after, after).stdout
    assert "Three recordings" not in three


def test_without_steps_sums_are_compared_and_nothing_is_claimed(write_trace: Callable[..., Path]) -> None:
    before = hotspan.open(write_trace([complete("aten::mm", 0, 100)], "before.json"))
    after = hotspan.open(write_trace([complete("aten::mm", 0, 300)], "after.json"))
    found = before.diff(after)
    assert found.steps is None
    (row,) = found.rows
    assert (row.change_ns, row.change_percent, row.verdict) == (200_000, 200.0, "unknown")


def test_every_way_of_grouping_sees_the_same_program() -> None:
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU())

    def recorded(batch: int) -> Trace:
        with profile(record_shapes=True, with_stack=True) as profiler:
            model(torch.randn(batch, 16))
        return profiler.trace

    before, after = recorded(4), recorded(8)
    shapes = {row.name: row.verdict for row in before.diff(after, by="shape").rows}
    assert shapes["aten::linear [[4, 16], [16, 16], [16]]"] == "gone"
    assert shapes["aten::linear [[8, 16], [16, 16], [16]]"] == "new"
    modules = {row.name for row in before.diff(after, by="module").rows}
    assert any(name.startswith("Linear") for name in modules), modules
    functions = {row.name: row.verdict for row in before.diff(after, by="function").rows}
    assert functions["<built-in function linear>"] == "unknown"
    assert before.diff(after, by="kernel").rows == []
    assert before.diff(after, by="line").rows == []
    with pytest.raises(ValueError, match="cannot compare by"):
        before.diff(after, by="colour")


def test_the_command_says_the_same(pair: tuple[Path, Path], hotspan_command: Command) -> None:
    shown = hotspan_command("diff", *pair)
    assert shown.returncode == 0, shown.stderr
    assert "of the median step of 6 before and 6 after" in shown.stdout
    assert "aten::mm" in shown.stdout
    assert "aten::same" not in shown.stdout
    assert "aten::same" in hotspan_command("diff", *pair, "--all").stdout
    told = json.loads(hotspan_command("diff", *pair, "--json").stdout)
    assert told["steps"] == {"before": 6, "after": 6}
    rows = {row["name"]: row for row in told["rows"]}
    assert rows["aten::mm"]["change"] == 50_000
    assert rows["aten::new"]["before"] is None
    assert rows["step"]["verdict"] == "noise"
    assert hotspan_command("diff", *pair, "--markdown", "--by", "kernel").returncode == 0
    assert hotspan_command("diff", pair[0]).returncode == 2
    several = hotspan_command("diff", "--json", pair[0], pair[0], "--", pair[1], pair[1])
    assert several.returncode == 0, several.stderr
    told = json.loads(several.stdout)
    assert told["before"] == [str(pair[0])] * 2
    assert told["steps"] == {"before": 12, "after": 12}
    assert {row["name"]: row["verdict"] for row in told["rows"]}["aten::mm"] == "change"


def test_several_recordings_of_each_side_are_compared(pair: tuple[Path, Path]) -> None:
    before, after = (hotspan.open(path) for path in pair)
    found = compare([before] * 3, [after] * 3)
    assert found.steps == (18, 18)
    verdicts = {row.name: row.verdict for row in found.rows}
    assert (verdicts["aten::mm"], verdicts["aten::same"], verdicts["aten::new"]) == ("change", "noise", "new")
    with pytest.raises(ValueError, match="each side"):
        compare([], [after])
