"""``LogFile``: lets a table go to a logger of the standard library, line by line."""

from __future__ import annotations

import logging
import re

_INCREMENT = re.compile(r"MiB +(-?[\d.]+) MiB")


class LogFile:
    """Something to write to whose lines become messages of a logger.

    With ``reportIncrementFlag`` only headings and lines on which the process grew do.
    """

    def __init__(self, name: str | None = None, reportIncrementFlag: bool = False) -> None:  # noqa: N803
        self.logger = logging.getLogger(name)
        self.reportIncrementFlag = reportIncrementFlag

    def write(self, msg: str, level: int = logging.INFO) -> None:
        """Log each line of a text."""
        for line in msg.splitlines():
            if not self.reportIncrementFlag or self._is_of_interest(line):
                self.logger.log(level, "%s", line)

    def flush(self) -> None:
        """Let the handlers of the logger write what they hold."""
        for handler in self.logger.handlers:
            handler.flush()

    @staticmethod
    def _is_of_interest(line: str) -> bool:
        increment = _INCREMENT.search(line)
        grew = increment is not None and float(increment[1]) > 0
        return grew or "Filename:" in line or "Line Contents" in line
