"""Memory by line: how the process grew on each line of chosen functions, as memory_profiler shows it.

``@profile`` prints a table after each call, ``python -m hotspan.memory`` one per function when the script ends, and
``memory_usage`` samples a process or a call. A line costs one read of ``/proc/self/statm``; the backends that measure
other memory than resident are slow. ``%load_ext hotspan.memory`` gives IPython ``%memit`` and ``%mprun``, and
``python -m hotspan.memory.mprof`` records memory over time.
"""

from hotspan.memory._log import LogFile
from hotspan.memory._magics import MemitResult, MemoryProfilerMagics, load_ipython_extension
from hotspan.memory._profiler import CodeMap, MemoryProfiler, profile, show_results
from hotspan.memory._readings import choose_backend
from hotspan.memory._running import exec_with_profiler, run_module_with_profiler
from hotspan.memory._timestamps import TimeStamper
from hotspan.memory._usage import MemoryReading, memory_usage

LineProfiler = MemoryProfiler

__all__ = [
    "CodeMap",
    "LineProfiler",
    "LogFile",
    "MemitResult",
    "MemoryProfiler",
    "MemoryProfilerMagics",
    "MemoryReading",
    "TimeStamper",
    "choose_backend",
    "exec_with_profiler",
    "load_ipython_extension",
    "memory_usage",
    "profile",
    "run_module_with_profiler",
    "show_results",
]
