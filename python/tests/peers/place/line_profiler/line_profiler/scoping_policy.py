"""The names of line_profiler.scoping_policy."""

from hotspan.lines._scope import DEFAULT_SCOPING_POLICIES as DEFAULT_SCOPING_POLICIES
from hotspan.lines._scope import ScopingPolicy as ScopingPolicy
