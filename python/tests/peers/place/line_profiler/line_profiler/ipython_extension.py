"""The names of line_profiler.ipython_extension."""

from hotspan.lines.ipython_extension import LineProfilerMagics as LineProfilerMagics
