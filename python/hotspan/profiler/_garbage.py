"""Collections of garbage as spans: ``_ExperimentalConfig(record_python_gc_info=True)``."""

from __future__ import annotations

import gc
from typing import Any

from hotspan import _core


class GarbageCollections:
    """Records every collection until it is removed."""

    def __init__(self, recorder: _core.Recorder) -> None:
        self._recorder = recorder
        # Collections do not nest, and none begins on another thread before one has ended.
        self._began: int | None = None
        gc.callbacks.append(self._note)

    def remove(self) -> None:
        """Listen no longer."""
        if self._note in gc.callbacks:
            gc.callbacks.remove(self._note)

    def _note(self, phase: str, _: dict[str, Any]) -> None:
        now = _core.clock_now()
        if phase == "start":
            self._began = now
        elif self._began is not None:
            self._recorder.add_call("Python GC", self._began, now)
            self._began = None
