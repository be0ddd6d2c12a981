"""What ``hotspan run`` records of Python functions beyond samples: every call (``--functions``), and ``--lines``."""

from __future__ import annotations

import os
import sys
from types import CodeType

from hotspan import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Functions:
    """Calls and lines, until the program ends."""

    def __init__(self, calls: bool, lines: list[str], memory: bool) -> None:
        self._lines: _core.LineRecorder | None = None
        self._calls: _core.CallProfiler | None = None
        self._targets = [_target(text) for text in lines]
        # By identity: functions of two files compare equal when their text and their lines do.
        self._seen: dict[int, CodeType] = {}
        if lines:
            self._lines = _core.LineRecorder(memory)
            # Nothing else sees the code of scripts and modules before it runs.
            sys.addaudithook(self._audit)
            self._lines.enable()
        if calls:
            self._calls = _core.CallProfiler()
            try:
                self._calls.enable()
            except (_core.CollectError, ValueError) as error:
                self._calls = None
                print(f"hotspan: calls are not counted: {error}", file=sys.stderr)

    def finish(self, agent: _core.Agent) -> None:
        """Hand over what was recorded."""
        if self._calls is not None:
            self._calls.disable()
            agent.add_trace(self._calls.trace())
        if self._lines is not None:
            lines, self._lines = self._lines, None
            lines.disable()
            agent.add_trace(lines.snapshot())

    def forget(self) -> None:
        """Leave what the parent recorded to the parent."""
        if self._calls is not None:
            self._calls.disable()
            self._calls = None
        if self._lines is not None:
            self._lines.disable()
            self._lines = None

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "exec" and self._lines is not None and isinstance(arguments[0], CodeType):
            code = arguments[0]
            functions = [name for file, name in self._targets if _is_file(code.co_filename, file)]
            if functions:
                self._watch(self._lines, code, functions)

    def _watch(self, recorder: _core.LineRecorder, script: CodeType, functions: list[str | None]) -> None:
        from hotspan._code import code_name, codes_of_script, line_range
        from hotspan._statements import statement_starts

        for code in codes_of_script(script):
            wanted = None in functions or not {code.co_name, code_name(code)}.isdisjoint(functions)
            if wanted and id(code) not in self._seen:
                self._seen[id(code)] = code
                first, last = line_range(code)
                recorder.add([code], code_name(code), code.co_filename, first, last, statement_starts(code))


def _target(text: str) -> tuple[str, str | None]:
    file, colon, function = text.rpartition(":")
    return (file, function) if colon and os.sep not in function else (text, None)


def _is_file(name: str, file: str) -> bool:
    if not name.endswith(os.path.basename(file)):  # noqa: PTH119 (asked for every module)
        return False
    return os.path.realpath(name) == os.path.realpath(file)
