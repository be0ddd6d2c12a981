"""Calls of ``nn.Module``s as spans, by hooks that torch calls around every forward.

A module is named by its place: ``nn.Module: ResNet.layer1.0.conv1``. ``key_averages(group_by_module=True)`` and
``hotspan stats --by module`` sum up by that name.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from torch import nn

from hotspan import _core
from hotspan.profiler._module_hooks import ForwardHooks, kind_of


class _Open(threading.local):
    """The modules that a thread is in: name and time of entry."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []


class ModuleCalls:
    """Records the calls of all modules on all threads until it is removed."""

    def __init__(self, recorder: _core.Recorder) -> None:
        self._recorder = recorder
        self._names: weakref.WeakKeyDictionary[nn.Module, str] = weakref.WeakKeyDictionary()
        self._open = _Open()
        self._hooks = ForwardHooks(self._enter, self._leave)

    def remove(self) -> None:
        """Take the hooks out."""
        self._hooks.remove()

    def _enter(self, module: nn.Module, _inputs: Any) -> None:
        name = self._names.get(module)
        if name is None:
            name = self._learn(module)
        self._open.calls.append((name, _core.clock_now()))

    def _leave(self, _module: nn.Module) -> None:
        # A module that was entered before recording began leaves without a call to close.
        if self._open.calls:
            name, start = self._open.calls.pop()
            self._recorder.add_call(name, start, _core.clock_now())

    def _learn(self, root: nn.Module) -> str:
        """Name a module that is nobody's part so far, and all its parts."""
        kind = kind_of(root)
        for place, module in root.named_modules():
            path = place.replace("_orig_mod.", "").removesuffix("_orig_mod")
            self._names.setdefault(module, f"nn.Module: {kind}.{path}" if path else f"nn.Module: {kind}")
        return self._names[root]
