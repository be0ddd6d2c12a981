"""Hooks around the forward of every module, safe beside ``torch.compile``: what is being compiled does not see them."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

# Compiled modules warn about hooks like these. With -W error that would end the program.
_WARNING = r"Using `torch\.compile\(module\)` when there are global hooks"


class ForwardHooks:
    """Calls ``enter(module, inputs)`` before and ``leave(module)`` after every forward, until it is removed."""

    def __init__(self, enter: Callable[[nn.Module, Any], None], leave: Callable[[nn.Module], None]) -> None:
        def before(module: nn.Module, inputs: Any) -> None:
            # A constant for the compiler: it leaves the rest out.
            if not torch.compiler.is_compiling():
                enter(module, inputs)

        def after(module: nn.Module, _inputs: Any, _output: Any) -> None:
            if not torch.compiler.is_compiling():
                leave(module)

        warnings.filterwarnings("ignore", message=_WARNING)
        self._filter = warnings.filters[0]
        self._handles = [
            register_module_forward_pre_hook(before),
            register_module_forward_hook(after, always_call=True),
        ]

    def remove(self) -> None:
        """Take the hooks out."""
        for handle in self._handles:
            handle.remove()
        with contextlib.suppress(ValueError):
            warnings.filters.remove(self._filter)  # type: ignore[attr-defined]


def kind_of(module: nn.Module) -> str:
    """The name of a module's class; a compiled one goes by what was compiled."""
    return type(getattr(module, "_orig_mod", module)).__name__
