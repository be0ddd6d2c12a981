"""torch.profiler beside hotspan: it does not start on a thread that hotspan's hooks are in, so hotspan makes room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.autograd.profiler

from hotspan import _core
from hotspan._notices import say_once

# What torch.profiler calls first, by names of its module.
_STARTS = ("_prepare_profiler", "_enable_profiler")


class MakeRoom:
    """Until it is removed, starting torch.profiler ends what needs hooks in threads: memory and Triton's ranges."""

    def __init__(self, recorder: _core.Recorder, memory: bool) -> None:
        self._originals: dict[str, Callable[..., Any]] = {}
        for name in _STARTS:
            start = getattr(torch.autograd.profiler, name, None)
            if start is not None:
                self._originals[name] = start
                setattr(torch.autograd.profiler, name, _releasing(recorder, start, memory))

    def remove(self) -> None:
        """Leave torch.profiler as it was."""
        for name, start in self._originals.items():
            setattr(torch.autograd.profiler, name, start)
        self._originals = {}


def _releasing(recorder: _core.Recorder, start: Callable[..., Any], memory: bool) -> Callable[..., Any]:
    def release_and_start(*arguments: Any, **options: Any) -> Any:
        if memory:
            say_once("torch.profiler starts: hotspan goes on without memory")
        recorder.release_memory()
        return start(*arguments, **options)

    return release_and_start
