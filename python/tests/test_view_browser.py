"""The dashboard in a real browser: each view, over real traces, has the numbers of the command line cell by cell."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from browser_visits import Command, Visits, check, look, needs_browser, number, pictured, printed, visit
from conftest import REPOSITORY, SHARED_TRACES
from shown_tables import expected, shown
from view_server import ViewServer

GPU_TRACE = SHARED_TRACES / "kineto_tb_plugin/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz"
RANKS = SHARED_TRACES / "param/dlrm_8ranks"
LARGEST_PICTURE = 150_000

pytestmark = needs_browser
needs_shared = pytest.mark.skipif(
    not GPU_TRACE.exists(), reason="shared/traces does not lie beside the repository"
)


def visits_of(after: int, before: int, sampled: int, source: Path) -> Visits:
    """Every view that needs no GPU."""
    of_after, of_sampled = f"?run={after}", f"?run={sampled}"
    return [
        visit("overview", of_sampled),
        visit("advice", of_after),
        visit("timeline", of_after),
        visit("steps", of_after),
        pictured(visit("operators", of_after)),
        *(
            visit("operators", f"{of_after}&by={by}", by, axe=False, phone=False)
            for by in ("shapes", "stacks", "modules", "threads")
        ),
        visit("modules", of_after, "module_tree"),
        visit("functions", of_after),
        pictured(visit("source", f"{of_sampled}&file={quote(str(source), safe='')}")),
        visit("flame", of_sampled),
        visit("flame", f"{of_sampled}&order=time", "flame-time", axe=False),
        visit("flame", f"{of_sampled}&order=sandwich&function=1", "flame-sandwich"),
        pictured(visit("flame", f"{of_after}&order=compared&before={before}", "flame-compared"), dark=True),
        visit("memory", of_after),
        pictured(visit("compare", f"{of_after}&before={before}")),
        visit("compare", f"{of_after}&before={before}&by=op", "compare-op", axe=False),
        visit("quality", of_after),
    ]


def around_prepare(server: ViewServer, run: int) -> dict[str, Any]:
    """The sandwich of a function of the program."""
    places = [place["name"] for place in server.api(f"run/{run}/flame")["places"]]
    around = f"?run={run}&order=sandwich&search=prepare&function={places.index('prepare')}"
    return pictured(visit("flame", around, "flame-sandwich-program", height=460))


@pytest.fixture(scope="session")
def seen(viewed_server: ViewServer, viewed_traces: Path) -> dict[str, Any]:
    """What the browser saw of the recorded traces."""
    runs = [number(viewed_server, file) for file in ("after.hotspan", "before.hotspan", "run.hotspan")]
    lines = f"?run={number(viewed_server, 'lines.hotspan')}"
    words = quote(str(viewed_traces / "words.py"), safe="")
    more = [
        *(visit(view, f"?run={runs[0]}") for view in ("kernels", "copies", "gpu")),
        pictured(visit("functions", f"{lines}&by=lines", "lines")),
        visit("source", f"{lines}&file={words}", "source-lines"),
        pictured(visit("quality", f"?run={runs[2]}", "quality-sampled")),
        around_prepare(viewed_server, runs[2]),
    ]
    return look(viewed_server.address, [*visits_of(*runs, viewed_traces / "train.py"), *more])


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("operators", "op"),
        ("shapes", "shape"),
        ("stacks", "stack"),
        ("modules", "module"),
        ("threads", "thread"),
    ],
)
def test_operators_are_those_of_the_command_line(
    seen: dict[str, Any],
    viewed_server: ViewServer,
    viewed_traces: Path,
    hotspan_command: Command,
    name: str,
    by: str,
) -> None:
    run = number(viewed_server, "after.hotspan")
    rows = printed(hotspan_command, "stats", viewed_traces / "after.hotspan", "--by", by, "--limit", 0)[0][
        "rows"
    ]
    check(seen[name], 0, viewed_server.api(f"run/{run}/table/{name}")["sections"][0]["table"], rows)


def test_steps_report_and_quality_are_those_of_the_command_line(
    seen: dict[str, Any], viewed_server: ViewServer, viewed_traces: Path, hotspan_command: Command
) -> None:
    run = number(viewed_server, "after.hotspan")
    steps = printed(hotspan_command, "steps", viewed_traces / "after.hotspan")[0]["host"]
    check(seen["steps"], 0, viewed_server.api(f"run/{run}/table/steps")["sections"][0]["table"], steps)
    sampled = number(viewed_server, "run.hotspan")
    report = printed(hotspan_command, "report", viewed_traces / "run.hotspan")["report"]
    sections = viewed_server.api(f"run/{sampled}/table/overview")["sections"]
    assert [section["key"] for section in sections] == list(report)
    by_title = {table["title"]: table for table in seen["overview"]["tables"]}
    for section in sections:
        keys, cells = expected(section["table"], report[section["key"]])
        assert by_title[section["key"]]["keys"] == keys
        assert by_title[section["key"]]["rows"] == cells


def test_comparisons_are_those_of_the_command_line(
    seen: dict[str, Any], viewed_server: ViewServer, viewed_traces: Path, hotspan_command: Command
) -> None:
    before, after = number(viewed_server, "before.hotspan"), number(viewed_server, "after.hotspan")
    files = (viewed_traces / "before.hotspan", viewed_traces / "after.hotspan")
    report = printed(hotspan_command, "report", *files)["report"]
    sections = viewed_server.api(f"compare?before={before}&after={after}&by=overview")["sections"]
    for place, section in enumerate(sections):
        check(seen["compare"], place, section["table"], report[section["key"]])


def test_functions_and_changes_are_those_of_the_command_line(
    seen: dict[str, Any], viewed_server: ViewServer, viewed_traces: Path, hotspan_command: Command
) -> None:
    before, after = number(viewed_server, "before.hotspan"), number(viewed_server, "after.hotspan")
    file = viewed_traces / "after.hotspan"
    functions = printed(
        hotspan_command, "stats", file, "--by", "function", "--sort", "tottime", "--limit", 0
    )[0]["rows"]
    table = viewed_server.api(f"run/{after}/table/functions")["sections"][0]["table"]
    check(seen["functions"], 0, table, functions)
    changes = printed(hotspan_command, "diff", viewed_traces / "before.hotspan", file, "--limit", 0)["rows"]
    table = viewed_server.api(f"compare?before={before}&after={after}&by=op")["sections"][0]["table"]
    check(seen["compare-op"], 0, table, changes)


def test_data_quality_is_that_of_the_command_line(
    seen: dict[str, Any], viewed_traces: Path, hotspan_command: Command
) -> None:
    info = printed(hotspan_command, "info", viewed_traces / "run.hotspan")[0]
    tables = {table["title"]: table["rows"] for table in seen["quality-sampled"]["tables"]}
    facts = dict(tables["Trace"])
    assert facts["Wall time"] == shown(info["wall_time_ns"], "ns")
    for title in ("Spans", "Instants", "Processes", "Threads"):
        assert facts[title] == shown(info[title.lower()], "count")
    lost = {row[0]: row[1] for row in tables.get("Losses", [])}
    assert lost == {loss: shown(count, "count") for loss, count in info["losses"].items()}
    assert ("Nothing is missing" in seen["quality-sampled"]["text"]) is (not lost)
    # The sentence of the report and the table have the same times.
    report = printed(hotspan_command, "report", viewed_traces / "run.hotspan")["report"]
    cost = next(row["value"] for row in report["Program"] if row["fact"] == "Cost of recording")
    assert [row[1].split()[1] for row in tables["Cost of recording"]] == [
        word for word in cost.split() if word in ("ns", "µs", "ms", "s")
    ]


def test_lines_are_those_of_the_command_line(
    seen: dict[str, Any], viewed_server: ViewServer, viewed_traces: Path, hotspan_command: Command
) -> None:
    rows = printed(hotspan_command, "stats", viewed_traces / "lines.hotspan", "--by", "line", "--limit", 0)[
        0
    ]["rows"]
    run = number(viewed_server, "lines.hotspan")
    check(seen["lines"], 0, viewed_server.api(f"run/{run}/table/lines")["sections"][0]["table"], rows)
    # The same numbers stand beside the source.
    table = seen["source-lines"]["tables"][0]
    place = [key.lower() for key in table["keys"]].index("hits")
    beside = {int(row[0]): row[place] for row in table["rows"] if row[place] != ""}
    assert beside == {row["line"]: shown(row["hits"], "count") for row in rows}


def test_advice_is_that_of_the_command_line(
    seen: dict[str, Any], viewed_traces: Path, hotspan_command: Command
) -> None:
    findings = printed(hotspan_command, "advise", viewed_traces / "after.hotspan")[0]["findings"]
    text = seen["advice"]["text"]
    said = [finding["message"].replace("`", "") for finding in findings]
    assert [message for message in said if message not in text] == []
    assert findings or "No rule found anything" in text


def test_the_tree_of_modules_adds_up(
    seen: dict[str, Any], viewed_server: ViewServer, viewed_traces: Path, hotspan_command: Command
) -> None:
    rows = viewed_server.rows(f"run/{number(viewed_server, 'after.hotspan')}/table/module_tree")
    roots = [row for row in rows if row["depth"] == 0]
    assert [row["module"] for row in roots] == ["Sequential_0"]
    names = {row["module"] for row in rows}
    assert {"Linear_0", "ReLU_0", "Linear_1"} <= names
    assert next(row["calls"] for row in rows if row["module"] == "Linear_0") == 4
    inner = sum(row["cpu_time_total"] for row in rows if row["depth"] == 1)
    assert roots[0]["cpu_time_total"] == roots[0]["self_cpu_time_total"] + inner
    assert len(seen["module_tree"]["tables"][0]["rows"]) == len(rows)
    tree = printed(hotspan_command, "tree", viewed_traces / "after.hotspan", "--all", "--least", 0)[0]["rows"]
    called = sum(row["total_ns"] for row in tree if row["function"] == "nn.Module: Sequential_0")
    # What the hooks of modules took themselves is no time of the module.
    assert called * 0.9 <= roots[0]["cpu_time_total"] <= called


def test_source_stands_beside_its_numbers(seen: dict[str, Any], viewed_traces: Path) -> None:
    text = (viewed_traces / "train.py").read_text().splitlines()
    rows = seen["source"]["tables"][0]["rows"]
    assert [row[-1] for row in rows] == [line.strip() for line in text]
    times = {row[-1]: row[1] for row in rows}
    assert times["total += number * number % 7"] or times["for number in range(rounds):"]


def test_flame_graphs_have_the_times_of_the_trace(
    seen: dict[str, Any], viewed_server: ViewServer, viewed_traces: Path, hotspan_command: Command
) -> None:
    run = number(viewed_server, "run.hotspan")
    data = viewed_server.api(f"run/{run}/flame")
    exported = viewed_traces / "collapsed.txt"
    made = hotspan_command("export", viewed_traces / "run.hotspan", "--to", "collapsed", "-o", exported)
    assert made.returncode == 0, made.stderr
    place = next(i for i, known in enumerate(data["places"]) if known["name"] == "prepare")
    sandwich = viewed_server.api(f"run/{run}/sandwich/{place}")
    assert sandwich["callers"]["total"] == sandwich["callees"]["total"] == data["places"][place]["total"]
    ordered = viewed_server.api(f"run/{run}/flame/time")
    spans = zip(ordered["place"], ordered["total_time"], strict=True)
    in_order = sum(time for known, time in spans if ordered["places"][known]["name"] == "prepare")
    # In order of time, gaps between samples of one call are part of the call.
    assert in_order >= data["places"][place]["own"] * 0.5
    assert "prepare" in exported.read_text()
    tree = printed(
        hotspan_command, "tree", viewed_traces / "run.hotspan", "--threads", "--all", "--least", 0
    )[0]
    assert f"{shown(tree['total_ns'], 'ns')} in samples" in seen["flame"]["text"]
    total = shown(data["places"][place]["total"], "ns")
    own = shown(data["places"][place]["own"], "ns")
    assert f"prepare\n{total}, own {own}" in seen["flame-sandwich-program"]["text"]
    assert (
        sum(row["own_ns"] for row in tree["rows"] if row["function"] == "prepare")
        == data["places"][place]["own"]
    )


def test_memory_adds_up(
    seen: dict[str, Any], viewed_server: ViewServer, viewed_traces: Path, hotspan_command: Command
) -> None:
    run = number(viewed_server, "after.hotspan")
    sections = {section["key"] for section in viewed_server.api(f"run/{run}/memory")["sections"]}
    assert {"peak", "cpu", "statistics", "events"} <= sections
    statistics = viewed_server.rows(f"run/{run}/memory", "statistics")
    events = viewed_server.rows(f"run/{run}/memory", "events")
    allocated = sum(row["bytes"] for row in events if row["allocated_at"] is not None)
    assert sum(row["allocated"] for row in statistics) == allocated > 0
    peak = sum(row["bytes"] for row in viewed_server.rows(f"run/{run}/memory", "peak"))
    assert peak == sum(row["bytes"] for row in viewed_server.rows(f"run/{run}/memory", "cpu"))
    report = printed(hotspan_command, "report", viewed_traces / "after.hotspan")["report"]
    held = {row["what"]: row["bytes"] for row in report["Memory at its peak"]}
    assert held["CPU tensors"] == peak
    assert f"Peak: {shown(peak, 'bytes')}" in seen["memory"]["text"]


@pytest.mark.parametrize("view", ["kernels", "copies", "gpu"])
def test_an_empty_view_says_what_to_record(seen: dict[str, Any], view: str) -> None:
    assert "hotspan run" in seen[view]["empty"]


@needs_shared
def test_views_of_devices_and_ranks_are_those_of_the_command_line(hotspan_command: Command) -> None:
    with ViewServer(GPU_TRACE, RANKS) as server:
        runs = server.api("runs")["runs"]
        rank = next(run["id"] for run in runs if run["run"] == RANKS.name)
        visits = [
            *(visit(view, axe=False) for view in ("overview", "advice", "steps", "kernels", "copies", "gpu")),
            visit("ranks", f"?run={rank}", axe=False),
        ]
        seen = look(server.address, visits)
        stats = {
            by: printed(hotspan_command, "stats", GPU_TRACE, "--by", by, "--limit", 0)
            for by in ("kernel", "copy")
        }
        for name, by in (("kernels", "kernel"), ("copies", "copy")):
            check(
                seen[name], 0, server.api(f"run/0/table/{name}")["sections"][0]["table"], stats[by][0]["rows"]
            )
        steps = printed(hotspan_command, "steps", GPU_TRACE)[0]
        for place, section in enumerate(server.api("run/0/table/steps")["sections"]):
            check(seen["steps"], place, section["table"], steps[section["key"]])
        gpu = printed(hotspan_command, "gpu", GPU_TRACE, "--limit", 100)[0]
        for place, section in enumerate(server.api("run/0/table/gpu")["sections"]):
            check(seen["gpu"], place, section["table"], gpu[section["key"]])
        ranks = printed(hotspan_command, "ranks", RANKS)
        for place, section in enumerate(server.api(f"ranks?run={rank}")["sections"]):
            check(seen["ranks"], place, section["table"], ranks[section["key"]])


def test_a_page_to_share_shows_the_same_with_the_network_off(
    seen: dict[str, Any], viewed_traces: Path, tmp_path: Path, hotspan_command: Command
) -> None:
    page = tmp_path / "report.html"
    files = (viewed_traces / "after.hotspan", viewed_traces / "before.hotspan")
    made = hotspan_command("report", *files, "--html", page)
    assert made.returncode == 0, made.stderr
    wanted = [
        place
        for place in visits_of(0, 1, 0, viewed_traces / "train.py")
        if place["name"] not in ("source", "overview")
    ]
    plain = [{**place, "axe": False, "phone": False, "picture": None} for place in wanted]
    alone = look(page.as_uri(), [*plain, visit("timeline"), visit("ranks")], offline=True)
    for name in (
        "operators",
        "shapes",
        "stacks",
        "module_tree",
        "functions",
        "memory",
        "compare",
        "compare-op",
        "quality",
    ):
        assert alone[name]["tables"] == seen[name]["tables"], name
    assert "A page to share" not in alone["operators"]["text"]


def test_source_is_shared_only_when_asked_for(
    viewed_traces: Path, tmp_path: Path, hotspan_command: Command
) -> None:
    line = "total += number * number % 7"
    for options, has in (((), False), (("--with-source",), True)):
        page = tmp_path / f"report{len(options)}.html"
        made = hotspan_command("report", viewed_traces / "run.hotspan", "--html", page, *options)
        assert made.returncode == 0, made.stderr
        assert (line in page.read_text()) is has


def test_names_that_are_markup_are_text_in_every_view(
    viewed_server: ViewServer, viewed_traces: Path, tmp_path: Path, hotspan_command: Command
) -> None:
    views = ("overview", "advice", "timeline", "steps", "operators", "kernels", "copies", "modules", "gpu")
    views += ("functions", "source", "flame", "memory", "compare", "quality")
    run = number(viewed_server, "hostile.json")
    page = tmp_path / "report.html"
    assert hotspan_command("report", viewed_traces / "hostile.json", "--html", page).returncode == 0
    for address, parameters in ((viewed_server.address, f"?run={run}"), (page.as_uri(), "")):
        visits = [visit(view, parameters, axe=False, phone=False) for view in views]
        visits.append(
            visit("flame", f"{parameters or '?run=0'}&order=sandwich&function=1", "sandwich", axe=False)
        )
        seen = look(address, visits)
        assert "<img src=x onerror=alert(1)>" in [row[0] for row in seen["operators"]["tables"][0]["rows"]]
        assert "<img src=x onerror=alert(1)>" in seen["sandwich"]["text"]


@pytest.mark.parametrize(
    "picture", sorted((REPOSITORY / "docs/images").glob("view-*.png")), ids=lambda path: path.name
)
def test_pictures_of_the_documentation_are_small(picture: Path) -> None:
    assert picture.stat().st_size < LARGEST_PICTURE


def test_the_documentation_has_a_picture_of_every_view() -> None:
    text = (REPOSITORY / "docs/view.md").read_text()
    views = re.findall(r'title: "([^"]+)",\s+Component', (REPOSITORY / "web/src/tabs.tsx").read_text())
    views.remove("Glossary")
    assert len(views) == 16
    pictures = re.findall(r"### ([^\n]+)\n\n!\[[^\]]+\]\(images/([^)]+)\)", text)
    assert {"Overview", *(title for title, _ in pictures)} >= set(views)
    guides = [path.read_text() for path in (REPOSITORY / "docs").glob("*.md")]
    named = {name for guide in guides for name in re.findall(r"\]\(images/([^)]+)\)", guide)}
    readme = (REPOSITORY / "README.md").read_text()
    assert named >= {name for _, name in pictures} | set(re.findall(r'src="docs/images/([^"]+)"', readme))
    assert {path.name for path in (REPOSITORY / "docs/images").iterdir()} == named
