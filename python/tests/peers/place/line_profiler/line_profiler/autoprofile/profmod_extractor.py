"""A name that line_profiler's tests import."""


class ProfmodExtractor:
    """Not there: no syntax tree is rewritten."""
