"""``mprof``, which is hotspan's."""

from hotspan.memory.mprof import *  # noqa: F403
from hotspan.memory.mprof import main

if __name__ == "__main__":
    main()
