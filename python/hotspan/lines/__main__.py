"""``python -m hotspan.lines``: runs a program and shows its lines, as ``kernprof -l -v`` does."""

from __future__ import annotations

import argparse
import builtins
import importlib
import pkgutil
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

from hotspan._code import codes_of_script
from hotspan._program import Program, command, run_reporting
from hotspan.lines._explicit import profile
from hotspan.lines._profiler import RunningProfiler, dump, text_of, write

EXAMPLES = """examples:
  python -m hotspan.lines -v script.py            lines of the functions decorated with @profile
  python -m hotspan.lines -v -p script.py script.py --epochs 1     all functions of the script
  python -m hotspan.lines -v -p mypackage.model -m mypackage.train   all functions of a module
  hotspan stats script.py.lprof                   the report again"""

TAKES_VALUE = {"-o", "--outfile", "-p", "--prof-mod", "-u", "--unit", "-s", "--setup"}


def parser() -> argparse.ArgumentParser:
    """The command line; its options are kernprof's."""
    made = argparse.ArgumentParser(
        prog="python -m hotspan.lines",
        usage="python -m hotspan.lines [options] (script | -m module | -c code | -) [arguments]",
        description="Run a program and record the lines of chosen functions.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = made.add_argument
    add("-l", "--line-by-line", action="store_true", help="accepted: lines are what this command records")
    add("-b", "--builtin", action="store_true", help="accepted: profile is always a builtin")
    add(
        "-p",
        "--prof-mod",
        action="append",
        default=[],
        metavar="A,B",
        help="record whole scripts, modules, packages, classes or functions, by name or path",
    )
    add("-o", "--outfile", metavar="FILE", help="write FILE (.lprof, or .hotspan) instead of <script>.lprof")
    add("-v", "--view", "--verbose", action="count", default=0, help="print the report at the end")
    add("-q", "--quiet", action="count", default=0, help="say nothing but the report")
    add("-u", "--unit", type=float, default=1e-6, help="unit of the times shown, in seconds (1e-06)")
    add("-z", "--skip-zero", action="store_true", help="leave out functions that never ran")
    add("-t", "--sort", action="store_true", help="show the function that took longest last")
    add("-r", "--rich", action="store_true", help="accepted, changes nothing")
    add("--summarize", action="store_true", help="show the time of each function at the end")
    add("-s", "--setup", metavar="FILE", help="run this script first, unrecorded")
    add(
        "-i",
        "--output-interval",
        nargs="?",
        type=float,
        const=1.0,
        default=0.0,
        metavar="S",
        help="write the file every S seconds too",
    )
    add(
        "--no-preimports",
        action="store_true",
        help="record modules of -p only if the program imports them before it calls them",
    )
    add(
        "--physical-lines",
        action="store_true",
        help="count each line of a statement written over several lines, as line_profiler does",
    )
    return made


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    return command(arguments, parser(), TAKES_VALUE, record)


def record(options: argparse.Namespace, program: Program) -> int:
    """Run the program under a profiler."""
    profiler = RunningProfiler(statements=not options.physical_lines)
    profile.use(profiler)
    builtins.profile = profiler  # type: ignore[attr-defined]
    if options.setup:
        setup = Program("script", options.setup, [])
        setup.prepare()
        setup.run()
        del sys.path[0]
    program.prepare()
    outfile = Path(options.outfile or f"{program.name}.lprof").absolute()
    add_targets(profiler, program, options)
    writer = Writer(profiler, outfile, options.output_interval)

    def report() -> None:
        profiler.disable()
        writer.stop()
        core = profiler.snapshot()
        try:
            dump(core, outfile)
            wrote = True
        except OSError as error:
            wrote = False
            print(f"error: failed to write {outfile}: {error}", file=sys.stderr)
        if wrote and not options.quiet:
            print(f"Wrote profile results to {shown_path(outfile)!r}", file=sys.stderr)
        if options.view:
            text = text_of(
                core,
                options.unit,
                stripzeros=options.skip_zero,
                summarize=options.summarize,
                sort=options.sort,
            )
            write(sys.stdout, text)
        elif wrote and not options.quiet:
            print(f"Inspect results with:\nhotspan stats {shown_path(outfile)}", file=sys.stderr)

    return run_reporting(program, report)


def shown_path(path: Path) -> str:
    """A path as short as it can be."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


class Writer:
    """Writes the file again and again while the program runs."""

    def __init__(self, profiler: RunningProfiler, path: Path, interval: float) -> None:
        self._stopped = threading.Event()
        if interval > 0:
            thread = threading.Thread(
                target=self._write, args=(profiler, path, max(interval, 1.0)), daemon=True
            )
            thread.start()

    def _write(self, profiler: RunningProfiler, path: Path, interval: float) -> None:
        while not self._stopped.wait(interval):
            profiler.dump_stats(path)

    def stop(self) -> None:
        """Write no more."""
        self._stopped.set()


def add_targets(profiler: RunningProfiler, program: Program, options: argparse.Namespace) -> None:
    """Watch what -p names."""
    targets: list[str] = []
    for given in options.prof_mod:
        # An empty name clears those before it.
        targets = [] if given == "" else targets + [target for target in given.split(",") if target]
    added = 0
    for target in targets:
        if is_program(target, program):
            codes = list(codes_of_script(program.code)) if program.code else []
            added += sum(profiler.add_code(code) for code in codes)
        elif options.no_preimports:
            note(f"{target} is recorded only through @profile, since --no-preimports was given")
        else:
            added += add_named(profiler, target)
    if added:
        profiler.enable()


def is_program(target: str, program: Program) -> bool:
    """Whether a target of -p is the program itself."""
    if program.kind == "module":
        return False
    same = (
        Path(target).exists() and Path(program.filename).exists() and Path(target).samefile(program.filename)
    )
    return same or (program.kind == "script" and target == Path(program.filename).stem)


def add_named(profiler: RunningProfiler, target: str) -> int:
    """Watch a module, package, class or function by its name or path."""
    recurse = not target.endswith(".__init__")
    name = module_name(target.removesuffix(".__init__"))
    found, rest = import_longest(name)
    if found is None:
        note(f"cannot record {target}: there is no such module or file")
        return 0
    thing: Any = found
    for part in rest:
        thing = getattr(thing, part, None)
    if not isinstance(thing, ModuleType):
        added = profiler.add_callable(thing) if thing is not None else 0
        if not added:
            note(f"cannot record {target}: it has no Python function")
        return added
    modules = [thing, *(submodules(thing) if recurse else [])]
    return sum(profiler.add_module(module) for module in modules)


def module_name(target: str) -> str:
    """The dotted name of a target, which may be a path."""
    path = Path(target)
    if not (path.suffix == ".py" or path.is_dir()):
        return target
    resolved = path.resolve()
    for folder in sys.path:
        root = Path(folder or ".").resolve()
        if resolved.is_relative_to(root) and resolved != root:
            parts = resolved.relative_to(root).with_suffix("").parts
            if all(part.isidentifier() for part in parts):
                return ".".join(parts).removesuffix(".__init__")
    sys.path.append(str(resolved.parent))
    return resolved.stem


def import_longest(name: str) -> tuple[ModuleType | None, list[str]]:
    """Import as much of a dotted name as is a module; what is left names something in it."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        try:
            return importlib.import_module(module), parts[length:]
        except ModuleNotFoundError as error:
            if error.name is None or not (module == error.name or module.startswith(error.name + ".")):
                note(f"cannot import {module}: {error}")
                return None, []
        except Exception as error:
            note(f"cannot import {module}: {type(error).__name__}: {error}")
            return None, []
    return None, []


def submodules(package: ModuleType) -> list[ModuleType]:
    """Import and return all modules of a package; those that cannot be imported are named and left out."""
    found = []
    for info in pkgutil.walk_packages(getattr(package, "__path__", []), package.__name__ + ".", onerror=note):
        if info.name.endswith(".__main__"):
            continue
        try:
            found.append(importlib.import_module(info.name))
        except Exception as error:
            note(f"cannot import {info.name}: {type(error).__name__}: {error}")
    return found


def note(text: str) -> None:
    """Say something on stderr."""
    print(f"note: {text}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
