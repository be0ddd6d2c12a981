"""Lines: how often each line of chosen functions was executed and how long it took.

``LineProfiler`` has the methods of line_profiler's, ``@profile`` marks functions, and ``python -m hotspan.lines`` runs
a script as ``kernprof -l -v`` does. Recording and reports are Rust; here are the names.
"""

from hotspan import __version__
from hotspan.lines._explicit import GlobalProfiler, profile
from hotspan.lines._notebook import load_ipython_extension
from hotspan.lines._profiler import LineProfiler
from hotspan.lines._report import show_func, show_text
from hotspan.lines._scope import ScopingPolicy
from hotspan.lines._stats import LineFunction, LineStats, LineTiming, load_stats
from hotspan.lines._view import main

__all__ = [
    "GlobalProfiler",
    "LineFunction",
    "LineProfiler",
    "LineStats",
    "LineTiming",
    "ScopingPolicy",
    "__version__",
    "load_ipython_extension",
    "load_stats",
    "main",
    "profile",
    "show_func",
    "show_text",
]
