"""Traces that hotspan records have the schema Kineto writes: the same top level, events, keys and types."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hotspan.profiler import ProfilerActivity, profile, record_function, schedule

LISTS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
MEMORY = {"Total Reserved", "Total Allocated", "Bytes", "Device Id", "Device Type", "Addr"}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A training loop recorded with everything on, exported and read back as plain JSON."""
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    path: Path = tmp_path_factory.mktemp("schema") / "trace.json"
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=2),
        record_shapes=True,
        profile_memory=True,
        with_flops=True,
    ) as recorded:
        for _ in range(3):
            with record_function("forward"):
                loss = model(torch.randn(2, 8)).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            recorded.step()
    recorded.export_chrome_trace(path)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def events(exported: dict[str, Any], phase: str, category: str | None = None) -> list[dict[str, Any]]:
    """All events of a phase, and of a category where one is given."""
    return [
        event
        for event in exported["traceEvents"]
        if event["ph"] == phase and (category is None or event.get("cat") == category)
    ]


def test_the_top_level_says_what_was_recorded(exported: dict[str, Any]) -> None:
    assert exported["schemaVersion"] == 1
    assert exported["deviceProperties"] == []
    assert {exported[key] for key in ("record_shapes", "profile_memory", "with_flops")} == {1}
    assert isinstance(exported["baseTimeNanoseconds"], int)
    assert isinstance(exported["trace_id"], str)


def test_every_event_has_its_fields(exported: dict[str, Any]) -> None:
    assert {event["ph"] for event in exported["traceEvents"]} == {"X", "i", "s", "f", "M"}
    for event in exported["traceEvents"]:
        assert isinstance(event["name"], str)
        # Kineto puts the span of the recording itself on a process called "Spans".
        is_recording = event["pid"] in ("Spans", "Traces", "")
        assert is_recording or (isinstance(event["pid"], int) and isinstance(event["tid"], int)), event
        assert isinstance(event["ts"], int | float)
    for event in events(exported, "X"):
        assert event["cat"] in ("cpu_op", "user_annotation", "Trace")
        assert event["dur"] >= 0


def test_operators_have_kinetos_args(exported: dict[str, Any]) -> None:
    operators = events(exported, "X", "cpu_op")
    assert len({event["args"]["External id"] for event in operators}) == len(operators)
    for event in operators:
        args = event["args"]
        assert isinstance(args["External id"], int)
        assert isinstance(args["Ev Idx"], int)
        assert args["Record function id"] == 0
        present = [key in args for key in LISTS]
        assert all(present) or not any(present), event
        if all(present):
            assert len({len(args[key]) for key in LISTS}) == 1, event
        assert ("Sequence number" in args) == ("Fwd thread id" in args)
    (linear, *_) = [event for event in operators if event["name"] == "aten::addmm"]
    assert linear["args"]["Input Dims"][:3] == [[16], [2, 8], [8, 16]]
    assert linear["args"]["Input type"][:3] == ["float", "float", "float"]


def test_steps_and_annotations_are_marked(exported: dict[str, Any]) -> None:
    names = [event["name"] for event in events(exported, "X", "user_annotation")]
    assert [name for name in names if name.startswith("ProfilerStep#")] == [
        "ProfilerStep#1",
        "ProfilerStep#2",
    ]
    assert names.count("forward") == 2
    assert names.count("Optimizer.step#SGD.step") == 2


def test_memory_and_arrows_are_complete(exported: dict[str, Any]) -> None:
    memory = [event for event in events(exported, "i") if event["name"] == "[memory]"]
    assert memory
    for event in memory:
        assert event["cat"] == "cpu_instant_event"
        assert event["s"] == "t"
        assert set(event["args"]) >= MEMORY
    starts = {event["id"] for event in events(exported, "s", "fwdbwd")}
    ends = {event["id"] for event in events(exported, "f", "fwdbwd")}
    assert starts
    assert starts == ends
    assert all(event["bp"] == "e" for event in events(exported, "f"))
