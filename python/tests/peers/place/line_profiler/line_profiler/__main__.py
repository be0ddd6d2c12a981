"""``python -m line_profiler``, which is hotspan's."""

from hotspan.lines import main

main()
