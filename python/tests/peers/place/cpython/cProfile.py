"""``cProfile``, which is hotspan's."""

import sys

from hotspan.cprofile import *  # noqa: F403
from hotspan.cprofile import label, main

__all__ = ["Profile", "label", "run", "runctx"]  # noqa: F405

if __name__ == "__main__":
    sys.exit(main())
