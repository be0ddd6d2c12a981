"""Torch's RPC beside a recording: it takes whatever looks like an enabled profiler for its own, in other processes too.

So a recording does not look like one while RPC runs, and ceases to when RPC starts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def _backends() -> Any:
    """Where RPC begins: the module that makes its agent; None where this torch has no RPC."""
    distributed = getattr(torch, "distributed", None)
    return getattr(getattr(distributed, "rpc", None), "backend_registry", None)


def is_running() -> bool:
    """Whether this process takes part in RPC."""
    rpc = getattr(torch._C, "_distributed_rpc", None)
    return bool(getattr(rpc, "_is_current_rpc_agent_set", lambda: False)())


class BeforeRpc:
    """Until it is removed, calls ``before`` when RPC starts."""

    def __init__(self, before: Callable[[], None]) -> None:
        self._backends = _backends()
        self._original = getattr(self._backends, "init_backend", None)
        if self._original is not None:
            original = self._original

            def make_room_and_start(*arguments: Any, **options: Any) -> Any:
                before()
                return original(*arguments, **options)

            self._backends.init_backend = make_room_and_start

    def remove(self) -> None:
        """Leave RPC as it was."""
        if self._original is not None:
            self._backends.init_backend = self._original
