"""Runs the real `hotspan view` for tests, and asks it as a browser would."""

from __future__ import annotations

import http.client
import itertools
import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class Tile:
    """What is drawn of some tracks."""

    def __init__(self, head: dict[str, Any], columns: memoryview) -> None:
        """Gives each lane its rectangles, and each counter its values."""
        self.looks = head["looks"]
        count = sum(sum(track["lanes"]) for track in head["tracks"])
        values = sum(counter["count"] for counter in head["counters"])
        begin, end, time, value, span, look, stands_for = struct.unpack_from(
            "<" + "".join(f"{many * size}s" for many, size in
            ((count, 8), (count, 8), (values, 8), (values, 8), (count, 4), (count, 4), (count, 4))),
            columns,
        )  # fmt: skip
        wide = [struct.unpack(f"<{len(column) // 8}d", column) for column in (begin, end, time, value)]
        narrow = [struct.unpack(f"<{len(column) // 4}I", column) for column in (span, look, stands_for)]
        rectangles = iter(list(zip(wide[0], wide[1], *narrow, strict=True)))
        points = iter(list(zip(wide[2], wide[3], strict=True)))
        self.lanes = {
            track["id"]: [list(itertools.islice(rectangles, many)) for many in track["lanes"]]
            for track in head["tracks"]
        }
        self.counters = {
            counter["id"]: list(itertools.islice(points, counter["count"])) for counter in head["counters"]
        }


class ViewServer:
    """A running `hotspan view` on some paths."""

    def __init__(self, *paths: Path) -> None:
        """Starts it and waits for the address it prints."""
        program = Path(sys.executable).with_name("hotspan")
        command = [str(program), "view", "--no-open", *map(str, paths)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert "http://127.0.0.1:" in line, line
        self.address = line.split()[3]
        parts = urlsplit(self.address)
        assert parts.port is not None
        self.port = parts.port
        self.token = parts.path.strip("/")

    def __enter__(self) -> ViewServer:
        """The server itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends it."""
        self.process.kill()
        self.process.wait()
        if self.process.stderr is not None:
            self.process.stderr.close()

    def request(
        self, path: str, method: str = "GET", headers: dict[str, str] | None = None
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Status, headers and body of a request to a path exactly as given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=headers is not None and "Host" in headers)
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            connection.endheaders()
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def api(self, call: str, status: int = 200) -> Any:
        """The answer to a call, which must have this status."""
        got, _, body = self.request(f"/{self.token}/api/{call}")
        assert got == status, (got, body)
        return json.loads(body)

    def tile(self, run: int, level: int, index: int, tracks: list[int]) -> Tile:
        """A tile of the timeline, taken apart as crates/hotspan-view/src/timeline/tile.rs says."""
        wanted = ",".join(map(str, tracks))
        call = f"/{self.token}/api/run/{run}/tile?level={level}&index={index}&tracks={wanted}"
        status, headers, body = self.request(call)
        assert (status, headers["Content-Type"]) == (200, "application/octet-stream")
        (length,) = struct.unpack_from("<I", body)
        return Tile(json.loads(body[8 : 8 + length]), memoryview(body)[8 + length :])

    def rows(self, call: str, key: str | None = None) -> list[dict[str, Any]]:
        """The rows of a table as the command line prints them: one object for each."""
        sections = self.api(call)["sections"]
        chosen = [section for section in sections if key is None or section["key"] == key]
        table = chosen[0]["table"]
        keys = [column["key"] for column in table["columns"]]
        return [dict(zip(keys, row, strict=True)) for row in table["rows"]]
