"""``ray job submit -- hotspan run …``: a command that a running Ray starts, far from who asked for it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import hotspan
from conftest import REPOSITORY
from environments import VERSIONS, environment

PROGRAM = """
import torch
layer = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(30):
    optimizer.zero_grad()
    layer(torch.ones(8, 64)).square().mean().backward()
    optimizer.step()
print("trained")
"""
PATIENCE = 120


@pytest.fixture(scope="module", params=VERSIONS["ray_jobs"])
def python(request: pytest.FixtureRequest) -> Path:
    """The Python that Ray is installed for."""
    path = environment("ray_jobs", request.param)
    if not path.exists():
        pytest.skip(f"Ray with its jobs is not installed for Python {request.param}: run `make test-real`")
    return path


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def variables(python: Path) -> dict[str, str]:
    """No network, and hotspan as it is here."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RAY_"))}
    path = f"{python.parent}:{kept['PATH']}"
    # Whether Ray asks for a token by default depends on its version and on what the user has set up.
    kept["RAY_AUTH_MODE"] = "disabled"
    return {**kept, "PATH": path, "PYTHONPATH": str(REPOSITORY / "python"), "OMP_NUM_THREADS": "1"}


def wait_until_it_answers(url: str, started: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and started.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/api/version", timeout=10).close()
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            time.sleep(0.5)
        else:
            return
    pytest.fail("Ray did not start")


@pytest.fixture(scope="module")
def cluster(python: Path) -> Iterator[str]:
    """The address of a Ray of our own: another one may run on this machine."""
    head, dashboard, agent, client = free_ports(4)
    # The names of its sockets have to be short.
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        command = [str(python.parent / "ray"), "start", "--head", "--block", "--disable-usage-stats"]
        command += [
            "--node-ip-address=127.0.0.1",
            "--num-cpus=2",
            f"--temp-dir={folder}",
            f"--port={head}",
            f"--dashboard-port={dashboard}",
        ]
        command += [f"--dashboard-agent-listen-port={agent}", f"--ray-client-server-port={client}"]
        with (Path(folder) / "log").open("wb") as log:
            started = subprocess.Popen(
                command, stdout=log, stderr=log, env=variables(python), start_new_session=True
            )
        try:
            url = f"http://127.0.0.1:{dashboard}"
            wait_until_it_answers(url, started)
            yield url
        finally:
            os.killpg(started.pid, signal.SIGTERM)
            started.wait(60)


def test_a_job_is_recorded(python: Path, cluster: str, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "train.py").write_text(PROGRAM)
    recording = tmp_path / "train.hotspan"
    submit = [str(python.parent / "ray"), "job", "submit", "--working-dir", str(work), "--"]
    seen = subprocess.run(
        [*submit, "python", "-m", "hotspan", "run", "-o", str(recording), "train.py"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**variables(python), "RAY_ADDRESS": cluster},
    )
    assert seen.returncode == 0, seen.stdout + seen.stderr
    assert "trained" in seen.stdout
    assert "Where the time went" in seen.stdout, "the log of the job has the report"
    counts = {row.key: row.count for row in hotspan.open(recording).key_averages()}
    assert counts["aten::addmm"] == 30
    assert counts["Optimizer.step#SGD.step"] == 30
