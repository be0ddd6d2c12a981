"""What a program asks the profiler for, in one value that every collector understands."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch.profiler import ProfilerActivity, supported_activities

from hotspan._notices import warn_once
from hotspan.profiler._experimental import is_set

Activity: TypeAlias = ProfilerActivity | Mapping[ProfilerActivity, Any]


@dataclass(frozen=True)
class Request:
    """What to record."""

    activities: frozenset[ProfilerActivity]
    # As the program gave them, for torch.profiler; None stands for all.
    given_activities: tuple[Activity, ...] | None = None
    shapes: bool = False
    memory: bool = False
    stack: bool = False
    flops: bool = False
    modules: bool = False
    # Operators only on request: `{ProfilerActivity.CPU: []}` asks for none.
    operators: bool = True
    experimental_config: Any = None

    @property
    def overload_names(self) -> bool:
        """Whether operators go by their full names."""
        return is_set(self.experimental_config, "capture_overload_names")

    def metadata(self) -> dict[str, str]:
        """What torch writes into its traces about the request."""
        asked = {
            "profile_memory": self.memory,
            "with_stack": self.stack,
            "record_shapes": self.shapes,
            "with_modules": self.modules,
            "with_flops": self.flops,
        }
        return {name: "1" for name, is_set in asked.items() if is_set}


def parse_activities(given: Iterable[Activity] | None) -> tuple[frozenset[ProfilerActivity], bool]:
    """Return the activities asked for, and whether operators are among them."""
    if given is None:
        return frozenset(supported_activities()), True
    found: dict[ProfilerActivity, Any] = {}
    for item in given:
        if isinstance(item, Mapping):
            pairs = list(item.items())
        elif isinstance(item, ProfilerActivity):
            pairs = [(item, None)]
        else:
            valid = ", ".join(f"ProfilerActivity.{name}" for name in ProfilerActivity.__members__)
            raise TypeError(f"unknown activity {item!r}; known ones: {valid}")
        for activity, kinds in pairs:
            if not isinstance(activity, ProfilerActivity):
                raise TypeError(f"unknown activity {activity!r} in {item!r}")
            if activity in found:
                raise ValueError(f"activity {activity} is given more than once")
            found[activity] = kinds
    if not found:
        raise AssertionError(
            "no activities to record: give ProfilerActivity.CPU, or leave activities out for all"
        )
    operators = found.get(ProfilerActivity.CPU, True)
    return frozenset(found), operators is None or bool(getattr(operators, "activity_types", operators))


def device_of(activities: frozenset[ProfilerActivity]) -> str | None:
    """The device whose work is asked for, if this machine has one."""
    # Whoever names a libcupti means it.
    device = "CUDA" if ProfilerActivity.CUDA in activities and os.environ.get("HOTSPAN_CUPTI") else None
    for activity in sorted(activities - {ProfilerActivity.CPU}, key=lambda activity: activity.name):
        backend = getattr(torch, activity.name.lower(), None)
        if backend is not None and getattr(backend, "is_available", lambda: False)():
            device = activity.name
    return device


def warn_about_missing_devices(
    given: Iterable[Activity] | None, activities: frozenset[ProfilerActivity]
) -> None:
    """Say so when a device was named that is not there: the profile then shows the CPU only."""
    if given is not None and activities - {ProfilerActivity.CPU} and device_of(activities) is None:
        names = ", ".join(sorted(activity.name for activity in activities - {ProfilerActivity.CPU}))
        warn_once(f"{names} is not available on this machine: only the CPU is recorded", stacklevel=5)
