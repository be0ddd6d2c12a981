"""The names of line_profiler.cli_utils."""

from hotspan.lines._config import command_config as get_cli_config
from hotspan.lines._flags import add_argument as add_argument
from hotspan.lines._flags import boolean as boolean
from hotspan.lines._flags import get_python_executable as get_python_executable
from hotspan.lines._flags import positive_float as positive_float
from hotspan.lines._flags import short_string_path as short_string_path

__all__ = [
    "add_argument",
    "boolean",
    "get_cli_config",
    "get_python_executable",
    "positive_float",
    "short_string_path",
]
