"""Rows of tables lead somewhere: what the server says of one, and how few clicks or keys it takes to get there."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from browser_visits import WEB, look, needs_browser, pictured, visit
from test_view import span
from test_view_devices import H200
from view_server import ViewServer

HOSTILE = "<img src=x onerror=alert(1)>"
TABLES = ("operators", "shapes", "stacks", "modules", "threads", "kernels")
STEPS = 6


def events() -> Iterator[dict[str, Any]]:
    """Steps in which a module calls a matrix product, slower from step to step; each launches a kernel."""
    for step in range(STEPS):
        at, link = step * 1000.0, step + 1
        yield span(f"ProfilerStep#{step}", "user_annotation", 1, 1, at, 900)
        yield span("train.py(7): train", "python_function", 1, 1, at + 1, 890)
        yield span("nn.Module: Net_0", "python_function", 1, 1, at + 10, 800)
        yield span("nn.Module: Linear_1", "python_function", 1, 1, at + 20, 700)
        shapes = {"Input Dims": [[4 + step % 2, 8], [8, 16]], "External id": link}
        yield span("aten::mm", "cpu_op", 1, 1, at + 50, 200 + 10 * step, **shapes)
        yield span("cudaLaunchKernel", "cuda_runtime", 1, 1, at + 60, 10, correlation=link)
        yield span("sgemm<1>", "kernel", 0, 7, at + 300, 100 + step, device=0, stream=7, correlation=link)
        yield span(HOSTILE, "cpu_op", 1, 1, at + 500, 20)
        yield memory(at + 100, 1024 * (step + 1), 0x1000 + step)
        yield memory(at + 200, -1024 * (step + 1), 0x1000 + step)


def memory(at: float, size: int, address: int) -> dict[str, Any]:
    """An allocation or release of device memory."""
    args = {"Bytes": size, "Addr": address, "Device Type": 1, "Device Id": 0}
    return {
        "ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]",
        "pid": 1, "tid": 1, "ts": at, "args": args,
    }  # fmt: skip


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The steps as a trace."""
    path = tmp_path_factory.mktemp("doors") / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": list(events())}))
    return path


@pytest.fixture(scope="module")
def server(trace: Path) -> Iterator[ViewServer]:
    """`hotspan view` on it."""
    with ViewServer(trace) as running:
        yield running


def rows_and_doors(server: ViewServer, call: str) -> list[tuple[dict[str, Any], str]]:
    """The rows of a table by the keys of columns, each with what it leads to."""
    table = server.api(call)["sections"][0]["table"]
    keys = [column["key"] for column in table["columns"]]
    return [
        (dict(zip(keys, row, strict=True)), door)
        for row, door in zip(table["rows"], table["doors"], strict=True)
    ]


def door_of(server: ViewServer, table: str, name: str) -> str:
    return next(door for row, door in rows_and_doors(server, f"run/0/table/{table}") if row["name"] == name)


def check_things(server: ViewServer, table: str, stretch: str = "") -> None:
    """What each row of a table leads to has the numbers of the row."""
    rows = rows_and_doors(server, f"run/0/table/{table}?{stretch}")
    assert rows
    for row, door in rows:
        thing = server.api(f"run/0/thing?{door}&{stretch}")
        assert thing["name"] == row["name"]
        shown = {
            column["key"]: cell
            for column, cell in zip(thing["row"]["columns"], thing["row"]["rows"][0], strict=True)
        }
        assert shown == {key: row[key] for key in shown}
        assert sum(bucket["count"] for bucket in thing["histogram"]) == thing["count"]
        # Allocations outside of operators are a row without calls.
        if row["name"] == "[memory]":
            continue
        assert thing["count"] == row.get("count", row.get("calls"))
        on_device = row.get("device") == "CUDA"
        total = row.get("total", row.get("device_time_total" if on_device else "cpu_time_total"))
        assert thing["total"] == total
        assert thing["slowest"][0]["duration"] == row["max"]


@pytest.mark.parametrize("stretch", ["", "begin=1000000&end=3000000"])
@pytest.mark.parametrize("table", TABLES)
def test_a_thing_has_the_numbers_of_its_row(server: ViewServer, table: str, stretch: str) -> None:
    check_things(server, table, stretch)


@pytest.fixture(scope="module")
def recorded() -> Iterator[ViewServer]:
    """`hotspan view` on a training that was recorded on a GPU."""
    with ViewServer(H200) as running:
        yield running


@pytest.mark.parametrize("table", ["operators", "kernels"])
def test_that_holds_for_a_recorded_training(recorded: ViewServer, table: str) -> None:
    check_things(recorded, table)


def test_a_recorded_kernel_leads_to_module_and_source(recorded: ViewServer) -> None:
    rows = rows_and_doors(recorded, "run/0/table/kernels")
    things = [recorded.api(f"run/0/thing?{door}") for _, door in rows]
    assert all(len(thing["steps"]) == 5 for thing in things)
    titles = {table["title"].split(" (")[0] for thing in things for table in thing["tables"]}
    assert titles == {"Launched by", "Input shapes", "Modules"}
    assert sum(bool(thing["stacks"] and thing["stacks"][0]["source"]) for thing in things) > len(things) / 2


