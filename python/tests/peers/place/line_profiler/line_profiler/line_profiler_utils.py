"""The names of line_profiler.line_profiler_utils."""

from hotspan.lines._scope import StringEnum as StringEnum
