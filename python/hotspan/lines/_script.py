"""Runs a script, a module or code as Python itself would, for profilers to be around it."""

from __future__ import annotations

import contextlib
import os
import runpy
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any


class ScriptError(Exception):
    """A program that cannot be started; ``code`` is the exit code Python has for it."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


class Program:
    """What is to be run: a script, ``-m`` module, ``-c`` code or ``-`` for standard input."""

    def __init__(self, kind: str, target: str, arguments: list[str]) -> None:
        self.kind = kind
        self.target = target
        self.arguments = arguments
        self.code: CodeType | None = None
        self.filename = target

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
        self.code = compile(source, self.filename, "exec", dont_inherit=True)

    def run(self) -> None:
        """Run it as ``__main__``."""
        if self.code is None:
            runpy.run_module(self.target, run_name="__main__", alter_sys=True)
            return
        main = ModuleType("__main__")
        main.__dict__["__builtins__"] = __builtins__
        if self.kind == "script":
            main.__file__ = self.filename
        sys.modules["__main__"] = main
        exec(self.code, main.__dict__)


def find_script(name: str) -> str:
    """Return the path of a script: as it stands, or found on PATH as kernprof does."""
    if Path(name).is_file():
        return name
    if Path(name).is_dir():
        raise ScriptError(f"{name} is a folder; give the script in it, or -m and its module name")
    found = None if os.sep in name else shutil.which(name, mode=os.R_OK)
    if found is None:
        raise ScriptError(
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
                raise ScriptError(f"{word} needs {'a module' if word == '-m' else 'code'}")
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
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        error.__traceback__ = _program_part(error.__traceback__)
        traceback.print_exception(error)
        raise SystemExit(1) from None


def _program_part(trace: Any) -> Any:
    ours = Path(__file__).resolve().parents[1]
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not (Path(file).is_relative_to(ours) or file.startswith("<frozen runpy")):
            break
        trace = trace.tb_next
    return trace


def run_reporting(program: Program, report: Callable[[], None]) -> int:
    """Run the program, then report, however it ended; exit codes, exceptions and Ctrl-C stay what they are."""
    owner = os.getpid()
    try:
        with own_frames_hidden():
            program.run()
    finally:
        # A forked child that ends here has nothing to report: its parent will.
        if os.getpid() == owner:
            report()
    return 0