@pytest.mark.parametrize(
    ("call", "keys"),
    [
        ("table/module_tree", ["modules"]),
        ("table/functions", ["functions"]),
        ("table/gpu", ["culprits", "gaps"]),
        ("memory", ["events"]),
    ],
)
def test_rows_of_other_tables_lead_somewhere_too(server: ViewServer, call: str, keys: list[str]) -> None:
    sections = [section for section in server.api(f"run/0/{call}")["sections"] if section["table"]["doors"]]
    assert [section["key"] for section in sections] == keys
    for table in (section["table"] for section in sections):
        columns = [column["key"] for column in table["columns"]]
        for row, door in zip(table["rows"], table["doors"], strict=True):
            thing = server.api(f"run/0/thing?{door}")
            shown = [column["key"] for column in thing["row"]["columns"]]
            assert thing["row"]["rows"][0] == [row[columns.index(key)] for key in shown]
            for related in thing["related"]:
                assert server.api(f"run/0/span/{related['span']}")["name"] == related["name"]


def test_calls_of_a_stretch_are_spans_of_the_whole(server: ViewServer) -> None:
    door = door_of(server, "operators", "aten::mm")
    thing = server.api(f"run/0/thing?{door}&begin=1000000&end=3000000")
    assert [call["step"] for call in thing["slowest"]] == [2, 1]
    for call in thing["slowest"]:
        details = server.api(f"run/0/span/{call['span']}")
        assert (details["name"], details["begin"]) == ("aten::mm", call["begin"])


def test_a_thing_knows_its_steps_shapes_modules_and_stack(server: ViewServer) -> None:
    thing = server.api(f"run/0/thing?{door_of(server, 'kernels', 'sgemm<1>')}")
    assert [(step["first"], step["calls"], step["time"]) for step in thing["steps"]] == [
        (step, 1, 100_000 + 1000 * step) for step in range(STEPS)
    ]
    tables = {table["title"]: [row[:2] for row in table["rows"]] for table in thing["tables"]}
    assert tables == {
        "Launched by": [["aten::mm", STEPS]],
        "Input shapes": [["[[5, 8], [8, 16]]", 3], ["[[4, 8], [8, 16]]", 3]],
        "Modules": [["Net_0 / Linear_1", STEPS]],
    }
    (stack,) = thing["stacks"]
    assert stack["source"] == "train.py:7"
    assert stack["entries"] == ["nn.Module: Linear_1", "nn.Module: Net_0", "train.py(7): train"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 404),
        ("kind=kernel", 404),
        ("kind=operator&name=none&device=CPU", 404),
        ("kind=../../etc/passwd&name=x", 404),
        ("kind=kernel&name=%00%ff", 404),
        ("kind=kernel&name=sgemm%3C1%3E&begin=0", 400),
        ("kind=kernel&name=sgemm%3C1%3E&begin=x&end=y", 400),
        ("kind=kernel&name=sgemm%3C1%3E&begin=NaN&end=1", 400),
        ("kind=kernel&name=sgemm%3C1%3E&begin=9e18&end=-9e18", 404),
    ],
)
def test_doors_that_nobody_made_do_not_open(server: ViewServer, query: str, status: int) -> None:
    got, headers, _ = server.request(f"/{server.token}/api/run/0/thing?{query}")
    assert got == status
    assert "default-src 'none'" in headers["Content-Security-Policy"]


def test_without_the_secret_no_door_opens(server: ViewServer) -> None:
    door = door_of(server, "operators", "aten::mm")
    assert server.request(f"/api/run/0/thing?{door}")[0] == 403
    assert server.request(f"/{'0' * len(server.token)}/api/run/0/thing?{door}")[0] == 403
    other = {"Origin": "http://evil.example"}
    assert server.request(f"/{server.token}/api/run/0/thing?{door}", headers=other)[0] == 403


