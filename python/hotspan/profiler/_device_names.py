"""Devices by the names that ``torch.autograd.profiler`` takes."""

from __future__ import annotations

import torch.autograd.profiler
from torch.autograd.profiler import ProfilerActivity, ProfilerState


def known_device(name: str | None) -> str | None:
    """The device of this name, None for the CPU, which is always recorded; raises for a name that nobody knows."""
    if name is None or name == "cpu":
        return None
    named = {activity.lower() for activity in ProfilerActivity.__members__} - {"cpu"}
    named.add(torch.autograd.profiler._get_privateuse1_backend_name())
    if name not in named:
        raise ValueError(f"unknown use_device {name!r}; known ones: {', '.join(sorted(named))}")
    return name


def kind_of(device: str | None, use_kineto: bool) -> tuple[ProfilerState, ProfilerActivity | None]:
    """What torch calls a recording of this device, and the activity that it asks for."""
    if device is None:
        return ProfilerState.KINETO, None
    for name, activity in ProfilerActivity.__members__.items():
        if name.lower() == device and name != "PrivateUse1":
            return ProfilerState.KINETO, activity
    name = "KINETO_PRIVATEUSE1" if use_kineto else "KINETO_PRIVATEUSE1_FALLBACK"
    # Not every release of torch tells the two apart.
    return getattr(ProfilerState, name, ProfilerState.KINETO), ProfilerActivity.PrivateUse1
