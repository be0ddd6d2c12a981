"""Servers people run, under ``hotspan run``, until a signal ends them: they answer, and end as without."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from recorded_program import PATIENCE, SCRIPT, RecordedProgram, Seen
from test_real_programs import check_advice, python

pytest.importorskip("torch")

REQUESTS = 60
__all__ = ["python"]  # the fixture


def test_fastapi(python: Path, tmp_path: Path, ending: signal.Signals) -> None:
    port = free_port()
    ran = RecordedProgram(python, tmp_path, ["python", f"{SCRIPT}/fastapi_server.py", str(port)])
    serve_both(ran, port, "predict", json.dumps({"x": [0.1] * 64}).encode(), ending)
    assert ran.operators()["aten::linear"] == 2 * REQUESTS
    check_advice(ran, set())


def test_gunicorn(python: Path, tmp_path: Path, ending: signal.Signals) -> None:
    port = free_port()
    quiet = ["--log-level", "critical", "--no-control-socket"]
    command = ["gunicorn", "-w", "2", "-b", f"127.0.0.1:{port}", *quiet, "--chdir", f"{SCRIPT}/"]
    ran = RecordedProgram(python, tmp_path, [*command, "gunicorn_app:app"])
    serve_both(ran, port, "", None, ending)
    # Whatever came to a worker while it started counts too: see `wait_until_it_answers`.
    assert ran.operators()["aten::linear"] >= REQUESTS
    check_advice(ran, set())


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def ending(request: pytest.FixtureRequest) -> signal.Signals:
    """The signal of a terminal and that of a service manager."""
    number: signal.Signals = request.param
    return number


def serve_both(
    ran: RecordedProgram, port: int, path: str, request: bytes | None, ending: signal.Signals
) -> None:
    """Serve without hotspan and with it; answers and ends are the same."""
    answers, ends = [], []
    for name, command in (("plain", ran.words()), ("recorded", ran.recorded_words())):
        started = ran.start(name, command)
        try:
            wait_until_it_answers(started, port)
            answers.append([ask(f"http://127.0.0.1:{port}/{path}", request) for _ in range(REQUESTS)])
            # Ctrl-C reaches everything in a terminal; a service manager signals the process it started.
            send = os.killpg if ending == signal.SIGINT else os.kill
            send(started.pid, ending)
            ends.append(ran.wait(name, started))
        finally:
            if started.poll() is None:
                os.killpg(started.pid, signal.SIGKILL)
    plain, recorded = ends
    assert answers[0] == answers[1]
    assert (recorded.code, recorded.output) == (plain.code, plain.output), recorded.errors
    assert_nothing_is_left(ran, plain, recorded)


def assert_nothing_is_left(ran: RecordedProgram, plain: Seen, recorded: Seen) -> None:
    assert recorded.files == plain.files | {"recording.hotspan"}
    assert ran.left_running() == []


def wait_until_it_answers(started: subprocess.Popen[str], port: int) -> None:
    """Until someone listens; no request is sent."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert started.poll() is None, started.communicate()[1]
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the server never answered")


def ask(address: str, data: bytes | None) -> bytes:
    """One answer."""
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        content: bytes = answer.read()
    return content


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
    return port
