"""The rules for pages that people read: lines that fit, links that lead somewhere, words that strangers understand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import REPOSITORY
from test_tidy import sources

WIDEST_LINE = 100
LONGEST_ARCHITECTURE = 150
# Programs write these: `hotspan advise --docs` and `make bench`. Their words are those of the programs.
GENERATED = {"docs/advice.md", "bench/RESULTS.md"}
# Words that only the authors of hotspan understood in this sense, and what to write instead.
PRIVATE_WORDS = {
    r"in a blink": "a measured time",
    r"(?<!in )(?<!-)places?": "index, position, slot, location or offset",
    r"looks(?! up\b)": "a noun for what happens: sample, check; or seems, appears",
    r"asks": "requests, needs, calls",
    r"arrows": "flows",
    r"marks|marked": "annotations, annotated",
    r"(tell|tells|told|telling)( \w+)? apart": "distinguish",
    r"(make|makes|made|making) way": "pause, release, step aside",
    r"mended": "fixed",
    r"dearest": "most expensive",
    r"loudly": "with a message",
    r"of the house": "of the project",
    r"arg layouts?|layouts of args": "arg schema",
}


def pages() -> list[str]:
    return [str(path.relative_to(REPOSITORY)) for path in sources(".md")]


def written_pages() -> list[str]:
    return [page for page in pages() if page not in GENERATED]


def prose(page: str) -> Iterator[tuple[int, str]]:
    """The numbered lines of a page, without code blocks."""
    fenced = False
    for number, line in enumerate((REPOSITORY / page).read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, line


def without_targets(line: str) -> str:
    """The line as a reader sees it: addresses behind links do not count."""
    return re.sub(r"\]\([^)]*\)|https?://\S+", "]", line)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_there_are_pages() -> None:
    assert {"README.md", "docs/README.md", "docs/glossary.md", *GENERATED} <= set(pages())


@pytest.mark.parametrize("page", written_pages())
def test_lines_fit(page: str) -> None:
    wide = [
        f"{page}:{number}"
        for number, line in prose(page)
        if not line.startswith(("|", "<", "![")) and len(without_targets(line)) > WIDEST_LINE
    ]
    assert wide == []


@pytest.mark.parametrize("page", pages())
def test_links_resolve(page: str) -> None:
    path = REPOSITORY / page
    text = "\n".join(line for _, line in prose(page))
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)
    broken = []
    for target in targets:
        if target.startswith(("https://", "http://")):
            continue
        file, _, anchor = target.partition("#")
        linked = path.parent / file if file else path
        if not linked.exists() or (anchor and anchor not in anchors(linked)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", written_pages())
def test_words_are_not_private(page: str) -> None:
    found = []
    for number, line in prose(page):
        words = re.sub(r"`[^`]*`", "", without_targets(line))
        found += [
            f"{page}:{number}: not '{match.group()}' but {instead}"
            for word, instead in PRIVATE_WORDS.items()
            if (match := re.search(rf"\b(?:{word})\b", words, re.IGNORECASE))
        ]
    assert found == []


def test_every_guide_is_in_the_index() -> None:
    index = (REPOSITORY / "docs/README.md").read_text()
    guides = {path.name for path in (REPOSITORY / "docs").glob("*.md")} - {"README.md"}
    assert {guide for guide in guides if f"({guide}" not in index} == set()


def test_the_architecture_stays_short() -> None:
    assert len((REPOSITORY / "ARCHITECTURE.md").read_text().splitlines()) <= LONGEST_ARCHITECTURE
