"""kernprof's names, which are hotspan's."""

from hotspan.lines.kernprof import ContextualProfile as ContextualProfile
from hotspan.lines.kernprof import __version__ as __version__
from hotspan.lines.kernprof import main as main

if __name__ == "__main__":
    main()
