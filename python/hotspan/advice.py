"""Advice: what rules found in a trace. The rules are in Rust; here findings get their names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from hotspan import _core


# No tuple: those have a method named count.
@dataclass(frozen=True, slots=True)
class Evidence:
    """One row of proof; ``at_ns`` counts from the start of the trace."""

    what: str
    count: int
    time_ns: int
    bytes: int | None
    at_ns: int | None
    source: str | None


class Gain(NamedTuple):
    """What a change would save at best, and how that was estimated."""

    time_ns: int
    percent: float
    how: str


class Finding(NamedTuple):
    """What one rule found."""

    rule: str
    title: str
    message: str
    fix: str
    source: str | None
    gain: Gain | None
    confidence: str
    evidence: list[Evidence]


class Skipped(NamedTuple):
    """Rules that could not look, what they lacked, and how to record it."""

    lacks: str
    record: str
    rules: list[str]


class Advice(list[Finding]):
    """Findings, most gain first; ``print`` shows them as ``hotspan advise`` does."""

    def __init__(self, findings: Iterable[Finding], skipped: list[Skipped], text: str) -> None:
        super().__init__(findings)
        self.skipped = skipped
        self._text = text

    def __str__(self) -> str:
        return self._text


def advise(trace: _core.Trace, only: Iterable[str], ignore: Iterable[str]) -> Advice:
    """Ask the rules about a trace."""
    findings, skipped, text = trace.advise(list(only), list(ignore))
    named = [
        Finding(
            rule,
            title,
            message,
            fix,
            source,
            None if gain is None else Gain(*gain),
            confidence,
            [Evidence(*row) for row in evidence],
        )
        for rule, title, message, fix, source, gain, confidence, evidence in findings
    ]
    return Advice(named, [Skipped(*row) for row in skipped], text)
