"""Compares two printed tables: same layout to the character, same words, numbers equal but for their last digit.

torch adds up binary fractions of microseconds, hotspan whole nanoseconds: a percentage or an average that lies exactly
between two printable numbers may be rounded either way.
"""

from __future__ import annotations

import re

NUMBER = re.compile(r"(-?\d+(?:\.(\d+))?)(.*)")


def same_cell(ours: str, theirs: str) -> bool:
    """Whether two cells say the same."""
    if ours == theirs:
        return True
    our_match, their_match = NUMBER.fullmatch(ours.strip()), NUMBER.fullmatch(theirs.strip())
    if not our_match or not their_match or our_match[3] != their_match[3]:
        return False
    decimals = len(our_match[2] or "")
    if not decimals or decimals != len(their_match[2] or ""):
        return False
    return abs(float(our_match[1]) - float(their_match[1])) < 1.5 * 10**-decimals


def columns(separator: str) -> list[tuple[int, int]]:
    """Where the columns of a table begin and end, from its line of dashes."""
    return [match.span() for match in re.finditer("-+", separator)]


def differences(ours: str, theirs: str) -> list[str]:
    """What is not the same, line by line, for a person to read."""
    our_lines, their_lines = ours.split("\n"), theirs.split("\n")
    found = []
    if len(our_lines) != len(their_lines):
        found.append(f"{len(our_lines)} lines, torch has {len(their_lines)}")
    spans = columns(next((line for line in their_lines if line.startswith("---")), ""))
    for number, (our, their) in enumerate(zip(our_lines, their_lines, strict=False), 1):
        if our == their:
            continue
        if "time total:" in their:
            (our_label, _, our_time), (label, _, time) = our.rpartition(" "), their.rpartition(" ")
            same = our_label == label and same_cell(our_time, time)
        else:
            same = len(our) == len(their) and all(
                same_cell(our[start:end], their[start:end]) for start, end in spans
            )
        if not same:
            found.append(f"line {number}\n  hotspan {our!r}\n  torch   {their!r}")
    return found
