"""``python -m hotspan.lines.kernprof``: kernprof's command line. Calls are recorded, or lines with ``-l``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from hotspan import __version__
from hotspan.lines._command import Manner
from hotspan.lines._command import main as run
from hotspan.lines._functional import ContextualProfile

__all__ = ["ContextualProfile", "__version__", "main"]

_EXAMPLES = """examples:
  python -m hotspan.lines.kernprof -l -v script.py        lines of the functions decorated with @profile
  python -m hotspan.lines.kernprof -l -v -p script.py script.py --epochs 1     all functions of the script
  python -m hotspan.lines.kernprof -v script.py           calls, as cProfile counts them"""

MANNER = Manner("python -m hotspan.lines.kernprof", _EXAMPLES, line_by_line=False, is_kernprof=True)


def main(args: Sequence[str] | None = None, *, exit_on_error: bool = True) -> None:
    """Run the command line; a code other than 0 ends the program, or is a `RuntimeError`."""
    try:
        code = run(args, MANNER)
    except SystemExit as end:
        if exit_on_error or not end.code:
            raise
        raise RuntimeError(f"kernprof ended with {end.code}") from None
    if code and not exit_on_error:
        raise RuntimeError(f"kernprof ended with {code}")
    if code:
        sys.exit(code)


if __name__ == "__main__":
    main()
