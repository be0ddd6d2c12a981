"""``python -m hotspan.memory.mprof``: memory of a program over time, with mprof's commands, options and files.

It is a module and not a part of ``hotspan`` or a command of its own name: the functions are those of memory_profiler's
module ``mprof``, which programs import, and a command ``mprof`` would take the place of the one that is installed.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

from hotspan import _core
from hotspan.memory._mprof_files import (
    begun,
    existing,
    function_labels,
    get_profile_filenames,
    new_name,
    read_mprofile_file,
)
from hotspan.memory._mprof_plot import Options, svg
from hotspan.memory._readings import BACKENDS
from hotspan.memory._usage import memory_usage

__all__ = [
    "ALL_ACTIONS",
    "attach_action",
    "clean_action",
    "function_labels",
    "get_profile_filenames",
    "list_action",
    "main",
    "peak_action",
    "plot_action",
    "read_mprofile_file",
    "rm_action",
    "run_action",
]

ALL_ACTIONS = ("run", "rm", "clean", "list", "plot", "attach", "peak")

USAGE = """usage: python -m hotspan.memory.mprof COMMAND [options]

  run      start a program and record its memory: mprof run script.py
  attach   record the memory of a process that runs: mprof attach PID or NAME
  list     the files in this folder, with their numbers
  plot     draw files, by default the newest one, as SVG
  peak     the most memory in files
  rm       remove files, by name or number
  clean    remove all files in this folder

