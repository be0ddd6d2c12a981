"""Runs a script, a module or code as Python itself would, with a profiler around it: what their command lines share."""

from __future__ import annotations

import argparse
import contextlib
import os
import runpy
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any


class ProgramError(Exception):
    """A program that cannot be started; ``code`` is the exit code Python has for it."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


class NotCompiled(Exception):  # noqa: N818 - it is no error of ours
    """A program that is not Python."""

    def __init__(self, error: SyntaxError) -> None:
        super().__init__(str(error))
        self.error = error


class Program:
    """What is to be run: a script, ``-m`` module, ``-c`` code or ``-`` for standard input."""

    def __init__(self, kind: str, target: str, arguments: list[str]) -> None:
        self.kind = kind
        self.target = target
        self.arguments = arguments
        self.code: CodeType | None = None
        self.filename = target
        #: How a module was found; see `find_module`.
        self.spec: ModuleSpec | None = None

    @property
    def name(self) -> str:
        """What files about it are called."""
        if self.kind == "module":
            return self.target
        return Path(self.filename).name if self.kind == "script" else "kernprof-command"

    def prepare(self) -> None:
        """Set ``sys.argv`` and ``sys.path`` as Python does, and compile what can be."""
        sys.argv = [self.target if self.kind == "script" else "-c", *self.arguments]
        if self.kind == "module":
            sys.argv[0] = self.target
            sys.path.insert(0, str(Path.cwd()))
            return
        if self.kind == "script":
            self.filename = find_script(self.target)
            sys.argv[0] = self.filename
            sys.path.insert(0, str(Path(self.filename).resolve().parent))
            source: bytes | str = Path(self.filename).read_bytes()
        else:
            sys.path.insert(0, "")
            source = sys.stdin.read() if self.kind == "stdin" else self.target
            self.filename = "<stdin>" if self.kind == "stdin" else "<string>"
            import linecache

            text = str(source)
            linecache.cache[self.filename] = (len(text), None, text.splitlines(True), self.filename)
        try:
            self.code = compile(source, self.filename, "exec", dont_inherit=True)
        except SyntaxError as error:
            raise NotCompiled(error) from None

    def find_module(self) -> None:
        """Load the code of a ``-m`` program, so that it can be looked at before it runs. Its packages are imported."""
        if self.kind != "module" or self.code is not None:
            return
        spec = find_main(self.target)
        loader = spec.loader
        code = loader.get_code(spec.name) if isinstance(loader, InspectLoader) else None
        if code is None:
            raise ProgramError(f"No code object available for {spec.name}", 1)
        self.code, self.spec, self.filename = code, spec, spec.origin or self.target
        sys.argv[0] = self.filename

    def executable(self) -> tuple[CodeType | str, dict[str, Any]]:
        """Return what runs it as ``__main__`` when it is executed, and where."""
        if self.code is None:
            namespace = {"run_module": runpy.run_module, "modname": self.target}
            return "run_module(modname, run_name='__main__', alter_sys=True)", namespace
        main = ModuleType("__main__")
        main.__dict__.update(__builtins__=__builtins__, __cached__=None)
        if self.kind == "script":
            main.__file__ = self.filename
        if self.spec is not None:
            main.__dict__.update(
                __file__=self.spec.origin,
                __cached__=self.spec.cached,
                __loader__=self.spec.loader,
                __package__=self.spec.parent,
                __spec__=self.spec,
            )
        # Objects of the script's classes can be pickled only when their module is found by its name.
        sys.modules["__main__"] = main
        return self.code, main.__dict__

    def run(self) -> None:
        """Run it as ``__main__``."""
        exec(*self.executable())


def find_main(name: str) -> ModuleSpec:
    """Return what ``python -m name`` runs: a module, or the ``__main__`` of a package."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError) as error:
        raise ProgramError(f"Error while finding module specification for {name!r} ({error})", 1) from error
    if spec is None:
        raise ProgramError(f"No module named {name}", 1)
    if spec.submodule_search_locations is not None:
        main = find_spec(f"{name}.__main__")
        if main is None:
            raise ProgramError(
                f"No module named {name}.__main__; {name!r} is a package and cannot be directly executed", 1
            )
        return main
    return spec


def find_script(name: str) -> str:
    """Return the path of a script: as it stands, or found on PATH as kernprof does."""
    if Path(name).is_file():
        return name
    if Path(name).is_dir():
        raise ProgramError(f"{name} is a folder; give the script in it, or -m and its module name")
    found = None if os.sep in name else shutil.which(name, mode=os.R_OK)
    if found is None:
        raise ProgramError(
            f"can't open file {name!r}: no such file\nhint: check the path; -m runs a module by name"
        )
    return found


def split_program(arguments: list[str], takes_value: set[str]) -> tuple[list[str], Program | None]:
    """Divide a command line into our own options and the program with its arguments."""
    own: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in ("-m", "-c"):
            if not rest:
                raise ProgramError(f"{word} needs {'a module' if word == '-m' else 'code'}")
            return own, Program("module" if word == "-m" else "code", rest[0], rest[1:])
        if word == "-":
            return own, Program("stdin", word, rest)
        if word == "--" and rest:
            return own, Program("script", rest[0], rest[1:])
        if not word.startswith("-"):
            return own, Program("script", word, rest)
        own.append(word)
        if word in takes_value and rest:
            own.append(rest.pop(0))
    return own, None


@contextlib.contextmanager
def own_frames_hidden() -> Iterator[None]:
    """Let exceptions of the program end it as Python would, without the frames of the profiler in the traceback."""
    try:
        yield
    except (SystemExit, KeyboardInterrupt, ProgramError):
        raise
    except BaseException as error:
        error.__traceback__ = _program_part(error.__traceback__)
        traceback.print_exception(error)
        raise SystemExit(1) from None


def _program_part(trace: Any) -> Any:
    ours = Path(__file__).resolve().parent
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        is_start = trace.tb_frame.f_globals.get("run_module") is runpy.run_module
        if not (is_start or Path(file).is_relative_to(ours) or file.startswith("<frozen runpy")):
            break
        trace = trace.tb_next
    return trace


def command(
    arguments: Sequence[str] | None,
    parser: argparse.ArgumentParser,
    takes_value: set[str],
    record: Callable[[argparse.Namespace, Program], int],
) -> int:
    """Read a profiler's command line, let it record the program, and return the exit code."""
    try:
        own, program = split_program(list(sys.argv[1:] if arguments is None else arguments), takes_value)
        options = parser.parse_args(own)
        if program is None:
            parser.error("there is no program to run")
        return record(options, program)
    except ProgramError as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return error.code
    except NotCompiled as error:
        # As Python shows it: without frames.
        traceback.print_exception(type(error.error), error.error, None)
        return 1


def run_reporting(
    program: Program, report: Callable[[], None], run: Callable[[], object] | None = None
) -> int:
    """Run the program, then report, however it ended; exit codes, exceptions and Ctrl-C stay what they are."""
    owner = os.getpid()
    try:
        with own_frames_hidden():
            (run or program.run)()
    finally:
        # A forked child that ends here has nothing to report: its parent will.
        if os.getpid() == owner:
            try:
                report()
                sys.stdout.flush()
            except BrokenPipeError:
                # Whoever read the table has seen enough; nothing more can be printed.
                sys.stdout = None
    return 0
