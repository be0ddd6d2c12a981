"""hotspan: a profiler for PyTorch and Python programs.

``hotspan.open("trace.json.gz")`` opens a Kineto or Chrome trace of any size; its ``key_averages()`` is torch's.
``@hotspan.profile`` records the lines of a function, ``@hotspan.profile_memory`` its memory by line.
``hotspan.sample()`` samples the running program, with the native frames below its Python code.
``hotspan.profiler`` is ``torch.profiler`` with the import changed; it needs torch, nothing else here does.
"""

from hotspan._core import (
    Average,
    CollectError,
    Event,
    Events,
    HotspanError,
    Spans,
    TraceFormatError,
    __version__,
)
from hotspan.advice import Advice, Finding
from hotspan.event_list import EventList
from hotspan.lines import LineProfiler, profile
from hotspan.memory import profile as profile_memory
from hotspan.sampling import Sampler, sample
from hotspan.trace import Trace, open

__all__ = [
    "Advice",
    "Average",
    "CollectError",
    "Event",
    "EventList",
    "Events",
    "Finding",
    "HotspanError",
    "LineProfiler",
    "Sampler",
    "Spans",
    "Trace",
    "TraceFormatError",
    "__version__",
    "open",
    "profile",
    "profile_memory",
    "sample",
]
