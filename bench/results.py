"""bench/RESULTS.md: one section for each benchmark, each replaced on its own.

A benchmark hands over its heading and its text; the sections of the others stay as they are, so that one of them can
be run again without losing the rest.
"""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import machine

PAGE = Path(__file__).with_name("RESULTS.md")


def stamp() -> str:
    """When, on what and with which versions a section was measured."""
    today = datetime.datetime.now(tz=datetime.timezone.utc)
    return f"{today:%Y-%m-%d}: {machine.describe()}; {machine.versions()}."


def write_section(heading: str, body: str, page: Path = PAGE) -> None:
    """Put a section into the page: in place of its predecessor, or at the end; `heading` comes without its `##`."""
    text = page.read_text() if page.exists() else ""
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE))
    sections[heading] = f"{stamp()}\n\n{body.strip()}"
    parts = ["# Benchmark results", *(f"## {name}\n\n{said.strip()}" for name, said in sections.items())]
    page.write_text("\n\n".join(parts) + "\n")


def write_lines(heading: str, lines: list[str], page: Path = PAGE) -> None:
    """The same for what was printed, kept as it was printed."""
    write_section(heading, "\n".join(["```", *lines, "```"]), page)
