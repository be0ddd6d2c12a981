"""A file on a server, read by ranges of bytes: a few megabytes of an archive of a gigabyte."""

from __future__ import annotations

import io
import urllib.request
from collections.abc import Iterable

#: Parts that are closer than this are fetched at once.
_NEAR = 1 << 20
#: More than the head and the name of an entry.
_HEAD = 4096


class RangedFile(io.RawIOBase):
    """A file that can be read and sought, of which only what is read is fetched."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._at = 0
        self._parts: list[tuple[int, bytes]] = []
        request = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(request, timeout=60) as answer:
            self._size = int(answer.headers["Content-Length"])

    def expect(self, parts: Iterable[tuple[int, int]]) -> None:
        """Fetch these parts (offset, bytes), neighbours together."""
        spans: list[list[int]] = []
        for start, count in sorted(parts):
            end = min(start + count + _HEAD, self._size)
            if spans and start <= spans[-1][1] + _NEAR:
                spans[-1][1] = max(spans[-1][1], end)
            else:
                spans.append([start, end])
        self._parts += [(start, self._fetch(start, end)) for start, end in spans]

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """It can be sought."""
        return True

    def tell(self) -> int:
        """Return where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go somewhere else."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = base + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Read what was fetched, or fetch it."""
        end = self._size if size < 0 else min(self._at + size, self._size)
        start, self._at = self._at, max(self._at, end)
        for offset, part in self._parts:
            if offset <= start and end <= offset + len(part):
                return part[start - offset : end - offset]
        return self._fetch(start, end) if start < end else b""

    def _fetch(self, start: int, end: int) -> bytes:
        request = urllib.request.Request(self._url, headers={"Range": f"bytes={start}-{end - 1}"})
        with urllib.request.urlopen(request, timeout=300) as answer:
            if answer.status != 206:
                raise OSError(f"{self._url}: the server does not send parts of files")
            return bytes(answer.read())
