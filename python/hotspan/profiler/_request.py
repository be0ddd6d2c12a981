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
    # torch's numbers of operators, for an execution trace that is recorded meanwhile.
    ids: bool = False
    experimental_config: Any = None

    @property
    def overload_names(self) -> bool:
        """Whether operators go by their full names."""
        return is_set(self.experimental_config, "capture_overload_names")

    @property
    def tensors(self) -> bool:
        """Whether single tensors are told apart: where all is recorded that torch's analysis of memory asks for."""
        return self.shapes and self.memory and self.stack

    @property
    def garbage(self) -> bool:
        """Whether collections of garbage are recorded."""
        return is_set(self.experimental_config, "record_python_gc_info")

    @property
    def device_kinds(self) -> list[str] | None:
        """The kinds of device work that are asked for; None is all."""
        configs = activity_configs(self.given_activities)
        kinds = next((kinds for activity, kinds in configs.items() if activity != ProfilerActivity.CPU), None)
        kinds = getattr(kinds, "activity_types", kinds)
        return None if kinds is None else list(kinds)

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


# Kineto's kinds of activity, by the names that a program may ask for: of the CPU, of both, and of devices.
_CPU_KINDS = {"CPU_OP", "USER_ANNOTATION", "EXTERNAL_CORRELATION", "CPU_INSTANT_EVENT", "PYTHON_FUNCTION"}
_CALL_KINDS = {"CUDA_RUNTIME", "CUDA_DRIVER", "XPU_RUNTIME", "PRIVATEUSE1_RUNTIME", "PRIVATEUSE1_DRIVER"}
_DEVICE_KINDS = {
    *(
        "GPU_MEMCPY",
        "GPU_MEMSET",
        "CONCURRENT_KERNEL",
        "GPU_USER_ANNOTATION",
        "OVERHEAD",
        "CUDA_SYNC",
        "CUDA_EVENT",
    ),
    *("CUDA_PROFILER_RANGE", "GPU_PM_COUNTER", "COLLECTIVE_COMM", "XPU_SYNC", "XPU_SCOPE_PROFILER", "HPU_OP"),
    *("MTIA_RUNTIME", "MTIA_CCP_EVENTS", "MTIA_INSIGHT", "MTIA_WORKLOADD", "MTIA_COUNTERS", "GLOW_RUNTIME"),
    "EXTERNAL_CORRELATION",
}


def _refuse_unknown_kinds(activity: ProfilerActivity, kinds: Any) -> None:
    """Raise for a name that torch does not know, or that belongs to another group."""
    known = (_CPU_KINDS if activity == ProfilerActivity.CPU else _DEVICE_KINDS) | _CALL_KINDS
    for name in getattr(kinds, "activity_types", kinds) or ():
        if name not in known:
            raise RuntimeError(
                f"Unknown or non-member activity type name: {name!r}; those of {activity.name} are "
                + ", ".join(sorted(known))
            )


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
            _refuse_unknown_kinds(activity, kinds)
            found[activity] = kinds
    if not found:
        raise AssertionError(
            "no activities to record: give ProfilerActivity.CPU, or leave activities out for all"
        )
    operators = found.get(ProfilerActivity.CPU, True)
    return frozenset(found), operators is None or bool(getattr(operators, "activity_types", operators))


def activity_configs(given: Iterable[Activity] | None) -> dict[ProfilerActivity, Any]:
    """What was asked of groups of activities in detail, as torch keeps it."""
    import torch.profiler

    config = getattr(torch.profiler, "ProfilerActivityConfig", None)
    found: dict[ProfilerActivity, Any] = {}
    for item in given or ():
        for activity, kinds in item.items() if isinstance(item, Mapping) else ():
            is_told = config is None or isinstance(kinds, config)
            found[activity] = kinds if is_told or config is None else config(activity_types=kinds)
    return found


def use_device(activities: frozenset[ProfilerActivity]) -> str | None:
    """The device whose work is asked for, as torch spells it."""
    for name in ("CUDA", "XPU", "MTIA", "HPU"):
        if getattr(ProfilerActivity, name, None) in activities:
            return name.lower()
    if getattr(ProfilerActivity, "PrivateUse1", None) in activities:
        return str(torch._C._get_privateuse1_backend_name())
    return None


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
