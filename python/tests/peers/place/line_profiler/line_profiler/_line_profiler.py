"""The names of line_profiler's compiled part that its tests look at."""

import sys

from hotspan.lines._stats import PlainLineStats as LineStats

__all__ = ["USE_LEGACY_TRACE", "LineStats"]

USE_LEGACY_TRACE = sys.version_info < (3, 12)
