"""What the program's tensors are, told to the trace: which memory is a parameter, gradient, optimizer state or input.

Hooks that torch calls around every model and every optimizer step look at tensors' addresses, never at their values,
and leave the rest to the analysis (``trace.memory_timeline()``). They are in place only while memory is recorded.
Parameters and optimizer states mostly stay where they are: those of an optimizer are told again when one has moved.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.profiler import DeviceType

from hotspan import _core
from hotspan.profiler._identities import Identities
from hotspan.profiler._module_hooks import ForwardHooks

# Device type, device index, address, bytes.
Block = tuple[int, int, int, int]
# A time, a thread of the system, a role or a phase, and blocks.
Mark = tuple[int, int, str, list[Block]]

_DEVICE_TYPES = {name.lower(): int(kind) for name, kind in DeviceType.__members__.items()}
_DEVICE_TYPES["privateuseone"] = _DEVICE_TYPES.get("privateuse1", 20)


class TensorMarks:
    """Listens until it is removed; ``marks`` is what was learned, by readings of ``clock``."""

    def __init__(self, clock: Callable[[], int], identities: Identities | None = None) -> None:
        self.marks: list[Mark] = []
        self._clock = clock
        # Told of every module and every step, where single tensors matter.
        self._identities = identities
        # Modules that were called by the program, and modules that are part of one of those, by their identity.
        self._models: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        self._parts: dict[int, weakref.ref[nn.Module]] = {}
        # What was last told of an optimizer, by role.
        self._told: weakref.WeakKeyDictionary[Optimizer, dict[str, list[Block]]] = weakref.WeakKeyDictionary()
        self._handles: list[Any] = [
            ForwardHooks(self._enter, self._leave),
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]

    def remove(self) -> list[Mark]:
        """Take the hooks out, and look a last time; return all marks."""
        self.look()
        for handle in self._handles:
            handle.remove()
        self._handles = []
        return self.marks

    def look(self) -> None:
        """Mark the gradients that the models seen so far have now."""
        for model in list(self._models):
            self._mark("gradient", _gradients(model.parameters()))

    def _mark(self, role: str, blocks: list[Block]) -> None:
        if blocks:
            self.marks.append((self._clock(), threading.get_native_id(), role, blocks))

    def _mark_new(self, role: str, optimizer: Optimizer, blocks: list[Block]) -> None:
        """Mark what an optimizer works on, unless all of it is where it was."""
        told = self._told.setdefault(optimizer, {})
        if told.get(role) != blocks:
            told[role] = blocks
            self._mark(role, blocks)

    def _is_part(self, module: nn.Module) -> bool:
        part = self._parts.get(id(module))
        return part is not None and part() is module

    def _enter(self, module: nn.Module, inputs: Any) -> None:
        if self._identities is not None:
            self._identities.saw_module(module)
        if self._is_part(module):
            return
        if module not in self._models:
            self._models.add(module)
            self._parts |= {id(part): weakref.ref(part) for part in module.modules() if part is not module}
            self._mark("parameter", _blocks(list(module.parameters())))
            self._mark("buffer", _blocks(list(module.buffers())))
        self._mark("gradient", _gradients(module.parameters()))
        self._mark("input", _blocks(inputs))
        self.marks.append((self._clock(), threading.get_native_id(), "forward_begin", []))

    def _leave(self, module: nn.Module) -> None:
        if not self._is_part(module) and module in self._models:
            self.marks.append((self._clock(), threading.get_native_id(), "forward_end", []))

    def _before_step(self, optimizer: Optimizer, *_arguments: Any) -> None:
        if torch.compiler.is_compiling():
            return
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        self._mark_new("parameter", optimizer, _blocks(parameters))
        self._mark("gradient", _gradients(parameters))
        self._mark_new("optimizer_state", optimizer, _blocks(list(optimizer.state.values())))

    def _after_step(self, optimizer: Optimizer, *_arguments: Any) -> None:
        if torch.compiler.is_compiling():
            return
        if self._identities is not None:
            self._identities.saw_step(optimizer)
        self._mark_new("optimizer_state", optimizer, _blocks(list(optimizer.state.values())))


def _blocks(value: Any) -> list[Block]:
    return _core.tensor_blocks(value, torch.Tensor, _DEVICE_TYPES)


def _gradients(parameters: Iterable[Any]) -> list[Block]:
    return _core.gradient_blocks(list(parameters), _DEVICE_TYPES)
