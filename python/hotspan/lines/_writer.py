"""Writes results again and again while a program runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Writer:
    """A thread that writes a file every so many seconds, at least one apart; none for an interval of 0."""

    def __init__(self, write: Callable[[Any], object], path: Path, interval: float) -> None:
        self._stopped = threading.Event()
        if interval > 0:
            arguments = (write, path, max(interval, 1.0))
            threading.Thread(target=self._run, args=arguments, daemon=True).start()

    def _run(self, write: Callable[[Any], object], path: Path, interval: float) -> None:
        while not self._stopped.wait(interval):
            write(path)

    def stop(self) -> None:
        """Write no more."""
        self._stopped.set()
