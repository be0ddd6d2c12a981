"""hotspan: a profiler for PyTorch and Python programs.

``hotspan.open("trace.json.gz")`` opens a Kineto or Chrome trace of any size; its ``key_averages()`` is torch's.
``@hotspan.lines.profile`` records the lines of a function, ``@hotspan.memory.profile`` its memory by line.
``hotspan.sample()`` samples the running program, with the native frames below its Python code.
``hotspan.profiler`` is ``torch.profiler`` with the import changed; it needs torch, nothing else here does.

**Units.** Data are whole nanoseconds, in names that end in ``_ns``, and whole bytes, in names that end in ``bytes``.
Arguments that people give, such as intervals and timeouts, are seconds. What stands in for another tool keeps that
tool's units: microseconds for torch's rows and events, seconds for ``hotspan.cprofile``. See docs/python-api.md.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from hotspan import advice as advice
    from hotspan import cprofile as cprofile
    from hotspan import diff as diff
    from hotspan import event_list as event_list
    from hotspan import lines as lines
    from hotspan import memory as memory
    from hotspan import profiler as profiler
    from hotspan import rows as rows
    from hotspan import sampling as sampling
    from hotspan import trace as trace
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
    from hotspan.lines import LineProfiler
    from hotspan.lines import profile as profile
    from hotspan.memory import profile as profile_memory  # noqa: F401
    from hotspan.notebook import view
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
    "sample",
    "view",
]

#: The module of each name, loaded on first use: `hotspan run` puts this package into every program it starts.
_MODULES = {
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
    "sample": "sampling",
    "view": "notebook",
}
_SUBMODULES = {*_MODULES.values(), "cprofile", "diff", "memory", "profiler"}
#: Names of old, and the modules whose ``profile`` they are.
_DEPRECATED = {"profile": "lines", "profile_memory": "memory"}

# Hidden from type checkers, which would take any name for one of ours.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in _SUBMODULES:
            return _load(name)
        if name in _MODULES:
            value = getattr(_load(_MODULES[name]), name)
        elif name in _DEPRECATED:
            replacement = f"{_DEPRECATED[name]}.profile"
            _load("_notices").warn_deprecated(f"hotspan.{name}", f"hotspan.{replacement}", stacklevel=2)
            value = _load(_DEPRECATED[name]).profile
        else:
            raise AttributeError(f"module 'hotspan' has no attribute {name!r}")
        # From here on Python finds it without us: a warning comes once.
        globals()[name] = value
        return value


def _load(module: str) -> "ModuleType":
    __import__(f"hotspan.{module}")
    return sys.modules[f"hotspan.{module}"]


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_SUBMODULES})
