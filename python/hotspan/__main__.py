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
    if sys.argv[1:2] == ["run"]:
        os.environ["HOTSPAN_TORCH"] = _torch_folder()
    return run_cli(["hotspan", *sys.argv[1:]])


def _torch_folder() -> str:
    """Return where this Python would import torch from, without importing anything; empty: nowhere."""
    from _frozen_importlib_external import PathFinder

    spec = PathFinder.find_spec("torch", [entry for entry in sys.path if entry])
    places = None if spec is None else spec.submodule_search_locations
    return str(places[0]) if places else ""


if __name__ == "__main__":
    sys.exit(main())
