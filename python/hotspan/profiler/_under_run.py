"""A profile inside a program that ``hotspan run`` records: the whole recording makes way for it and takes it in."""

from __future__ import annotations

import sys

from hotspan import _core


def lend() -> None:
    """Let a profile have what only one can record."""
    agent = sys.modules.get("hotspan._agent")
    if agent is not None:
        agent.lend("hotspan", operators=True)


def take_back(meanwhile: _core.Trace | None) -> None:
    """Go on with the whole recording, which gets what the profile recorded."""
    agent = sys.modules.get("hotspan._agent")
    if agent is not None:
        agent.take_back("hotspan", meanwhile)


def end_steps() -> None:
    """End what the whole recording records through torch.profiler, for want of hooks."""
    agent = sys.modules.get("hotspan._agent")
    if agent is not None:
        agent.end_steps()
