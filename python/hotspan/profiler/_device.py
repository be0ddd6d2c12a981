"""Device work of hotspan's own collector: when it is recorded, and what torch has to do for it."""

from __future__ import annotations

import os

from hotspan import _core
from hotspan._core import CollectError
from hotspan._notices import say_once
from hotspan.profiler._experimental import is_set
from hotspan.profiler._request import Request, device_of


def is_wanted(request: Request) -> bool:
    """Whether CUDA devices are asked for and there are any."""
    return device_of(request.activities) == "CUDA" and request.device_kinds != []


def is_recordable() -> bool:
    """Whether this process has a libcupti that hotspan can use; a torch of ROCm has none."""
    if os.environ.get("HOTSPAN_CUPTI"):
        return True  # when it cannot be used after all, that is told when recording starts
    try:
        _core.cupti_library()
    except CollectError:
        return False
    return True


def start(recorder: _core.Recorder, request: Request) -> bool:
    """Begin to record device work; say why when that cannot be. Operators are recorded in any case."""
    try:
        waits = is_set(request.experimental_config, "enable_cuda_sync_events")
        recorder.start_device(waits, request.device_kinds)
    except CollectError as error:
        say_once(f"device work is not recorded, only the CPU: {error}")
        return False
    return True
