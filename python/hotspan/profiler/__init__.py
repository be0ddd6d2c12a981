"""torch.profiler with the import changed: same names, same arguments, same tables, a fraction of the cost.

    from hotspan.profiler import profile, record_function, ProfilerActivity

Needs torch. What has a meaning whoever records is torch's own object. What differs from torch.profiler, and why, is in
docs/profiler.md.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "hotspan.profiler records torch operators and needs torch. hint: pip install torch"
    ) from error

import torch.profiler as _theirs
from torch._C._profiler import RecordScope
from torch._C._profiler import _ExperimentalConfig as _ExperimentalConfig
from torch.autograd.profiler import KinetoStepTracker
from torch.profiler import (
    DeviceType,
    ExecutionTraceObserver,
    ProfilerAction,
    ProfilerActivity,
    itt,
    kineto_available,
    record_function,
    supported_activities,
)

from hotspan.profiler import _lost_names
from hotspan.profiler._handlers import tensorboard_trace_handler
from hotspan.profiler._profile import profile
from hotspan.profiler._schedule import schedule
from hotspan.profiler.autograd import profile as autograd_profile

#: torch's name for what ``profile`` is without schedules; ours has them.
_KinetoProfile = profile

__all__ = [
    "DeviceType",
    "ExecutionTraceObserver",
    "KinetoStepTracker",
    "ProfilerAction",
    "ProfilerActivity",
    "RecordScope",
    "autograd_profile",
    "itt",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


def __getattr__(name: str) -> object:
    """Names that only some releases of torch have: torch's own objects, or what stands in for them."""
    if not name.startswith("__"):
        for place in (_theirs, _theirs.profiler, _lost_names):
            if hasattr(place, name):
                return getattr(place, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
