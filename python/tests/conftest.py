"""What the tests share: where real traces lie, how to make small ones, how to run the real command."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from view_server import ViewServer

# What failed in it is told as in a test.
pytest.register_assert_rewrite("browser_visits")

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED_TRACES = REPOSITORY.parent / "shared" / "traces"


def pytest_configure() -> None:
    """Programs under test get signals as in a terminal, also where tests run in the background and ignore them."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


def shared_trace_files() -> list[Path]:
    """Every sample trace beside the repository; none when the folder is not there."""
    if not SHARED_TRACES.is_dir():
        return []
    return sorted(path for path in SHARED_TRACES.rglob("*") if path.is_file() and path.suffix != ".md")


def pytest_report_header() -> str:
    """Says whether the sample traces take part."""
    found = len(shared_trace_files())
    if found:
        return f"sample traces: {found} files"
    return "sample traces: none found beside the repository; the tests of all of them are skipped"


@pytest.fixture
def write_trace(tmp_path: Path) -> Callable[..., Path]:
    """Writes events as a Kineto-like trace and returns its path."""

    def write(events: list[dict[str, Any]], name: str = "trace.json", **metadata: Any) -> Path:
        path = tmp_path / name
        path.write_text(json.dumps({"schemaVersion": 1, **metadata, "traceEvents": events}))
        return path

    return write


@pytest.fixture(scope="session")
def fake_cupti(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A libcupti of our own, which a program drives in the place of a driver."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("needs a C compiler")
    source = REPOSITORY / "crates" / "hotspan-collect" / "tests" / "fake_cupti.c"
    library = tmp_path_factory.mktemp("cupti") / "libcupti.so.13"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-lpthread"], check=True)
    return library


@pytest.fixture(scope="session")
def hotspan_command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the installed `hotspan` command and returns what it printed and its exit code."""
    program = Path(sys.executable).with_name("hotspan")
    assert program.exists(), f"{program} is missing: run `make dev`"

    def run(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200"}
        command = [str(program), *map(str, arguments)]
        defaults: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 120, "env": environment}
        return subprocess.run(command, check=False, **{**defaults, **options})

    return run


def complete(name: str, start: float, duration: float, **fields: Any) -> dict[str, Any]:
    """A complete event; `cat`, `pid`, `tid` and `args` may be given."""
    event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": duration}
    return {**event, **fields}


@pytest.fixture(scope="session")
def viewed_traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of traces recorded for the dashboard, and one whose names are markup."""
    from test_view import device_events
    from viewed_programs import record

    folder = tmp_path_factory.mktemp("viewed")
    record(folder)
    hostile = {"schemaVersion": 1, "traceEvents": device_events(6)}
    (folder / "hostile.json").write_text(json.dumps(hostile))
    return folder


@pytest.fixture(scope="session")
def viewed_server(viewed_traces: Path) -> Iterator[ViewServer]:
    """`hotspan view` on that folder."""
    with ViewServer(viewed_traces) as running:
        yield running
