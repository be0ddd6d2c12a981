"""The peak of memory beside what the events themselves say: the allocator's own totals, else the sum of all changes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hotspan
from conftest import shared_trace_files
from test_memory_timeline import memory

GPU = {"Device Type": 1, "Device Id": 0}


def memory_events(path: Path) -> list[dict[str, Any]]:
    """The allocations and releases of a Kineto trace, in order of time, read by nothing of ours."""
    content = path.read_bytes()
    try:
        trace = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    except ValueError:
        return []
    events = trace.get("traceEvents") if isinstance(trace, dict) else None
    found = [event for event in events or [] if event.get("name") == "[memory]"]
    return sorted(found, key=lambda event: float(event["ts"]))


def expected_peaks(events: list[dict[str, Any]]) -> dict[tuple[int, int], int]:
    """The most that each device held. Totals of the CPU begin with the recording, so that only its changes tell."""
    peaks: dict[tuple[int, int], int] = {}
    sums: dict[tuple[int, int], int] = {}
    for event in events:
        args = event["args"]
        device = (args["Device Type"], args["Device Id"])
        sums[device] = sums.get(device, 0) + args["Bytes"]
        held = args["Total Allocated"] if device[0] != 0 and "Total Allocated" in args else sums[device]
        peaks[device] = max(peaks.get(device, 0), held)
    return peaks


@pytest.mark.parametrize("path", [pytest.param(path, id=path.name) for path in shared_trace_files()])
def test_peaks_of_sample_traces_are_those_of_their_events(path: Path) -> None:
    events = memory_events(path)
    if not events:
        return
    found = {
        (timeline.device_type, timeline.device_index): timeline.peak_bytes
        for timeline in hotspan.open(path).memory_timeline()
    }
    for device, peak in expected_peaks(events).items():
        # What was there before and is released in the recording was held from its beginning on: a sum cannot know that.
        assert found[device] >= peak, device
        if device[0] != 0:
            assert found[device] <= peak * 1.01, device


def test_what_was_held_before_the_recording_is_in_the_peak(write_trace: Callable[..., Path]) -> None:
    before = 1000
    changes = [(1, 100), (2, 300), (3, -300), (4, -50), (5, 20)]
    addresses = {100: 1, 300: 2, 50: 3, 20: 4}
    total, events = before, []
    for time, amount in changes:
        total += amount
        fields = {**GPU, "Total Allocated": total}
        events.append(memory(time, amount, 0x1000 * addresses[abs(amount)], **fields))
    trace = hotspan.open(write_trace(events))
    (timeline,) = trace.memory_timeline()
    assert timeline.peak_bytes == 1400
    # 50 of the 1000 are a block: it is released.
    assert [point.bytes for point in timeline.held] == [1000, 1100, 1400, 1100, 1050, 1070]
    holders = {holder.operator: holder.bytes for holder in timeline.holders}
    assert holders["(before the recording)"] == 950
    assert sum(timeline.peak_by_category.values()) == 1400
    (curve,) = trace.memory_by_category()
    assert max(sum(values) for values in zip(*curve.bytes.values(), strict=True)) == 1400
