"""The names of line_profiler.line_profiler."""

from hotspan import __version__ as __version__
from hotspan.lines import LineProfiler as LineProfiler
from hotspan.lines import LineStats as LineStats
from hotspan.lines import load_ipython_extension as load_ipython_extension
from hotspan.lines import load_stats as load_stats
from hotspan.lines import main as main
from hotspan.lines import show_func as show_func
from hotspan.lines import show_text as show_text
from hotspan.lines._report import get_code_block as get_code_block
from hotspan.lines._report import is_generated_code as is_generated_code
