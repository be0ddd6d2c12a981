"""Counts a trace file with nothing but the standard library: what hotspan's numbers are held against.

Times are exact: JSON numbers become decimals, never floats, and sums are whole nanoseconds.
"""

from __future__ import annotations

import decimal
import gzip
import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Count:
    """How much of what a file holds."""

    spans: int
    # Category -> (spans, nanoseconds).
    categories: dict[str, tuple[int, int]]
    # Name -> (spans, nanoseconds).
    names: dict[str, tuple[int, int]]
    # Phase (s, t, f) and category -> flow events.
    flows: dict[tuple[str, str], int]
    # Name -> instants.
    instants: dict[str, int]
    counters: int
    # Top-level keys beside the events.
    metadata: frozenset[str]


class NotATraceError(Exception):
    """The file is JSON, but holds no list of events."""


def load_json(path: Path) -> Any:
    """The JSON of a plain or gzip file, with exact numbers."""
    raw = path.read_bytes()
    if raw.startswith(b"\x1f\x8b"):
        raw = gzip.decompress(raw)
    return json.loads(raw, parse_float=decimal.Decimal)


def nanoseconds(microseconds: int | decimal.Decimal) -> int:
    """Whole nanoseconds, halves away from zero."""
    exact = decimal.Decimal(microseconds) * 1000
    return int(exact.to_integral_value(rounding=decimal.ROUND_HALF_UP))


def count(path: Path) -> Count:
    """Counts a file."""
    content = load_json(path)
    if not isinstance(content, dict) or "traceEvents" not in content:
        raise NotATraceError(path)
    spans = 0
    categories: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    names: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    flows: Counter[tuple[str, str]] = Counter()
    instants: Counter[str] = Counter()
    counters = 0
    for event in content["traceEvents"]:
        phase = event["ph"]
        if phase == "X":
            spans += 1
            duration = nanoseconds(event["dur"])
            for sums in (categories[event.get("cat", "")], names[event["name"]]):
                sums[0] += 1
                sums[1] += duration
        elif phase in "stf":
            flows[phase, event.get("cat", "")] += 1
        elif phase in "iI":
            instants[event["name"]] += 1
        elif phase == "C":
            counters += 1
    return Count(
        spans=spans,
        categories={name: (sums[0], sums[1]) for name, sums in categories.items()},
        names={name: (sums[0], sums[1]) for name, sums in names.items()},
        flows=dict(flows),
        instants=dict(instants),
        counters=counters,
        metadata=frozenset(content) - {"traceEvents"},
    )
