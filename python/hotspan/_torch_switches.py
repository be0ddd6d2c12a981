"""Torch's switches that say whether a profiler records: on while hotspan does, so that torch makes ranges for it too.

Compiled functions, Dynamo, DataLoader and others mark their regions only where a switch is on. There are three:
``torch.autograd.profiler._is_profiler_enabled`` and ``torch.autograd._profiler_enabled()``, which are set here, and a
slot in each thread, which ``_RecordFunctionFast`` looks at and the hooks fill.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

# Which of our recordings are under way: the whole program's, a profile's, or both.
_recordings: set[str] = set()
# What torch's function was before it was replaced.
_original: Any = None


def torch_profiler_is_enabled(torch: ModuleType) -> bool:
    """Whether torch.profiler itself records on this thread."""
    return bool((_original or torch.autograd._profiler_enabled)())


def switch_on(torch: ModuleType, recording: str) -> None:
    """Tell torch that a profiler records; again where torch.profiler has ended since and said otherwise."""
    global _original
    _recordings.add(recording)
    torch.autograd.profiler._is_profiler_enabled = True
    if torch.autograd._profiler_enabled is not _is_enabled:
        _original = torch.autograd._profiler_enabled
        torch.autograd._profiler_enabled = _is_enabled


def switch_off(torch: ModuleType, recording: str) -> None:
    """Tell torch that this recording has ended. The switches stay on while there is another, or torch.profiler."""
    global _original
    _recordings.discard(recording)
    if _recordings:
        return
    if torch.autograd._profiler_enabled is _is_enabled:
        torch.autograd._profiler_enabled = _original
        _original = None
    torch.autograd.profiler._is_profiler_enabled = torch_profiler_is_enabled(torch)


def _is_enabled() -> bool:
    """In the place of torch's function of this name: whether a profiler records."""
    return True
