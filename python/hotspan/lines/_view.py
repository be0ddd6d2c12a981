"""``hotspan.lines.main``: prints files of recorded lines, as ``python -m line_profiler`` does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hotspan.lines._report import text_arguments
from hotspan.lines._stats import LineStats

if TYPE_CHECKING:
    import argparse


def parser() -> argparse.ArgumentParser:
    """The command line; its options are line_profiler's."""
    # Programs that import hotspan.lines to decorate functions need none of these.
    import argparse

    from hotspan import __version__
    from hotspan.lines._flags import add_argument, positive_float

    made = argparse.ArgumentParser(
        description="Print what was recorded of lines; several files are added up."
    )
    made.add_argument("-V", "--version", action="version", version=__version__)
    made.add_argument(
        "-c", "--config", metavar="FILE", help="read defaults of the options from this TOML file"
    )
    made.add_argument(
        "--no-config", action="store_const", const=False, dest="config", help="read no configuration file"
    )
    made.add_argument("-u", "--unit", type=positive_float, help="unit of the times shown, in seconds (1e-06)")
    for short, long, text in (
        ("-r", "--rich", "accepted, changes nothing"),
        ("-z", "--skip-zero", "leave out functions that never ran"),
        ("-t", "--sort", "show the function that took longest last"),
        ("-m", "--summarize", "show the time of each function at the end"),
    ):
        add_argument(made, short, long, action="store_true", help=text)
    made.add_argument("profile_output", nargs="+", metavar="FILE", help=".lprof or .hotspan files")
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the files that a command line names."""
    options = parser().parse_args(arguments)
    from hotspan.lines._config import command_config

    config = command_config("cli", options.config)
    options.config = config.path
    for name, value in config.conf_dict.items():
        if getattr(options, name, None) is None:
            setattr(options, name, value)
    LineStats.from_files(*options.profile_output).print(**text_arguments(options))