@pytest.fixture(scope="module")
def done(server: ViewServer) -> dict[str, Any]:
    """What came of following doors in a browser."""
    wanted = {
        "run": 0,
        "operator": "aten::mm",
        "kernel": "sgemm<1>",
        "hostile": HOSTILE,
        "begin": 1_000_000,
        "end": 3_000_000,
    }
    result = subprocess.run(
        ["node", "e2e/doors.mjs", server.address],
        cwd=WEB, input=json.dumps(wanted), capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    told: dict[str, Any] = json.loads(result.stdout)
    assert "failed" not in told, told["failed"]
    assert told["complaints"] == []
    return told


@needs_browser
def test_the_slowest_call_of_an_operator_is_two_clicks_away(done: dict[str, Any]) -> None:
    slowest = done["slowest"]
    assert slowest["clicks"] == 2
    assert slowest["thing"]["facts"]["count"] == str(STEPS)
    assert slowest["first"]["name"] == slowest["second"]["name"] == "aten::mm"
    assert (slowest["first"]["duration"], slowest["second"]["duration"]) == (250_000, 240_000)
    for seen, begin in ((slowest["first"], 5_050_000), (slowest["second"], 4_050_000)):
        assert int(seen["place"]["from"]) < begin < int(seen["place"]["to"])


@needs_browser
def test_a_kernel_leads_to_its_operator_module_and_stack(done: dict[str, Any]) -> None:
    upwards = done["upwards"]
    assert upwards["clicks"] == 2
    for text in ("aten::mm", "Net_0 / Linear_1", "train.py:7", "[[5, 8], [8, 16]]"):
        assert text in upwards["thing"]["text"]
    assert upwards["operator"]["name"] == "aten::mm"
    assert "sgemm<1>" in upwards["operator"]["text"]


@needs_browser
def test_keys_alone_do_the_same(done: dict[str, Any]) -> None:
    keyboard = done["keyboard"]
    assert keyboard["inside"]["id"] == "panel-name"
    assert (keyboard["back"]["tag"], keyboard["back"]["text"]) == ("A", "aten::mm")
    assert (keyboard["span"]["name"], keyboard["span"]["duration"]) == ("aten::mm", 250_000)
    arrows = done["arrows"]
    assert arrows["first"] == arrows["again"] != arrows["second"]
    assert arrows["second"]["tag"] == "A"


@needs_browser
def test_a_link_restores_the_panel(done: dict[str, Any]) -> None:
    shared = done["shared"]
    assert shared["before"] == shared["after"] == shared["again"]
    assert shared["sort"] == "-count"


@needs_browser
def test_a_panel_is_about_the_selected_range(done: dict[str, Any]) -> None:
    thing = done["range"]["thing"]
    assert thing["facts"]["count"] == "2"
    assert len(thing["calls"]) == 2
    assert "Of the selected 2" in thing["text"]


@needs_browser
def test_a_gap_is_shown_in_the_timeline_with_what_was_behind_it(done: dict[str, Any]) -> None:
    gap = done["gap"]
    assert gap["clicks"] == 2
    begin, length = int(gap["thing"]["facts"]["begin"]), int(gap["thing"]["facts"]["length"])
    assert int(gap["place"]["from"]) < begin < begin + length < int(gap["place"]["to"])
    assert "Next work sgemm<1>" in gap["thing"]["text"]
    assert "Causes" in gap["thing"]["headings"]


@needs_browser
def test_modules_functions_and_allocations_open_too(done: dict[str, Any]) -> None:
    assert done["module"]["inside"]["id"] == "panel-name"
    assert done["module"]["thing"]["name"] == "Net_0"
    assert done["module"]["back"]["tag"] == "TR"
    assert done["function"]["name"] == "train"
    assert "train.py:7" in done["function"]["text"]
    assert "Calls" in done["function"]["headings"]
    assert "Allocated by aten::mm" in done["allocation"]["text"]


@needs_browser
def test_names_are_text(done: dict[str, Any]) -> None:
    assert done["names"]["name"] == HOSTILE
    assert done["names"]["markup"] == 0


@needs_browser
def test_a_phone_shows_the_panel_alone_and_then_the_timeline(done: dict[str, Any]) -> None:
    phone = done["phone"]
    assert (phone["box"]["x"], phone["box"]["width"]) == (0, 390)
    assert not phone["wide"]
    assert phone["covered"] == 0


@needs_browser
def test_the_panel_is_accessible_in_light_and_dark(server: ViewServer) -> None:
    doors = [
        quote(door_of(server, table, name), safe="")
        for table, name in (("operators", "aten::mm"), ("kernels", "sgemm<1>"))
    ]
    views = ("operators", "kernels", "timeline")
    gap = next(
        door
        for section in server.api("run/0/table/gpu")["sections"]
        if section["key"] == "gaps"
        for door in section["table"]["doors"]
    )
    look(server.address, [visit("gpu", f"?run=0&open={quote(gap, safe='')}"), visit("modules", "?run=0")])
    look(
        server.address,
        [
            visit(view, f"?run=0&open={door}", f"{view} {place}")
            for place, door in enumerate(doors)
            for view in views
        ],
    )


@needs_browser
def test_the_documentation_shows_a_panel(recorded: ViewServer) -> None:
    operator = quote(door_of(recorded, "operators", "aten::addmm"), safe="")
    kernels = rows_and_doors(recorded, "run/0/table/kernels")
    places = [
        pictured(visit("operators", f"?run=0&open={operator}", "panel", height=900)),
        pictured(
            visit("kernels", f"?run=0&open={quote(kernels[0][1], safe='')}", "panel-dark", height=900),
            dark=True,
        ),
    ]
    look(recorded.address, places)
