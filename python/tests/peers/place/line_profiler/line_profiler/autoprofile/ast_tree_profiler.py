"""A name that line_profiler's tests import."""


class AstTreeProfiler:
    """Not there: no syntax tree is rewritten."""
