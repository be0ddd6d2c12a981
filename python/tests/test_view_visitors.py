"""`hotspan view` among other users: their connections do not keep the owner out, and no command line has the secret."""

from __future__ import annotations

import http.client
import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import complete
from view_server import ViewServer

# More than a process may usually have open.
STRANGERS = 1_100


@pytest.fixture
def many_files() -> Iterator[None]:
    """Lets this process have more files open than the server may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * STRANGERS:
        pytest.skip("this process may not open so many files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * STRANGERS, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def small_trace(tmp_path: Path) -> Path:
    """A trace of one operator."""
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [complete("aten::add", 0, 5)]}))
    return path


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"],
    ids=["silent", "half", "whole"],
)
@pytest.mark.usefixtures("many_files")
def test_connections_of_strangers_do_not_keep_the_owner_out(small_trace: Path, sent: bytes) -> None:
    clients: list[socket.socket] = []
    with ViewServer(small_trace) as server:
        _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (1024, hard))
        owner = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        path = f"/{server.token}/api/runs"

        def ask() -> int:
            owner.request("GET", path)
            answer = owner.getresponse()
            answer.read()
            return answer.status

        assert ask() == 200
        try:
            for _ in range(STRANGERS):
                client = socket.create_connection(("127.0.0.1", server.port), timeout=60)
                clients.append(client)
                client.sendall(sent)
            # The connection of before is the same, and a new one is answered.
            held = owner.sock
            assert ask() == 200
            assert owner.sock is held
            assert len(server.api("runs")) >= 1
        finally:
            owner.close()
            for client in clients:
                client.close()


def test_no_command_line_has_the_secret(small_trace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    seen = tmp_path / "seen"
    opener = folder / "xdg-open"
    opener.write_text(
        f'#!/bin/sh\nstat -c %a "$1" > {seen}.mode; cat "$1" > {seen}.page; echo "$*" > {seen}\n'
    )
    opener.chmod(0o755)
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    environment = {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "DISPLAY": ":99",
        "XDG_RUNTIME_DIR": str(runtime),
    }
    command = [sys.executable, "-m", "hotspan", "view", str(small_trace)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stderr is not None
            address = server.stderr.readline().split()[3]
            while not seen.exists():
                assert server.poll() is None
        finally:
            server.kill()
    secret = address.rstrip("/").rsplit("/", 1)[1]
    assert len(secret) == 32
    assert secret not in seen.read_text()
    assert seen.read_text().startswith(str(runtime))
    assert seen.with_suffix(".mode").read_text() == "600\n"
    assert f"url={address}" in seen.with_suffix(".page").read_text()
