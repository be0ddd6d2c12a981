"""The server of `hotspan view`: the numbers of the command line, for nobody but the one who started it."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from view_server import ViewServer

Command = Callable[..., subprocess.CompletedProcess[str]]


def device_events(steps: int = 4) -> list[dict[str, Any]]:
    """Steps of two operators, each with a launch and a kernel; names that would be markup if a page let them."""
    events: list[dict[str, Any]] = []
    for step in range(steps):
        at = step * 1000.0
        events.append(span(f"ProfilerStep#{step}", "user_annotation", 1, 1, at, 900))
        for number, name in enumerate(("aten::mm", "<img src=x onerror=alert(1)>")):
            begin, link = at + 50 + number * 300, step * 2 + number + 1
            events += [
                span(name, "cpu_op", 1, 1, begin, 200, **{"External id": link}),
                span("cudaLaunchKernel", "cuda_runtime", 1, 1, begin + 20, 10, correlation=link),
                span(
                    f"kernel<{number}>", "kernel", 0, 7, begin + 60, 250, device=0, stream=7, correlation=link
                ),
            ]
    return events


def span(
    name: str, category: str, pid: int, tid: int, begin: float, length: float, **args: Any
) -> dict[str, Any]:
    """A complete event."""
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": pid,
        "tid": tid,
        "ts": begin,
        "dur": length,
        "args": args,
    }


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace with steps, operators and kernels, in a folder as TensorBoard's handler fills it."""
    path = tmp_path_factory.mktemp("logs") / "run1" / "host_42.1700000000000.pt.trace.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": device_events()}))
    return path


@pytest.fixture(scope="module")
def server(trace: Path) -> Iterator[ViewServer]:
    """`hotspan view` on the folder of the trace."""
    with ViewServer(trace.parent.parent) as running:
        yield running


def test_runs_are_listed_as_tensorboard_listed_them(server: ViewServer, trace: Path) -> None:
    (run,) = server.api("runs")["runs"]
    assert (run["run"], run["worker"], run["cycle"]) == ("run1", "host_42", "1700000000000")
    assert run["bytes"] == trace.stat().st_size


@pytest.mark.parametrize(("table", "by"), [("operators", "op"), ("kernels", "kernel"), ("threads", "thread")])
def test_tables_are_those_of_the_command_line(
    server: ViewServer, trace: Path, hotspan_command: Command, table: str, by: str
) -> None:
    printed = json.loads(hotspan_command("stats", trace, "--by", by, "--limit", "0", "--json").stdout)
    assert printed[0]["rows"]
    assert server.rows(f"run/0/table/{table}") == printed[0]["rows"]


def test_steps_and_gpu_are_those_of_the_command_line(
    server: ViewServer, trace: Path, hotspan_command: Command
) -> None:
    steps = json.loads(hotspan_command("steps", trace, "--json").stdout)[0]
    assert server.rows("run/0/table/steps", "devices") == steps["devices"]
    gpu = json.loads(hotspan_command("gpu", trace, "--json").stdout)[0]
    assert server.rows("run/0/table/gpu", "idle") == gpu["idle"]


def test_advice_is_that_of_the_command_line(
    server: ViewServer, trace: Path, hotspan_command: Command
) -> None:
    printed = json.loads(hotspan_command("advise", trace, "--json").stdout)[0]["findings"]
    told = [(finding["rule"], finding["message"]) for finding in server.api("run/0/advice")["findings"]]
    assert told == [(finding["rule"], finding["message"]) for finding in printed]


def test_a_selected_range_has_its_own_table(server: ViewServer) -> None:
    table = server.api("run/0/within?from=100000&to=200000")
    rows = {row[0]: row[2:] for row in table["rows"]}
    # 50 to 250 us and 110 to 360 us, cut to 100 to 200 us.
    assert rows["aten::mm"] == [1, 100_000, 100_000]
    assert rows["kernel<0>"] == [1, 90_000, 90_000]


def test_the_flame_graph_adds_up(server: ViewServer) -> None:
    data = server.api("run/0/flame")
    roots = [time for time, parent in zip(data["total_time"], data["parent"], strict=True) if parent < 0]
    assert sum(roots) == data["total"]
    assert sum(data["own_time"]) == data["total"]


@pytest.mark.parametrize(
    "path", ["/", "/api/runs", "/00000000000000000000000000000000/api/runs", "//api/runs"]
)
def test_without_the_secret_nothing_is_told(server: ViewServer, path: str) -> None:
    status, headers, body = server.request(path)
    assert status == 403
    assert b"host_42" not in body
    assert "default-src 'none'" in headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1.evil.example:80"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:1"},
    ],
)
def test_other_hosts_and_origins_are_refused(server: ViewServer, headers: dict[str, str]) -> None:
    assert server.request(f"/{server.token}/api/runs", headers=headers)[0] == 403


def test_our_own_origin_is_served_and_nothing_can_be_changed(server: ViewServer) -> None:
    own = {"Origin": f"http://127.0.0.1:{server.port}"}
    assert server.request(f"/{server.token}/api/runs", headers=own)[0] == 200
    assert (
        server.request(f"/{server.token}/api/runs", method="POST", headers={"Content-Length": "0"})[0] == 405
    )


@pytest.mark.parametrize(
    "path",
    [
        "../../../../etc/passwd",
        "assets/../../../../../etc/passwd",
        "assets/..%2f..%2f..%2fetc%2fpasswd",
        "api/run/../../etc/passwd",
        "api/run/4294967295/advice",
        "api/run/0/table/..%2f..",
        "etc/passwd",
    ],
)
def test_nothing_but_what_was_opened_can_be_read(server: ViewServer, path: str) -> None:
    status, _, body = server.request(f"/{server.token}/{path}")
    assert status in (400, 404)
    assert b"root:" not in body


def test_only_this_machine_can_connect(server: ViewServer) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        outside = probe.getsockname()[0]
    if outside.startswith("127."):
        pytest.skip("this machine has no other address")
    with pytest.raises(OSError):
        socket.create_connection((outside, server.port), timeout=2)


def test_a_path_that_is_not_there_is_told(tmp_path: Path, hotspan_command: Command) -> None:
    result = hotspan_command("view", tmp_path / "nothing.json", "--no-open")
    assert result.returncode == 1
    assert "nothing.json" in result.stderr
