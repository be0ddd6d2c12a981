"""hotspan: a profiler for PyTorch and Python programs.

``hotspan.open("trace.json.gz")`` opens a Kineto or Chrome trace of any size; its ``key_averages()`` is torch's.
``@hotspan.profile`` records the lines of a function, ``@hotspan.profile_memory`` its memory by line.
``hotspan.sample()`` samples the running program, with the native frames below its Python code.
``hotspan.profiler`` is ``torch.profiler`` with the import changed; it needs torch, nothing else here does.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    from hotspan.rows import Row
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
    "Row",
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

#: Where each name is. They are loaded when asked for: `hotspan run` puts this package into every program it starts.
_PLACES = {
    "Advice": "advice",
    "Average": "_core",
    "CollectError": "_core",
    "Event": "_core",
    "EventList": "event_list",
    "Events": "_core",
    "Finding": "advice",
    "HotspanError": "_core",
    "LineProfiler": "lines",
    "Row": "rows",
    "Sampler": "sampling",
    "Spans": "_core",
    "Trace": "trace",
    "TraceFormatError": "_core",
    "__version__": "_core",
    "open": "trace",
    "profile": "lines",
    "profile_memory": "memory",
    "sample": "sampling",
}


def __getattr__(name: str) -> object:
    place = _PLACES.get(name)
    if place is not None:
        __import__(f"hotspan.{place}")
        value: object = getattr(
            sys.modules[f"hotspan.{place}"], "profile" if name == "profile_memory" else name
        )
        globals()[name] = value
        return value
    if name in _PLACES.values():
        __import__(f"hotspan.{name}")
        return sys.modules[f"hotspan.{name}"]
    raise AttributeError(f"module 'hotspan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PLACES.values()})
