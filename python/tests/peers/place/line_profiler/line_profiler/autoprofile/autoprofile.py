"""The names of line_profiler.autoprofile.autoprofile."""


def _extend_line_profiler_for_profiling_imports(_profiler: object) -> None:
    """hotspan's LineProfiler has `add_imported_function_or_module` without it."""
