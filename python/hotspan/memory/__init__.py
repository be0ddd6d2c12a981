"""Memory by line: how the process grew on each line of chosen functions, as memory_profiler shows it.

``@profile`` prints a table after each call, ``python -m hotspan.memory`` one per function when the script ends, and
``memory_usage`` samples a process or a call. A line costs one read of ``/proc/self/statm``.
"""

from hotspan.memory._profiler import MemoryProfiler, profile, show_results
from hotspan.memory._usage import MemoryReading, memory_usage

LineProfiler = MemoryProfiler

__all__ = ["LineProfiler", "MemoryProfiler", "MemoryReading", "memory_usage", "profile", "show_results"]