`mprof COMMAND --help` lists the options of a command."""

_HOUR = 3600


def _parser(command: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"mprof {command}", description=description)
    parser.add_argument("--version", action="version", version=_core.__version__)
    return parser


def _fail(message: str) -> NoReturn:
    sys.exit(f"mprof: {message}")


def _chosen(words: list[str]) -> list[str]:
    """The files that are meant, or the newest one."""
    try:
        if words:
            return get_profile_filenames(words)
    except ValueError as error:
        _fail(str(error))
    if not existing():
        _fail("there is no mprofile_*.dat here: mprof run writes one")
    print("Using last profile data.")
    return existing()[-1:]


def run_action() -> None:
    """Start a program, or attach to one, and record its memory."""
    parser = _parser("run", "Start a program and record its memory.")
    add = parser.add_argument
    add("--python", action="store_true", help="the program is Python: note the calls of decorated functions")
    add("--nopython", action="store_true", help="the program is not Python, whatever its name ends in")
    add("--interval", "-T", type=float, default=0.1, help="seconds between two readings (0.1)")
    add("--include-children", "-C", action="store_true", help="add the memory of children")
    add("--multiprocess", "-M", action="store_true", help="record each child apart")
    add("--exit-code", "-E", action="store_true", help="end with the exit code of the program")
    add(
        "--attach",
        "-a",
        dest="attach_existing",
        action="store_true",
        help="a running process, by name or number",
    )
    add(
        "--timeout",
        "-t",
        type=int,
        help="stop after so many seconds; a process that was attached to: one hour",
    )
    add(
        "--output", "-o", dest="filename", default=new_name(), help="the file; by default mprofile_<time>.dat"
    )
    add("--backend", choices=BACKENDS, default="psutil", help="what is measured (psutil: resident memory)")
    add("program", nargs=argparse.REMAINDER, help="the program and its arguments")
    options = parser.parse_args()
    words = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not words:
        _fail("a program to run must be given")
    print(f"mprof: Sampling memory every {options.interval}s")
    process: subprocess.Popen[bytes] | int
    if options.attach_existing:
        process = _running_process(words[0])
        options.timeout = options.timeout or _HOUR
    else:
        process, words = _start(words, options)
    with Path(options.filename).open("a", encoding="utf-8", buffering=1) as stream:
        stream.write(f"CMDLINE {shlex.join(words)}\n")
        memory_usage(
            process,
            options.interval,
            options.timeout,
            timestamps=True,
            include_children=options.include_children,
            multiprocess=options.multiprocess,
            stream=stream,
            backend=options.backend,
        )
    if options.exit_code and isinstance(process, subprocess.Popen):
        sys.exit(process.wait())


def _start(words: list[str], options: argparse.Namespace) -> tuple[subprocess.Popen[bytes], list[str]]:
    """Start a program; one of Python notes the calls of its functions in the file, when it ends."""
    is_script = words[0].endswith(".py") and not options.nopython
    if is_script or options.python:
        words = words if Path(words[0]).name.startswith("python") else [sys.executable, *words]
    command = words
    if (is_script and not options.multiprocess) or options.python:
        extra = ["-m", "hotspan.memory", "--timestamp", "-o", options.filename]
        extra += ["--include-children"] if options.include_children else []
        command = [words[0], *extra, *words[1:]]
    try:
        return subprocess.Popen(command), words
    except OSError as error:
        _fail(f"cannot run {words[0]}: {error.strerror}")


def _running_process(hint: str) -> int:
    if hint.isdigit():
        return int(hint)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if hint in (folder / "comm").read_text():
                return int(folder.name)
        except OSError:
            continue
    _fail(f"no process has {hint!r} in its name")


def attach_action() -> None:
    """Record the memory of a process that runs already."""
    sys.argv.insert(1, "--attach")
    run_action()


def list_action() -> None:
    """Print the files in this folder with their numbers and when they began."""
    _parser("list", "List the files in this folder.").parse_args()
    for number, name in enumerate(existing()):
        print(number, name, begun(name))


def rm_action() -> None:
    """Remove files."""
    parser = _parser("rm", "Remove files, by name or by their number in mprof list.")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    parser.add_argument("numbers_or_filenames", nargs="+")
    options = parser.parse_args()
    try:
        _remove(get_profile_filenames(options.numbers_or_filenames), options.dry_run)
    except ValueError as error:
        _fail(str(error))


def clean_action() -> None:
    """Remove all files in this folder."""
    parser = _parser("clean", "Remove all mprofile_*.dat files in this folder.")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    _remove(existing(), parser.parse_args().dry_run)


def _remove(names: list[str], dry_run: bool) -> None:
    if dry_run:
        print("Files to be removed: ")
    for name in names:
        if dry_run:
            print(name)
        else:
            Path(name).unlink()


def _window(text: str) -> tuple[float, float]:
    first, last = map(float, text.split(","))
    return first, last


def plot_action() -> None:
    """Draw files as SVG."""
    parser = _parser("plot", "Draw files as SVG, which browsers and editors open; by default the newest one.")
    add = parser.add_argument
    add("--title", "-t", help="what is written above; by default the command")
    add("--no-function-ts", "-n", action="store_true", help="leave the calls of functions out")
    add("--output", "-o", help="the file to write, .svg; by default beside the data")
    add("--window", "-w", type=_window, metavar="SECONDS", help="only this part, such as 0,20.5")
    add("--flame", "-f", action="store_true", help="calls as boxes over each other instead of brackets")
    add("--slope", "-s", action="store_true", help="a trend line with its slope, MiB per second")
    add("--backend", help="accepted: nothing of matplotlib is used")
    add("profiles", nargs="*", help="names, or numbers of mprof list")
    options = parser.parse_args()
    names = _chosen(options.profiles)
    output = Path(options.output or Path(names[0]).with_suffix(".svg"))
    if output.suffix != ".svg":
        _fail(f"plots are written as SVG, which browsers and editors open: {output.with_suffix('.svg')}?")
    profiles = [_read(name) for name in names]
    shown = Options(options.title, not options.no_function_ts, options.window, options.flame, options.slope)
    output.write_text(svg(profiles, shown), encoding="utf-8")
    print(f"wrote {output}")


def _read(name: str) -> dict[str, Any]:
    try:
        profile = read_mprofile_file(name)
    except ValueError as error:
        _fail(str(error))
    if not profile["mem_usage"]:
        _fail(f"{name} has no readings: mprof rm {name} removes it")
    return profile


def peak_action() -> None:
    """Print the most memory in files."""
    parser = _parser("peak", "Print the most memory in files, by default in the newest one.")
    parser.add_argument(
        "--func", help="only while this function ran, with its module: package.module.function"
    )
    parser.add_argument("profiles", nargs="*", help="names, or numbers of mprof list")
    options = parser.parse_args()
    for name in _chosen(options.profiles):
        profile = _read(name)
        readings = list(zip(profile["timestamp"], profile["mem_usage"], strict=True))
        if options.func is not None:
            calls = profile["func_timestamp"].get(options.func, [])
            readings = [(at, mib) for at, mib in readings if any(call[0] <= at <= call[1] for call in calls)]
        most = max((memory for _, memory in readings), default=float("nan"))
        print(f"{name}\t{'NaN' if most != most else f'{most:.3f}'} MiB")
        for child, values in profile["children"].items():
            print(f"  Child {child}\t\t\t{max(memory for memory, _ in values):.3f} MiB")


def main() -> None:
    """Run the command that ``sys.argv`` names."""
    command = sys.argv.pop(1) if len(sys.argv) > 1 else ""
    if command in ("-h", "--help"):
        print(USAGE)
    elif command not in ALL_ACTIONS:
        sys.exit(USAGE)
    else:
        # argparse takes a negative number for an option.
        numbers = [index for index, word in enumerate(sys.argv) if word[:1] == "-" and word[1:].isdigit()]
        if numbers and command != "run":
            sys.argv.insert(numbers[0], "--")
        globals()[f"{command}_action"]()


if __name__ == "__main__":
    main()
