"""What the program's tensors are, told to the trace: which memory is a parameter, gradient, optimizer state or input.

Hooks that torch calls around every model and every optimizer step look at tensors' addresses, never at their values,
and leave the rest to the analysis (``trace.memory_timeline()``). They are in place only while memory is recorded.
Parameters and optimizer states mostly stay where they are: those of an optimizer are told again when one has moved.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.profiler import DeviceType

from hotspan.profiler._module_hooks import ForwardHooks

# A time, a thread of the system, a role or a phase, and blocks: device type, device index, address, bytes.
Mark = tuple[int, int, str, list[tuple[int, int, int, int]]]

_DEVICE_TYPES = {name.lower(): int(kind) for name, kind in DeviceType.__members__.items()}
_DEVICE_TYPES["privateuseone"] = _DEVICE_TYPES.get("privateuse1", 20)


class TensorMarks:
    """Listens until it is removed; ``marks`` is what was learned, by readings of ``clock``."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.marks: list[Mark] = []
        self._clock = clock
        # Modules that were called by the program, and modules that are part of one of those, by their identity.
        self._models: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        self._parts: dict[int, weakref.ref[nn.Module]] = {}
        # Where an optimizer's parameters and states were when they were told.
        self._told: dict[str, weakref.WeakKeyDictionary[Optimizer, list[int]]] = {
            role: weakref.WeakKeyDictionary() for role in ("parameter", "optimizer_state")
        }
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
        """Mark the gradients that the known models have now."""
        for model in list(self._models):
            self._mark("gradient", _gradients(model.parameters()))

    def _mark(self, role: str, tensors: Iterable[Any]) -> None:
        blocks = [block for tensor in tensors if (block := block_of(tensor)) is not None]
        if blocks:
            self.marks.append((self._clock(), threading.get_native_id(), role, blocks))

    def _mark_moved(self, role: str, optimizer: Optimizer, tensors: list[Any]) -> None:
        """Mark an optimizer's tensors, unless all are where they were."""
        try:
            addresses = [tensor.data_ptr() for tensor in tensors]
        except Exception:
            addresses = []  # tensors without memory of their own
        if addresses and self._told[role].get(optimizer) == addresses:
            return
        self._told[role][optimizer] = addresses
        self._mark(role, tensors)

    def _is_part(self, module: nn.Module) -> bool:
        known = self._parts.get(id(module))
        return known is not None and known() is module

    def _enter(self, module: nn.Module, inputs: Any) -> None:
        if self._is_part(module):
            return
        if module in self._models:
            self._mark("gradient", _gradients(module.parameters()))
        else:
            self._models.add(module)
            self._parts |= {id(part): weakref.ref(part) for part in module.modules() if part is not module}
            self._mark("parameter", module.parameters())
            self._mark("buffer", module.buffers())
            self._mark("gradient", _gradients(module.parameters()))
        self._mark("input", _tensors(inputs))
        self.marks.append((self._clock(), threading.get_native_id(), "forward_begin", []))

    def _leave(self, module: nn.Module) -> None:
        if not self._is_part(module) and module in self._models:
            self.marks.append((self._clock(), threading.get_native_id(), "forward_end", []))

    def _before_step(self, optimizer: Optimizer, *_arguments: Any) -> None:
        if torch.compiler.is_compiling():
            return
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        self._mark_moved("parameter", optimizer, parameters)
        self._mark("gradient", _gradients(parameters))
        self._mark_moved("optimizer_state", optimizer, _states(optimizer))

    def _after_step(self, optimizer: Optimizer, *_arguments: Any) -> None:
        if torch.compiler.is_compiling():
            return
        self._mark_moved("optimizer_state", optimizer, _states(optimizer))


def block_of(tensor: Any) -> tuple[int, int, int, int] | None:
    """The memory behind a tensor: device type, device index, address, bytes. None when there is none to speak of."""
    try:
        storage = tensor.untyped_storage()
        address, device = storage.data_ptr(), tensor.device
        if not address:
            return None
        kind = _DEVICE_TYPES.get(device.type)
        if kind is None:
            return None
        index = -1 if device.index is None else device.index
        return kind, index, address, storage.nbytes()
    except Exception:
        # Sparse, fake and other tensors without memory of their own. Whatever they raise is not the program's fault.
        return None


def _states(optimizer: Optimizer) -> list[Any]:
    states = list(optimizer.state.values())
    flat = [value for state in states if isinstance(state, dict) for value in state.values()]
    if len(states) and all(isinstance(value, torch.Tensor) for value in flat):
        return flat
    return list(_tensors(states))


def _gradients(parameters: Iterable[Any]) -> list[Any]:
    # Asking a tensor that is no leaf for its gradient would warn.
    return [p.grad for p in parameters if getattr(p, "is_leaf", False) and p.grad is not None]


def _tensors(value: Any, depth: int = 3) -> Iterator[Any]:
    """The tensors in a value, as far as lists and dictionaries go."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth and isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item, depth - 1)
    elif depth and isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item, depth - 1)
