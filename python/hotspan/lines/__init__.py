"""Lines: how often each line of chosen functions was executed and how long it took.

``LineProfiler`` has the methods of line_profiler's, ``@profile`` marks functions, and ``python -m hotspan.lines`` runs
a script as ``kernprof -l -v`` does. Recording and reports are Rust; here are the names.
"""

from hotspan.lines._explicit import profile
from hotspan.lines._profiler import LineFunction, LineProfiler, LineStats, LineTiming, load_stats

__all__ = ["LineFunction", "LineProfiler", "LineStats", "LineTiming", "load_stats", "profile"]
