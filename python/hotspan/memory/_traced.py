"""``TracedLines``: the recorder of lines in Python, for memory that the one in Rust does not measure.

It is slow, as memory_profiler is: each line waits for PSS, USS, the children or tracemalloc to be read.
"""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import Any

from hotspan import _core
from hotspan.memory._readings import MEBIBYTE, memory_of


class _Function:
    """A watched function and its lines: hits, the most memory and the sum of increments, in MiB."""

    def __init__(self, name: str, file: str, first_line: int) -> None:
        self.name, self.file, self.first_line = name, file, first_line
        self.lines: dict[int, list[float]] = {}


class TracedLines:
    """Has the methods of ``_core.LineRecorder``."""

    def __init__(self, backend: str, include_children: bool = False, max_mem: float | None = None) -> None:
        self._backend, self._include_children, self._max_mem = backend, include_children, max_mem
        # By identity: code of two files may be equal.
        self._by_code: dict[int, _Function] = {}
        self._codes: list[CodeType] = []
        self._functions: list[_Function] = []
        #: The line that each running frame is on.
        self._at: dict[FrameType, int] = {}
        self._last_memory = 0.0
        self._count = 0
        self._explicit = False
        self._earlier: Any = None

    def add(
        self, codes: list[CodeType], name: str, file: str, first: int, last: int, lines: list[int]
    ) -> None:
        """Watch a function and the code inside it."""
        del last, lines
        function = _Function(name, file, first)
        self._functions.append(function)
        self._codes.extend(codes)
        self._by_code.update(dict.fromkeys(map(id, codes), function))

    def enable_by_count(self) -> None:
        """Record until :meth:`disable_by_count` was called as often."""
        if self._count == 0:
            self._earlier = sys.gettrace()
            sys.settrace(self._trace)
        self._count += 1

    def disable_by_count(self) -> None:
        """Take one :meth:`enable_by_count` back."""
        if self._count > 0:
            self._count -= 1
            if self._count == 0 and sys.gettrace() == self._trace:
                sys.settrace(self._earlier)

    def enable(self) -> None:
        """Record until :meth:`disable`."""
        if not self._explicit:
            self._explicit = True
            self.enable_by_count()

    def disable(self) -> None:
        """Stop recording."""
        if self._explicit:
            self._explicit = False
            self.disable_by_count()

    def rest(self) -> None:
        """Nothing is held between calls."""

    def snapshot(self) -> _core.Trace:
        """Return what was recorded."""
        rows = []
        for function in self._functions:
            lines = [
                (line, int(hits), 0, round(memory * MEBIBYTE), round(increment * MEBIBYTE))
                for line, (hits, memory, increment) in sorted(function.lines.items())
            ]
            rows.append((function.file, function.first_line, function.name, lines))
        return _core.lines_trace(rows)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if self._earlier is not None:
            self._earlier(frame, event, argument)
        function = self._by_code.get(id(frame.f_code))
        if function is None:
            return self._trace
        if event == "call":
            self._at[frame] = frame.f_lineno
        elif event in ("line", "return"):
            memory = self._memory(function.file)
            self._measure(function, self._at.pop(frame, frame.f_lineno), memory)
            if event == "line":
                self._at[frame] = frame.f_lineno
                if self._max_mem is not None and memory >= self._max_mem:
                    return self._debug(frame, memory)
        return self._trace

    def _memory(self, file: str) -> float:
        return memory_of(os.getpid(), self._backend, self._include_children, file) or 0.0

    def _measure(self, function: _Function, line: int, memory: float) -> None:
        row = function.lines.setdefault(line, [0, 0.0, 0.0])
        row[0] += 1
        row[1] = max(row[1], memory)
        row[2] += memory - self._last_memory
        self._last_memory = memory

    def _debug(self, frame: FrameType, memory: float) -> Any:
        """Hand the frame over to the debugger, once, which sets its own trace function."""
        print(f"{memory:.2f} MiB are in use, {self._max_mem:.2f} MiB are allowed: here is the debugger")
        import pdb

        self._max_mem = None
        self._at.clear()
        debugger = pdb.Pdb()
        debugger.set_trace(frame)
        return debugger.trace_dispatch
