"""A day of operators through the agent, replayed fast: sizes and peaks of memory.

    python bench/long_run.py                          10 GB in 24 hours, of which the latest 2 GB are kept
    python bench/long_run.py --bytes 1e9 --keep 5e8

The recording lies in the temporary folder: TMPDIR needs room for twice of what is kept.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main() -> int:
    """Run the test of the same name at full size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bytes", type=float, default=10e9, help="size of the whole recording")
    parser.add_argument("--keep", type=float, default=2e9, help="how much of it is kept")
    parser.add_argument("--profile", default="release", help="cargo's profile")
    arguments = parser.parse_args()
    environment = {
        **os.environ,
        "HOTSPAN_REPLAY_BYTES": str(arguments.bytes),
        "HOTSPAN_REPLAY_KEEP": str(arguments.keep),
    }
    command = ["cargo", "test", "--locked", "--profile", arguments.profile, "-p", "hotspan-collect"]
    command += ["--test", "long_run", "--", "--nocapture"]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
