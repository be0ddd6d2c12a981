"""Source text and downloads of `hotspan view`: only what the trace names, only Python, only what is offered."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from test_view import span
from view_server import ViewServer

TEXT = "def work():\n    return '<script>alert(1)</script>'\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that a trace names, truly and with bad intentions, and one that it does not."""
    folder = tmp_path_factory.mktemp("sources")
    (folder / "named.py").write_text(TEXT)
    (folder / "other.py").write_text("SECRET = 1\n")
    (folder / "secret.txt").write_text("secret")
    (folder / "link.py").symlink_to(folder / "secret.txt")
    (folder / "folder.py").mkdir()
    (folder / "bytes.py").write_bytes(b"\xff\xfe\x00secret")
    files = ["named.py", "secret.txt", "link.py", "folder.py", "bytes.py", "gone.py", "../sources/named.py"]
    names = [f"{folder}/{file}(1): work" for file in files] + ["named.py(1): work", "/etc/passwd(1): work"]
    events = [span(name, "python_function", 1, 1, 10.0 * at, 5) for at, name in enumerate(names)]
    (folder / "trace.json").write_text(json.dumps({"traceEvents": events}))
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ViewServer]:
    """`hotspan view` on the trace alone."""
    with ViewServer(folder / "trace.json") as running:
        yield running


def test_a_file_that_the_trace_names_is_shown(server: ViewServer, folder: Path) -> None:
    source = server.api(f"run/0/source?file={quote(str(folder / 'named.py'), safe='')}")
    assert source["lines"] == TEXT.splitlines()


@pytest.mark.parametrize("file", ["secret.txt", "link.py", "folder.py", "bytes.py", "gone.py", "other.py"])
def test_nothing_but_python_that_is_named_is_shown(server: ViewServer, folder: Path, file: str) -> None:
    problem = server.api(f"run/0/source?file={quote(str(folder / file), safe='')}", status=404)
    assert "secret" not in json.dumps(problem).replace("secret.txt", "")
    assert problem["hint"]


@pytest.mark.parametrize("file", ["/etc/passwd", "named.py", "", "..", "%00", "/proc/self/environ"])
def test_other_files_are_not_shown(server: ViewServer, file: str) -> None:
    assert "root:" not in json.dumps(server.api(f"run/0/source?file={quote(file, safe='%')}", status=404))


def test_downloads_are_those_that_are_offered(server: ViewServer) -> None:
    status, headers, body = server.request(f"/{server.token}/api/run/0/export/chrome")
    assert (status, headers["Content-Type"]) == (200, "application/octet-stream")
    events = json.loads(gzip.decompress(body))["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == 9
    part = server.request(f"/{server.token}/api/run/0/export/chrome?begin=0&end=21000")[2]
    cut = [event for event in json.loads(gzip.decompress(part))["traceEvents"] if event["ph"] == "X"]
    assert len(cut) == 3
    for format in ("prof", "..%2f..", "chrome/x", ""):
        assert server.request(f"/{server.token}/api/run/0/export/{format}")[0] in (400, 404)


@pytest.mark.parametrize("place", ["-1", "999999", "x", "1e9"])
def test_there_is_no_sandwich_of_what_is_not_there(server: ViewServer, place: str) -> None:
    assert "function" in server.api(f"run/0/sandwich/{place}", status=404)["message"]
