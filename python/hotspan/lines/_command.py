"""``python -m hotspan.lines`` and ``python -m hotspan.lines.kernprof``: run a program and show its lines.

Both take kernprof's options. They differ in what is the default and in where messages go: see `Manner`.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotspan._core import Trace
from hotspan._program import Program, command, own_frames_hidden, run_reporting
from hotspan.lines._config import command_config
from hotspan.lines._explicit import feed
from hotspan.lines._flags import add_argument, get_python_executable, positive_float, short_string_path
from hotspan.lines._functional import ContextualProfile
from hotspan.lines._profiler import LineProfiler, RunningProfiler, dump
from hotspan.lines._report import text_arguments
from hotspan.lines._stats import stats_of
from hotspan.lines._targets import Targets
from hotspan.lines._writer import Writer

TAKES_VALUE = {"-o", "--outfile", "-p", "--prof-mod", "-u", "--unit", "-s", "--setup", "--config"}


@dataclass(frozen=True)
class Manner:
    """How a command behaves where the two differ."""

    prog: str
    examples: str
    #: Whether lines are recorded without `-l`; otherwise calls are, as cProfile does.
    line_by_line: bool
    #: Whether messages are kernprof's: on stdout, and gone when `-v` and `-q` cancel out.
    is_kernprof: bool


def parser(manner: Manner) -> argparse.ArgumentParser:
    """The command line; its options are kernprof's."""
    made = argparse.ArgumentParser(
        prog=manner.prog,
        usage=f"{manner.prog} [options] (script | -m module | -c code | -) [arguments]",
        description="Run a program and record the lines of chosen functions.",
        epilog=manner.examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    from hotspan import __version__

    made.add_argument("-V", "--version", action="version", version=__version__)
    made.add_argument("--config", metavar="FILE", help="read defaults of the options from this TOML file")
    made.add_argument(
        "--no-config", action="store_const", const=False, dest="config", help="read no configuration file"
    )
    _add_recording_options(made)
    _add_output_options(made)
    return made


def _add_recording_options(made: argparse.ArgumentParser) -> None:
    def flag(*names: str, text: str) -> None:
        add_argument(made, *names, action="store_true", help=text)

    flag("-l", "--line-by-line", text="record lines; --line-by-line=no records calls, as cProfile does")
    flag("-b", "--builtin", text="make profile a builtin; it always is where lines are recorded")
    made.add_argument("-s", "--setup", metavar="FILE", help="run this script first, unrecorded")
    made.add_argument(
        "-p",
        "--prof-mod",
        action="append",
        metavar="A,B",
        help="record whole scripts, modules, packages, classes or functions, by name or path",
    )
    flag(
        "--preimports",
        text="import what -p names before the program begins; on unless =no, or --no-preimports",
    )
    flag("--prof-imports", text="record what the program imports too, if it is in -p itself")
    made.add_argument(
        "--physical-lines",
        action="store_true",
        help="count each line of a statement written over several lines, as line_profiler does",
    )


def _add_output_options(made: argparse.ArgumentParser) -> None:
    def flag(*names: str, text: str) -> None:
        add_argument(made, *names, action="store_true", help=text)

    made.add_argument(
        "-o", "--outfile", metavar="FILE", help="write FILE (.lprof, or .hotspan) instead of <script>.lprof"
    )
    made.add_argument("-v", "--verbose", "--view", action="count", help="print the report at the end")
    made.add_argument(
        "-q",
        "--quiet",
        action="count",
        default=0,
        help="say nothing but the report; -qq: no stdout of the program; -qqq: no stderr",
    )
    flag("-r", "--rich", text="accepted, changes nothing")
    made.add_argument("-u", "--unit", type=positive_float, help="unit of the times shown, in seconds (1e-06)")
    flag("-z", "--skip-zero", text="leave out functions that never ran")
    flag("-t", "--sort", text="show the function that took longest last")
    flag("--summarize", text="show the time of each function at the end")
    made.add_argument(
        "-i",
        "--output-interval",
        nargs="?",
        type=float,
        const=1.0,
        metavar="S",
        help="write the file every S seconds too",
    )


def main(arguments: Sequence[str] | None, manner: Manner) -> int:
    """Run a command line and return the exit code. A program that gave it as a list finds ``sys`` as it was."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Threads and exit handlers of a program that was started as a command still look for its modules.
    with contextlib.nullcontext() if arguments is None else _restored():
        return command(
            _joined(given),
            parser(manner),
            TAKES_VALUE,
            lambda options, program: _record(options, program, manner),
        )


def _joined(arguments: list[str]) -> list[str]:
    """``-i 5`` as one word: the number is not the program."""
    joined: list[str] = []
    for index, word in enumerate(arguments):
        if joined and joined[-1] in ("-i", "--output-interval") and word.replace(".", "", 1).isdigit():
            joined[-1] = f"--output-interval={word}"
        else:
            joined.append(word)
        if word in ("-m", "-c", "-", "--"):
            return joined + arguments[index + 1 :]
    return joined


@contextlib.contextmanager
def _restored() -> Iterator[None]:
    argv, path, main_module = sys.argv, list(sys.path), sys.modules.get("__main__")
    try:
        yield
    finally:
        sys.argv = argv
        sys.path[:] = path
        if main_module is not None:
            sys.modules["__main__"] = main_module


def _new_profiler(options: argparse.Namespace) -> LineProfiler | ContextualProfile:
    if options.line_by_line:
        return RunningProfiler(statements=not options.physical_lines)
    return ContextualProfile()


def _record(options: argparse.Namespace, program: Program, manner: Manner) -> int:
    """Run the program under a profiler."""
    _set_defaults(options, manner)
    if manner.is_kernprof and program.arguments[:1] == ["--"]:
        del program.arguments[0]
    profiler = _new_profiler(options)
    feed(profiler)
    if options.line_by_line or options.builtin:
        builtins.profile = profiler  # type: ignore[attr-defined]
    if options.setup:
        setup = Program("script", options.setup, [])
        setup.prepare()
        setup.run()
        del sys.path[0]
    program.prepare()
    suffix = "lprof" if options.line_by_line else "prof"
    outfile = Path(options.outfile or f"{_name(program, manner)}.{suffix}").absolute()
    with own_frames_hidden():
        program.find_module()
    if isinstance(profiler, LineProfiler):
        own = [program.filename] if manner.is_kernprof and program.kind in ("code", "stdin") else []
        Targets(profiler, program, [*options.prof_mod, *own]).add(options.preimports, options.prof_imports)
    writer = Writer(profiler.dump_stats, outfile, options.output_interval)
    run: Callable[[], object] | None = None
    if isinstance(profiler, ContextualProfile) and not options.builtin:
        counted = profiler

        def run() -> object:
            return counted.runctx(*program.executable(), None)

    stdout = sys.stdout

    def report() -> None:
        profiler.disable()
        writer.stop()
        _Report(options, manner, outfile, program, stdout).show(profiler)
        feed(None)

    with _muted(options.verbose - options.quiet):
        return run_reporting(program, report, run)


def _set_defaults(options: argparse.Namespace, manner: Manner) -> None:
    """Fill in what the command line does not say: from a configuration file, or as it always is."""
    config = command_config("kernprof", options.config)
    options.config = config.path
    if manner.line_by_line and options.line_by_line is None:
        options.line_by_line = True
    for name, value in config.conf_dict.items():
        if getattr(options, name, None) is None:
            setattr(options, name, value)
    options.sort = bool(options.sort)


def _name(program: Program, manner: Manner) -> str:
    if manner.is_kernprof and program.kind in ("code", "stdin"):
        # kernprof never writes two of them over each other.
        return f"kernprof-{'stdin' if program.kind == 'stdin' else 'command'}-{os.getpid()}"
    return program.name


@contextlib.contextmanager
def _muted(level: int) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        if level < -1:
            nowhere = stack.enter_context(Path(os.devnull).open("w"))
            stack.enter_context(contextlib.redirect_stdout(nowhere))
            if level < -2:
                stack.enter_context(contextlib.redirect_stderr(nowhere))
        yield


class _Report:
    """What is written and said at the end."""

    def __init__(
        self, options: argparse.Namespace, manner: Manner, outfile: Path, program: Program, stdout: Any
    ) -> None:
        self._options = options
        self._manner = manner
        self._outfile = outfile
        self._program = program
        self._stdout = stdout
        level = options.verbose - options.quiet
        self._is_viewed = level > 0 if manner.is_kernprof else options.verbose > 0
        self._is_silent = level < 0 if manner.is_kernprof else options.quiet > 0

    def show(self, profiler: LineProfiler | ContextualProfile) -> None:
        """Write the file, and show what was asked for."""
        # Once: the file and the report say the same.
        results = profiler if isinstance(profiler, ContextualProfile) else profiler.snapshot()
        try:
            self._write(results)
            wrote = True
        except OSError as error:
            wrote = False
            print(f"error: failed to write {self._outfile}: {error}", file=sys.stderr)
        name = short_string_path(self._outfile)
        if wrote:
            self._say(f"Wrote profile results to {name!r}")
        if self._is_viewed:
            self._view(results)
        elif wrote:
            self._say(f"Inspect results with:\n{self._viewer()} {name}")

    def _say(self, text: str) -> None:
        if not self._is_silent:
            print(text, file=self._stdout if self._manner.is_kernprof else sys.stderr)

    def _viewer(self) -> str:
        is_python = self._manner.is_kernprof and not self._options.line_by_line
        return f"{get_python_executable()} -m pstats" if is_python else "hotspan stats"

    def _write(self, results: ContextualProfile | Trace) -> None:
        if isinstance(results, ContextualProfile):
            results.dump_stats(self._outfile)
        elif self._manner.is_kernprof and self._program.kind in ("code", "stdin"):
            # As in kernprof: a later report could not show lines that lie in no file.
            stats = stats_of(results)
            stats.timings = {
                key: rows for key, rows in stats.timings.items() if key[0] != self._program.filename
            }
            stats.to_file(self._outfile)
        else:
            dump(results, self._outfile)

    def _view(self, results: ContextualProfile | Trace) -> None:
        if isinstance(results, ContextualProfile):
            with contextlib.redirect_stdout(self._stdout):
                results.print_stats()
        else:
            stats_of(results).print(self._stdout, **text_arguments(self._options))
