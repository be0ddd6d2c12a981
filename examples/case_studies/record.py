"""Records a case study with hotspan.profiler, without its first step, and prints the advice.

python examples/case_studies/record.py masking [--fixed] [--stack] [-o masking.hotspan]
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from hotspan.profiler import profile, schedule
from hotspan.trace import Trace

CASES = ("double_precision", "masking", "picture_transforms")


def record(case: str, fixed: bool, stack: bool = False) -> Trace:
    """Run a case study under the profiler."""
    program = importlib.import_module(case)
    with profile(
        schedule=schedule(wait=0, warmup=1, active=program.STEPS - 1, repeat=1),
        record_shapes=True,
        with_stack=stack,
    ) as profiler:
        program.main(fixed, profiler.step)
    return profiler.trace


def main() -> None:
    """Record what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--fixed", action="store_true", help="run the mended version")
    parser.add_argument("--stack", action="store_true", help="record Python stacks, for source lines")
    parser.add_argument("-o", "--output", type=Path, help="write a .hotspan file")
    arguments = parser.parse_args()
    trace = record(arguments.case, arguments.fixed, arguments.stack)
    if arguments.output is not None:
        trace.save(arguments.output)
    sys.stdout.write(str(trace.advise()))


if __name__ == "__main__":
    main()
