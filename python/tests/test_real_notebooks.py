"""Notebooks under ``hotspan run``: a server of Jupyter with a kernel, ended in each way, and papermill."""

from __future__ import annotations

import os
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from recorded_program import PROGRAMS, SCRIPT, RecordedProgram
from test_real_programs import check_advice, python
from test_real_servers import assert_nothing_is_left, free_port, wait_until_it_answers

pytest.importorskip("torch")

__all__ = ["python"]  # the fixture

TOKEN = "secret"


def test_papermill(python: Path, tmp_path: Path) -> None:
    command = ["papermill", "--no-progress-bar", f"{SCRIPT}/notebook.ipynb", "out.ipynb"]
    ran = RecordedProgram(python, tmp_path, command)
    plain, recorded = ran.seen
    assert (plain.code, plain.output) == (recorded.code, recorded.output), recorded.errors
    assert_nothing_is_left(ran, plain, recorded)
    check_fifty_steps(ran)


@pytest.mark.parametrize("ending", ["shutdown", "SIGINT"])
def test_a_server_of_notebooks(python: Path, ending: str, tmp_path: Path) -> None:
    """Each way to end it with one of the two programs that people start."""
    port = free_port()
    program = ["jupyter", "lab"] if ending == "SIGINT" else ["python", "-m", "notebook"]
    options = ["--no-browser", "--allow-root", "-y", f"--port={port}", "--ip=127.0.0.1"]
    quiet = [f"--IdentityProvider.token={TOKEN}", "--ServerApp.log_level=50"]
    ran = RecordedProgram(python, tmp_path, [*program, *options, *quiet])
    ends = []
    for name, command in (("plain", ran.words()), ("recorded", ran.recorded_words())):
        places = {
            f"JUPYTER_{place}_DIR": str(tmp_path / f"{name}-{place}") for place in ("RUNTIME", "CONFIG")
        }
        started = ran.start(name, command, **places, HOME=str(tmp_path / f"{name}-home"))
        try:
            wait_until_it_answers(started, port)
            address = f"http://127.0.0.1:{port}"
            driver = [str(python), str(PROGRAMS / "ask_kernel.py"), address, TOKEN]
            driver += [places["JUPYTER_RUNTIME_DIR"], str(PROGRAMS / "notebook.ipynb")]
            asked = subprocess.run(driver, env=ran.environment(), capture_output=True, text=True, check=False)
            assert (asked.returncode, asked.stdout) == (0, "sum 256.0\n"), asked.stderr
            if ending == "SIGINT":
                os.killpg(started.pid, signal.SIGINT)
            else:
                request = urllib.request.Request(f"{address}/api/shutdown", method="POST")
                request.add_header("Authorization", f"token {TOKEN}")
                urllib.request.urlopen(request, timeout=60).close()
            ends.append(ran.wait(name, started))
        finally:
            if started.poll() is None:
                os.killpg(started.pid, signal.SIGKILL)
                started.communicate()
    plain, recorded = ends
    assert (recorded.code, recorded.output) == (plain.code, plain.output), recorded.errors
    assert_nothing_is_left(ran, plain, recorded)
    check_fifty_steps(ran)


def check_fifty_steps(ran: RecordedProgram) -> None:
    """The kernel is recorded, as any process that a program starts."""
    operators = ran.operators()
    assert (operators["aten::mm"], operators["aten::relu"]) == (50, 50)
    check_advice(ran, set())
