"""The other collector: torch.profiler records and exports, hotspan reads the export."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch.autograd.profiler
import torch.profiler.profiler
from torch.profiler import ProfilerActivity

from hotspan import _core
from hotspan._core import CollectError
from hotspan.profiler._experimental import with_call_stacks
from hotspan.profiler._request import Request
from hotspan.profiler._tensors import TensorMarks

# Torch's own, as they were before a program put hotspan's profiles under their names.
_PROFILE = torch.profiler.profiler.profile
_OLDER_PROFILE = torch.autograd.profiler.profile


@contextlib.contextmanager
def _torchs_own_names() -> Iterator[None]:
    """Torch's profile finds the one of the older interface, which records, by its name."""
    present = torch.autograd.profiler.profile
    torch.autograd.profiler.profile = _OLDER_PROFILE
    try:
        yield
    finally:
        torch.autograd.profiler.profile = present


class KinetoCollector:
    """Records through torch.profiler."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._profile: Any = None
        self._is_running = False
        self._tensors: TensorMarks | None = None
        #: What torch.profiler recorded, for torch's own tools.
        self.results: Any = None
        self.identities = None

    def prepare(self) -> None:
        """Let torch set up what it needs; CUPTI takes its time."""
        if self._profile is not None:
            return
        request = self._request
        # Torch tells where operators were called from, and which modules ran, only to those who ask for everything.
        stack = request.stack or request.modules
        self._profile = _PROFILE(
            activities=request.given_activities,
            record_shapes=request.shapes,
            profile_memory=request.memory,
            with_stack=stack,
            with_flops=request.flops,
            experimental_config=with_call_stacks(request.experimental_config)
            if stack
            else request.experimental_config,
        )
        with _torchs_own_names():
            self._profile.prepare_trace()

    def start(self) -> None:
        """Begin to record."""
        self.prepare()
        self._profile.start_trace()
        self._is_running = True
        if self._request.memory:
            self._tensors = TensorMarks(time.time_ns)

    def stop(self, metadata: dict[str, str]) -> _core.Trace:
        """End, and read what torch exports."""
        if not self._is_running:
            raise CollectError("nothing is being recorded")
        marks = self._tensors.remove() if self._tensors is not None else []
        self._end()
        with tempfile.TemporaryDirectory(prefix="hotspan-") as folder:
            path = Path(folder) / "recording.pt.trace.json"
            self._profile.export_chrome_trace(str(path))
            self.results = self._profile.profiler.kineto_results
            self._profile = None
            return _core.open_recording(str(path), marks).with_metadata(list(metadata.items()))

    def discard(self) -> None:
        """End, and forget."""
        if self._profile is not None:
            if not self._is_running:
                # What was prepared is only cleared away by a recording.
                self._profile.start_trace()
            self._end()
            self._profile = None

    def __del__(self) -> None:
        # torch does not survive the end of a program that forgot a profile.
        if self._is_running:
            self.discard()

    def forget(self) -> None:
        """Leave everything as it is: this is a forked child, and the parent ends it."""
        self._is_running = False

    def toggle(self, record: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pause or resume."""
        if self._profile is not None:
            self._profile.toggle_collection_dynamic(record, activities)

    def look(self) -> None:
        """Mark the gradients that are there."""
        if self._tensors is not None:
            self._tensors.look()

    def _end(self) -> None:
        self._is_running = False
        if self._tensors is not None:
            self._tensors.remove()
            self._tensors = None
        self._profile.stop_trace()
