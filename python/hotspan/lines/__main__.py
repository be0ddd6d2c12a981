"""``python -m hotspan.lines``: runs a program and shows its lines, as ``kernprof -l -v`` does."""

from __future__ import annotations

import sys

from hotspan.lines._command import Manner
from hotspan.lines._command import main as run

EXAMPLES = """examples:
  python -m hotspan.lines -v script.py            lines of the functions decorated with @profile
  python -m hotspan.lines -v -p script.py script.py --epochs 1     all functions of the script
  python -m hotspan.lines -v -p mypackage.model -m mypackage.train   all functions of a module
  hotspan stats script.py.lprof                   the report again"""

MANNER = Manner("python -m hotspan.lines", EXAMPLES, line_by_line=True, is_kernprof=False)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    return run(arguments, MANNER)


if __name__ == "__main__":
    sys.exit(main())
