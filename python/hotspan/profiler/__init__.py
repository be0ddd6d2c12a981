"""torch.profiler with the import changed: same names, same arguments, same tables, a fraction of the cost.

    from hotspan.profiler import profile, record_function, ProfilerActivity

Needs torch. What differs from torch.profiler, and why, is in docs/profiler.md.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "hotspan.profiler records torch operators and needs torch. hint: pip install torch"
    ) from error

from torch.profiler import (
    ProfilerAction,
    ProfilerActivity,
    kineto_available,
    record_function,
    supported_activities,
)

from hotspan.profiler._handlers import tensorboard_trace_handler
from hotspan.profiler._profile import profile
from hotspan.profiler._schedule import schedule
from hotspan.profiler.autograd import profile as autograd_profile

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "autograd_profile",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
