"""The names of line_profiler.explicit_profiler."""

from hotspan.lines import GlobalProfiler

profile = GlobalProfiler()
