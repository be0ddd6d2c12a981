"""`hotspan view` under strain: thousands of requests, clients that misbehave, files that are broken, grow or go."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from test_view import device_events
from view_server import ViewServer

REQUESTS = 10_000
# What a process may have open; twice this many are needed where client and server are counted together.
AT_ONCE = 400


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small trace."""
    path = tmp_path_factory.mktemp("robust") / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": device_events(50)}))
    return path


@pytest.fixture(scope="module")
def server(trace: Path) -> Iterator[ViewServer]:
    """`hotspan view` on it."""
    with ViewServer(trace) as running:
        yield running


def request(server: ViewServer, call: str) -> bytes:
    """The bytes of a request."""
    return f"GET /{server.token}/api/{call} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()


async def converse(server: ViewServer, count: int) -> set[bytes]:
    """Sends requests over one connection, all at once, and gives back the distinct answers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request(server, "run/0/tile?level=20&index=0&tracks=0,1") * count)
    answers = set()
    for _ in range(count):
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        answers.add(await reader.readexactly(int(length.split(b":")[1])))
    writer.close()
    return answers


def test_ten_thousand_requests_at_once_get_the_same_answer(server: ViewServer) -> None:
    async def everybody() -> set[bytes]:
        each = [converse(server, REQUESTS // AT_ONCE) for _ in range(AT_ONCE)]
        return set().union(*await asyncio.gather(*each))

    assert len(asyncio.run(everybody())) == 1


def test_clients_that_never_read_write_or_finish_stop_nobody(server: ViewServer) -> None:
    clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(60)]
    try:
        for number, client in enumerate(clients):
            client.setblocking(False)
            if number % 3 == 0:
                # Asks for more than the buffers of both sides hold, and never reads.
                try:
                    for _ in range(50):
                        client.send(request(server, "run/0/table/quality") * 100)
                except BlockingIOError:
                    pass
            elif number % 3 == 1:
                client.send(b"GET /half of a request")
        for _ in range(50):
            assert server.api("run/0/timeline")["tracks"]
    finally:
        for client in clients:
            client.close()
    assert server.process.poll() is None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("words.json", b"this is no trace"),
        ("empty.json", b""),
        ("cut.json.gz", b"\x1f\x8b\x08\x00\x00"),
        ("zeros.hotspan", bytes(5000)),
        ("list.json", b"[1, 2, 3]"),
    ],
)
def test_a_file_that_is_no_trace_is_told_and_others_work(
    trace: Path, tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    shutil.copy(trace, tmp_path / "good.json")
    with ViewServer(tmp_path) as server:
        ids = {run["file"]: run["id"] for run in server.api("runs")["runs"]}
        status, _, body = server.request(f"/{server.token}/api/run/{ids[name]}/timeline")
        # What reads as a trace without events is one; anything else is told, with its name.
        assert (status, json.loads(body).get("tracks")) == (200, []) or (
            status == 422 and name in json.loads(body)["message"]
        )
        assert server.api(f"run/{ids['good.json']}/timeline")["tracks"]


def test_the_first_trace_is_read_before_anybody_asks_for_it(tmp_path: Path) -> None:
    pipe = tmp_path / "trace.json"
    os.mkfifo(pipe)
    with ViewServer(pipe):
        # A pipe can be opened for writing, without waiting, once somebody reads from it.
        for _ in range(600):
            try:
                os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
                return
            except OSError:
                time.sleep(0.1)
        pytest.fail("nobody reads the trace")


def test_a_file_that_grows_and_goes_while_it_is_shown(trace: Path, tmp_path: Path) -> None:
    path = tmp_path / "good.json"
    shutil.copy(trace, path)
    with ViewServer(tmp_path) as server:
        before = server.api("run/0/timeline")
        (listed,) = server.api("runs")["runs"]
        path.write_text(json.dumps({"traceEvents": device_events(90)}))
        assert server.api("run/0/timeline")["end"] > before["end"]
        (again,) = server.api("runs")["runs"]
        assert (again["id"], again["bytes"]) == (listed["id"], path.stat().st_size)
        assert again["bytes"] != listed["bytes"]
        # Half of it, as while it is being written.
        path.write_text(path.read_text()[:4000])
        status, _, _ = server.request(f"/{server.token}/api/run/0/timeline")
        assert status in (200, 422)
        path.unlink()
        assert "good.json" in server.api("run/0/timeline", status=410)["message"]
        assert server.api("runs")["runs"] == []
        shutil.copy(trace, path)
        assert server.api("run/0/timeline") == before
        assert server.process.poll() is None


def test_a_folder_of_a_thousand_traces_is_listed(trace: Path, tmp_path: Path) -> None:
    for number in range(1000):
        (tmp_path / f"w.{number}.pt.trace.json").hardlink_to(trace)
    with ViewServer(tmp_path) as server:
        runs = server.api("runs")["runs"]
        assert len(runs) == 1000
        # More of them than are kept in memory.
        for run in runs[:: len(runs) // 9]:
            assert server.rows(f"run/{run['id']}/table/kernels")
