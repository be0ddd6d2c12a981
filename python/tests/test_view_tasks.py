"""What people come to the dashboard for, and how few clicks or keys it takes; on phones and in pages to share, too.

Each task has a test in a real browser that counts clicks, here or where the rest of its view is tested:

- where did my time go, 0 clicks: `test_where_the_time_goes_is_told_without_a_click`
- why is the GPU idle, and which line, 1: `test_why_the_device_is_idle_is_one_click_away`
- slowest call of an operator, 2: `test_the_slowest_call_of_an_operator_is_two_clicks_away`
- kernel to operator, module and stack, 1: `test_a_kernel_leads_to_its_operator_module_and_stack`
- what got slower between two runs, 1: `test_what_got_slower_is_one_click_away`
- straggler and why, 1: `test_the_straggler_and_the_reason_are_one_click_away`
- who holds the peak, 1: `test_who_holds_the_peak_is_one_click_away`
- a range, 1 drag and 1 click: `test_one_drag_and_one_click_lead_to_the_tables_and_the_flame_graph_of_a_range`
- search: `test_search_finds_what_the_server_counts_and_shows_it`
- a link restores the view: `test_an_address_restores_scroll_range_and_selection`
- flame graph, 1 click each: `test_zoom_search_and_invert_take_a_click_each`
- phone: `test_no_view_overflows_a_phone`
- keyboard only: `test_keys_alone_lead_from_the_verdict_to_the_reason`, `test_keys_alone_pick_spans`
- page to share: `test_a_page_to_share_offers_only_what_works`, and `test_view_shared`

`bench/view.py` does the one with five million events.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser_visits import Command, look, needs_browser, number, visit, walk
from device_training import write
from test_view_devices import H200
from test_view_trust import VIEWS
from view_server import ViewServer

pytestmark = needs_browser

VIEW = "document.querySelector('main').dataset.view"
FOCUSED = "document.activeElement.textContent"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewServer]:
    """A training recorded on a GPU, and a job of two ranks."""
    folder = tmp_path_factory.mktemp("tasks") / "job"
    folder.mkdir()
    write(folder)
    with ViewServer(H200, folder) as running:
        yield running


def test_the_list_of_tasks_names_tests_that_exist() -> None:
    assert __doc__ is not None
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    named = re.findall(r"\btest_\w+", __doc__)
    assert len(named) > 14
    for name in named:
        assert f"def {name}(" in tests or (Path(__file__).parent / f"{name}.py").exists(), name


def test_the_app_is_small(server: ViewServer) -> None:
    """Below 150 kB compressed, as a page to share has it in it."""
    page = server.request(f"/{server.token}/")[2].decode()
    files = re.findall(r'(?:src|href)="\./(assets/[^"]+)"', page)
    assert len(files) == 2
    sizes = [len(gzip.compress(server.request(f"/{server.token}/{file}")[2])) for file in files]
    assert sum(sizes) < 150_000


def test_who_holds_the_peak_is_one_click_away(server: ViewServer) -> None:
    told = walk(
        server.address,
        ("show", "overview", "?run=0"),
        ("click", ".views a[data-tab=memory]"),
        ("snapshot",),
    )
    tables = {table["title"]: table for table in told[2]["tables"]}
    held = tables["Held at the peak of cuda:0"]
    first = dict(zip(held["keys"], held["rows"][0], strict=True))
    assert first["operator"]
    assert first["category"]
    # Where the stack has a line of the program, that is shown, and not the function of torch that it called.
    lines = [row[held["keys"].index("stack")] for row in held["rows"]]
    assert any(line.startswith("train.py(") or "/train.py(" in line for line in lines)
    assert not any(line.startswith("<built-in method relu") for line in lines)
    assert "Used for, at the peak" in tables


def test_the_peak_of_a_range_is_that_of_the_range(server: ViewServer) -> None:
    # The peak is in the backward pass; at the beginning of the step, less is held.
    step = server.api("run/0/steps")[1]
    stretch = f"from={step['begin']}&to={step['begin'] + (step['end'] - step['begin']) // 4}"

    def held(call: str) -> int:
        rows = [row for row in server.rows(call, "peak") if row["device"] == "cuda:0"]
        holders = server.rows(call, "cuda:0")
        assert sum(row["bytes"] for row in holders) == sum(row["bytes"] for row in rows)
        return sum(int(row["bytes"]) for row in rows)

    assert 0 < held(f"run/0/memory?{stretch}") < held("run/0/memory")
    whole = f"from={step['begin']}&to={step['end']}"
    assert held(f"run/0/memory?{whole}") > held(f"run/0/memory?{stretch}")


def test_keys_alone_lead_from_the_verdict_to_the_reason(server: ViewServer) -> None:
    """Tabs by their numbers, views by brackets, rows by arrows, panels by Enter and Escape."""
    told = walk(
        server.address,
        ("show", "overview", "?run=0"),
        ("evaluate", "document.querySelector('.why').focus()"),
        ("key", "Enter"),
        ("evaluate", VIEW),
        ("evaluate", "document.querySelector('main a.door').focus()"),
        ("key", "Enter"),
        ("wait", "aside.panel dl"),
        ("text", "#panel-name"),
        ("key", "Escape"),
        ("until", "document.querySelector('aside.panel') === null"),
        ("key", "]"),
        ("evaluate", VIEW),
        ("key", "6"),
        ("evaluate", VIEW),
        ("key", "8"),
        ("evaluate", VIEW),
        ("key", "?"),
        ("evaluate", VIEW),
        ("key", "1"),
        ("evaluate", VIEW),
    )
    assert told[3] == "gpu"
    assert told[7]
    assert (told[11], told[13], told[15], told[17], told[19]) == (
        "kernels",
        "memory",
        "compare",
        "glossary",
        "overview",
    )


def test_every_link_of_the_header_is_reached_by_the_tab_key(server: ViewServer) -> None:
    told = walk(
        server.address,
        ("show", "overview", "?run=0"),
        ("wait", ".views a.nothing"),
        *[step for _ in range(22) for step in (("key", "Tab"), ("evaluate", FOCUSED))],
    )
    reached = " ".join(told[3::2])
    for title in (
        "All of the time",
        "Save as",
        "Timeline",
        "Distributed",
        "Compare",
        "Advice",
        "Data quality",
    ):
        assert title in reached


@pytest.mark.parametrize("run", [0, 1])
def test_no_view_overflows_a_phone(server: ViewServer, run: int) -> None:
    begin, end = (server.api(f"run/{run}/steps")[place][key] for place, key in ((1, "begin"), (2, "end")))
    views = [visit(view, f"?run={run}", axe=False) for view in (*VIEWS, "glossary")]
    ranged = [
        visit(view, f"?run={run}&begin={begin}&end={end}", f"{view} of a range", axe=False)
        for view in ("overview", "gpu", "memory", "flame")
    ]
    look(server.address, [*views, *ranged])


def test_a_page_to_share_offers_only_what_works(
    viewed_server: ViewServer, viewed_traces: Path, tmp_path: Path, hotspan_command: Command
) -> None:
    """Every link of the pages leads to a view that shows something, and no row or range is offered."""
    page = tmp_path / "report.html"
    files = (viewed_traces / "before.hotspan", viewed_traces / "after.hotspan")
    assert hotspan_command("report", *files, "--html", page).returncode == 0
    links = "[...new Set([...document.querySelectorAll('main a[href], .views a[href]')].map((link) => link.hash))]"
    told = walk(
        page.as_uri(),
        *[
            step
            for view in ("overview", "advice", "compare")
            for step in (("show", view, ""), ("evaluate", links))
        ],
        ("evaluate", "document.querySelectorAll('.chip, a.door').length"),
        offline=True,
    )
    assert told[-1] == 0
    hashes = sorted({hash_ for found in told[1:-1:2] for hash_ in found if hash_})
    assert hashes
    assert number(viewed_server, "after.hotspan") >= 0
    seen = walk(
        page.as_uri(),
        *[
            step
            for hash_ in hashes
            for step in (
                ("show", *hash_.removeprefix("#/").split("?", 1)[:1], f"?{hash_.partition('?')[2]}"),
                ("evaluate", "document.querySelector('main .problem')?.textContent ?? null"),
            )
        ],
        offline=True,
    )
    problems = {
        hash_: problem for hash_, problem in zip(hashes, seen[1::2], strict=True) if problem is not None
    }
    assert problems == {}
