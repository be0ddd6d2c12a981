"""Single spans in a page to share: all of a small trace, of a large one those that advice points at."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from browser_visits import Command, needs_browser, walk
from conftest import complete
from test_timeline_moves import events
from test_view import device_events
from view_server import ViewServer

PROBLEM = "document.querySelector('main .problem')?.textContent ?? null"
OF_ALL_SPANS = 'main input[type=search], button[aria-label="Next of this name"]'
CARD = "section[aria-label=Span] h2"


def page_of(hotspan_command: Command, folder: Path, *traces: Path) -> Path:
    page = folder / "report.html"
    made = hotspan_command("report", *traces, "--html", page)
    assert made.returncode == 0, made.stderr
    return page


def answers(page: Path) -> dict[str, Any]:
    """What the page has in it."""
    found = re.search(r'<script type="application/json" id="answers">(.*?)</script>', page.read_text(), re.S)
    assert found is not None
    known: dict[str, Any] = json.loads(found[1])
    return known


def held(page: Path) -> tuple[bool, dict[str, Any]]:
    """Whether all spans are there, and the answers about those that are."""
    data = answers(page)["run/0/held"]
    known: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(data["data"])))
    if not data["all"]:
        assert {f"span/{span}" for span in data["spans"]} == set(known)
    return data["all"], known


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Steps with operators that launch kernels late."""
    path = tmp_path_factory.mktemp("shared") / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": list(events())}))
    return path


@pytest.fixture(scope="module")
def page(trace: Path, hotspan_command: Command) -> Path:
    return page_of(hotspan_command, trace.parent, trace)


@pytest.fixture(scope="module")
def server(trace: Path) -> Iterator[ViewServer]:
    with ViewServer(trace) as running:
        yield running


