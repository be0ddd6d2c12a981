"""Counts line events in plain Python: what the Rust collector must count too.

Usage: python count_lines.py SCRIPT; prints JSON, {function: {line: hits}}.
"""

import builtins
import json
import sys
import threading
from collections import Counter
from types import CodeType, FunctionType
from typing import Any

CODES: set[CodeType] = set()
HITS: Counter[tuple[CodeType, int]] = Counter()


def profile(function: FunctionType) -> FunctionType:
    """Counts a function's lines."""
    CODES.add(function.__code__)
    if sys.version_info >= (3, 12):
        monitoring = sys.monitoring
        monitoring.set_local_events(3, function.__code__, monitoring.events.LINE)
    return function


def count(code: CodeType, line: int) -> None:
    """A line begins."""
    HITS[code, line] += 1


def trace(frame: Any, event: str, _: object) -> Any:
    """The same for Python without sys.monitoring."""
    if frame.f_code not in CODES:
        return None
    if event == "line":
        count(frame.f_code, frame.f_lineno)
    return trace


def main() -> None:
    """Runs the script."""
    path = sys.argv[1]
    builtins.profile = profile  # type: ignore[attr-defined]
    if sys.version_info >= (3, 12):
        sys.monitoring.use_tool_id(3, "count")
        sys.monitoring.register_callback(3, sys.monitoring.events.LINE, count)
    else:
        threading.settrace(trace)
        sys.settrace(trace)
    with open(path, "rb") as file:  # noqa: PTH123 - the smallest thing that runs on every version
        exec(compile(file.read(), path, "exec"), {"__name__": "__main__"})
    sys.settrace(None)
    found: dict[str, dict[int, int]] = {f"{code.co_name}:{code.co_firstlineno}": {} for code in CODES}
    for (code, line), hits in HITS.items():
        found[f"{code.co_name}:{code.co_firstlineno}"][line] = hits
    print(json.dumps(found))


if __name__ == "__main__":
    main()
