"""Hugging Face Accelerate: a ``ProfileKwargs`` whose profile is hotspan's.

from hotspan.integrations.accelerate import ProfileKwargs

accelerator = Accelerator(kwargs_handlers=[ProfileKwargs(activities=["cpu"])])
with accelerator.profile() as prof: ...
"""

from __future__ import annotations

from typing import Any

from accelerate.utils import ProfileKwargs as _ProfileKwargs

from hotspan.profiler import ProfilerActivity, profile, schedule


class ProfileKwargs(_ProfileKwargs):  # type: ignore[misc]
    """Accelerate's options, with another ``build``."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """Accelerate's own class: it looks handlers up by it, and knows no subclasses."""
        return _ProfileKwargs

    def build(self) -> Any:
        """Return the profile that these options describe."""
        activities = None
        if self.activities is not None:
            activities = [_activity(name) for name in self.activities]
        return profile(
            activities=activities,
            schedule=schedule(**self.schedule_option) if self.schedule_option is not None else None,
            on_trace_ready=self.on_trace_ready,
            record_shapes=self.record_shapes,
            profile_memory=self.profile_memory,
            with_stack=self.with_stack,
            with_flops=self.with_flops,
            with_modules=self.with_modules,
        )


def _activity(name: str) -> ProfilerActivity:
    known = {known.lower(): activity for known, activity in ProfilerActivity.__members__.items()}
    if name not in known:
        raise ValueError(f"unknown activity {name!r}; known ones: {', '.join(sorted(known))}")
    return known[name]