@pytest.fixture
def large(write_trace: Callable[..., Path]) -> Path:
    """Many operators, and steps that wait for the DataLoader."""
    made = [complete("aten::relu", at * 10, 5, tid=2) for at in range(12_000)]
    for step in range(6):
        at = step * 20_000
        made += [
            complete(f"ProfilerStep#{step}", at, 19_000, cat="user_annotation"),
            complete("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 10, 12_000),
            complete("aten::mm", at + 13_000, 5000),
        ]
    return write_trace(made)


def test_a_small_trace_is_there_as_a_whole(page: Path, server: ViewServer) -> None:
    all_of_them, known = held(page)
    assert all_of_them
    spans = {question for question in known if question.startswith("span/")}
    drawn = sum(
        track["spans"] for track in server.api("run/0/timeline")["tracks"] if track["kind"] == "spans"
    )
    assert len(spans) == drawn
    # The idle time of the device, too.
    assert len(known) > len(spans)
    for question, answer in known.items():
        assert answer == server.api(f"run/0/{question}"), question


def test_a_recorded_program_has_its_samples_and_calls(
    viewed_traces: Path, viewed_server: ViewServer, tmp_path: Path, hotspan_command: Command
) -> None:
    run = next(run["id"] for run in viewed_server.api("runs")["runs"] if run["file"] == "run.hotspan")
    _, known = held(page_of(hotspan_command, tmp_path, viewed_traces / "run.hotspan"))
    for question in list(known)[:: max(1, len(known) // 50)]:
        assert known[question] == viewed_server.api(f"run/{run}/{question}"), question


def test_of_a_large_trace_there_is_what_advice_points_at(
    large: Path, tmp_path: Path, hotspan_command: Command
) -> None:
    page = page_of(hotspan_command, tmp_path, large)
    all_of_them, known = held(page)
    assert not all_of_them
    findings = answers(page)["run/0/advice"]["findings"]
    named = set()
    for finding in findings:
        keys = [column["key"] for column in finding["evidence"]["columns"]]
        if "span" in keys:
            named |= {row[keys.index("span")] for row in finding["evidence"]["rows"]} - {None}
    assert named
    assert {f"span/{span}" for span in named} <= set(known)
    # The page is not much larger than one without spans.
    assert len(known) < 2000


@needs_browser
def test_a_click_shows_a_span_and_its_links_work(page: Path, server: ViewServer) -> None:
    kernel = server.api("run/0/search?text=gemm&number=1")["hit"]
    told = walk(
        page.as_uri(),
        ("show", "timeline", f"?run=0&span={kernel['span']}"),
        ("wait", "section[aria-label=Span] dl"),
        ("text", CARD),
        ("click", "button[data-relation='launched by']"),
        ("until", f"document.querySelector('{CARD}')?.textContent === 'cudaLaunchKernel'"),
        ("click", ".stack li:first-child button"),
        ("until", f"document.querySelector('{CARD}')?.textContent !== 'cudaLaunchKernel'"),
        ("key", "."),
        ("evaluate", PROBLEM),
        ("text", CARD),
        offline=True,
    )
    assert told[2] == "gemm"
    assert told[8] is None
    assert told[9] == "aten::mm"


@needs_browser
def test_search_finds_what_the_server_finds(page: Path, server: ViewServer) -> None:
    """By name, by pattern, in args, and from one to the next."""
    for text, options in (("MM", ()), ("^aten::m+$", (".*",)), ("Input Dims: .*12", (".*", "Args"))):
        query = (
            f"run/0/search?text={quote(text)}&pattern={int('.*' in options)}&args={int('Args' in options)}"
        )
        expected = server.api(f"{query}&number=1")
        assert expected["total"] > 1 or text.startswith("Input")
        told = walk(
            page.as_uri(),
            ("show", "timeline", "?run=0"),
            *[("click", f"main button:text-is('{option}')") for option in options],
            ("fill", "main input[type=search]", text),
            ("wait", "[data-hits]"),
            ("evaluate", "Number(document.querySelector('[data-hits]').dataset.hits)"),
            *[
                step
                for place in (0, 1)
                for step in (
                    ("click", "main button[aria-label=Next]"),
                    (
                        "until",
                        f"location.hash.includes('hit={place % expected['total']}') && location.hash.includes('span=')",
                    ),
                )
            ],
            ("parameters",),
            offline=True,
        )
        assert told[-6] == expected["total"]
        assert told[-1]["span"] == str(expected["hit"]["span"])


@needs_browser
def test_keys_go_from_span_to_span_as_with_a_server(page: Path, server: ViewServer) -> None:
    first = server.api("run/0/search?text=aten::mm&number=3")["hit"]
    keys = ("ArrowRight", "ArrowUp", "ArrowDown", "ArrowLeft", ".", ",")
    steps = [
        step
        for key in keys
        for step in (("key", key), ("wait", "section[aria-label=Span] dl"), ("parameters",))
    ]
    start = (
        ("show", "timeline", f"?run=0&span={first['span']}"),
        ("wait", "section[aria-label=Span] dl"),
    )
    alone = walk(page.as_uri(), *start, *steps, offline=True)
    served = walk(server.address, *start, *steps)
    chosen = [[told.get("span") for told in seen[4::3]] for seen in (alone, served)]
    assert chosen[0] == chosen[1]
    assert len(set(chosen[0])) > 2


@needs_browser
def test_advice_of_a_large_trace_leads_to_its_span(
    large: Path, tmp_path: Path, hotspan_command: Command
) -> None:
    """And what is not there is not offered: no search, no click on other spans."""
    page = page_of(hotspan_command, tmp_path, large)
    told = walk(
        page.as_uri(),
        ("show", "advice", ""),
        ("click", "main td a[href*='span=']"),
        ("wait", "section[aria-label=Span] dl"),
        ("text", CARD),
        ("evaluate", PROBLEM),
        ("evaluate", f"document.querySelectorAll('{OF_ALL_SPANS}').length"),
        ("key", "ArrowRight"),
        ("key", "l"),
        ("evaluate", PROBLEM),
        offline=True,
    )  # fmt: skip
    assert told[3]
    assert (told[4], told[5], told[8]) == (None, 0, None)


@needs_browser
def test_a_gap_that_advice_names_is_shown_without_tables(page: Path) -> None:
    told = walk(
        page.as_uri(),
        ("show", "timeline", "?run=0&from=0&to=900000&begin=200000&end=300000&track=device"),
        ("drawn",),
        ("evaluate", PROBLEM),
        ("texts", ".tabs button"),
        offline=True,
    )
    assert told[2] is None
    assert "Summarise view" not in told[3]


@needs_browser
def test_names_of_spans_are_text(
    write_trace: Callable[..., Path], tmp_path: Path, hotspan_command: Command
) -> None:
    path = write_trace(device_events(6))
    page = page_of(hotspan_command, tmp_path, path)
    _, known = held(page)
    hostile = next(key for key, value in known.items() if value["name"].startswith("<img"))
    told = walk(
        page.as_uri(),
        ("show", "timeline", f"?run=0&span={hostile.removeprefix('span/')}"),
        ("wait", "section[aria-label=Span] dl"),
        ("text", CARD),
        ("evaluate", "document.querySelectorAll('img').length"),
        offline=True,
    )
    assert told[2] == "<img src=x onerror=alert(1)>"
    assert told[3] == 0
