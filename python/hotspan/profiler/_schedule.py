"""Schedules: which steps of a loop are recorded. Same arguments and answers as ``torch.profiler.schedule``."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from torch.profiler import ProfilerAction

Schedule = Callable[[int], ProfilerAction]


class ScheduleError(ValueError, AssertionError):
    """A schedule that cannot be; torch raises an ``AssertionError`` for it, so this is one too."""


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Schedule:
    """Return a schedule: skip ``skip_first`` steps, then repeat cycles of ``wait``, ``warmup`` and ``active`` steps.

    ``repeat`` limits the number of cycles, 0 does not. A ``skip_first_wait`` other than 0 leaves out the first wait.
    """
    for name, value in {"wait": wait, "warmup": warmup, "repeat": repeat, "skip_first": skip_first}.items():
        if value < 0:
            raise ScheduleError(f"schedule({name}={value}): must not be negative")
    if active <= 0:
        raise ScheduleError(f"schedule(active={active}): at least one step must be active")
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    cycle = wait + warmup + active
    first = skip_first - (wait if skip_first_wait else 0)

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise ScheduleError(f"step {step}: must not be negative")
        if step < skip_first:
            return ProfilerAction.NONE
        number, position = divmod(step - first, cycle)
        if position < wait or (repeat > 0 and number >= repeat):
            return ProfilerAction.NONE
        if position < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if position == cycle - 1 else ProfilerAction.RECORD

    return action


def always(_step: int) -> ProfilerAction:
    """Record every step: what a profile without a schedule does."""
    return ProfilerAction.RECORD
