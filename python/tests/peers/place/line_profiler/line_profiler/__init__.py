"""line_profiler's names, which are hotspan's. `profile` is line_profiler's: off unless it is asked for."""

from hotspan import __version__ as __version__
from hotspan.lines import LineProfiler as LineProfiler
from hotspan.lines import LineStats as LineStats
from hotspan.lines import load_ipython_extension as load_ipython_extension
from hotspan.lines import load_stats as load_stats
from hotspan.lines import main as main
from hotspan.lines import show_func as show_func
from hotspan.lines import show_text as show_text
from line_profiler import line_profiler as line_profiler
from line_profiler.explicit_profiler import profile as profile
