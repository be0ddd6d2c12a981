"""``memory_profiler``, which is hotspan's."""

import sys

from hotspan.memory import *  # noqa: F403
from hotspan.memory.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
