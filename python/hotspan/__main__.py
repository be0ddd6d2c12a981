"""The ``hotspan`` command: the same command line as the Rust program, run in this process."""

import os
import signal
import sys
from pathlib import Path

from hotspan._core import run_cli


def main() -> int:
    """Run the command line of this process and return its exit code."""
    if sys.argv[1:2] == ["doctor"]:
        from hotspan.doctor import main as doctor

        return doctor(sys.argv[2:])
    # Rust does the work without returning to Python, so Ctrl-C must end the process as it does for other commands.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # What `hotspan run` starts is this Python, and records with this package.
    os.environ.setdefault("HOTSPAN_PYTHON", sys.executable)
    os.environ.setdefault("HOTSPAN_PACKAGE", str(Path(__file__).parent))
    return run_cli(["hotspan", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
