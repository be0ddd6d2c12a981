"""What ``-p`` names: the program itself, modules, packages, classes and functions, by name or path."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hotspan._code import codes_of_script
from hotspan.lines._imports import with_watched_imports
from hotspan.lines._members import add_thing

if TYPE_CHECKING:
    from hotspan._program import Program
    from hotspan.lines._profiler import LineProfiler


class Targets:
    """The targets of a run, and the profiler that watches them."""

    def __init__(self, profiler: LineProfiler, program: Program, given: list[str]) -> None:
        self._profiler = profiler
        self._program = program
        self._names = _names(given)
        self._missing: list[str] = []

    def add(self, preimports: bool, imports: bool) -> None:
        """Watch the targets: all of them now, or those that the program imports when it does.

        With ``imports`` all imports of the program are watched, if it is a target itself.
        """
        has_program = any(self._is_program(name) for name in self._names)
        wants_all = imports and has_program
        if self._names and (wants_all or not preimports):
            wanted = None if wants_all else [_module_name(name) for name in self._names]
            self._program.code = with_watched_imports(self._program, wanted, self._watch)
        added = 0
        if has_program and self._program.code is not None:
            added += sum(self._profiler.add_code(code) for code in codes_of_script(self._program.code))
        if preimports:
            added += sum(self._add_named(name) for name in self._names if not self._is_only_program(name))
        if self._missing:
            count = len(self._missing)
            note(f"{count} profiling target{'s' if count > 1 else ''} cannot be found: {self._missing!r}")
        if added:
            self._profiler.enable()

    def _is_only_program(self, name: str) -> bool:
        return self._is_program(name) and not self._is_package(name)

    def _is_package(self, name: str) -> bool:
        spec = self._program.spec
        return spec is not None and spec.name != name and spec.name.startswith(f"{_dotted(name)}.")

    def _is_program(self, name: str) -> bool:
        """Whether a target is the program, or a package that the program is in."""
        program = self._program
        if program.kind in ("code", "stdin"):
            return name == program.filename
        if program.spec is not None and (program.spec.name == name or self._is_package(name)):
            return not (name.endswith(".__init__") and program.spec.name != name)
        path = Path(name)
        if path.exists() and Path(program.filename).exists() and path.samefile(program.filename):
            return True
        return program.kind == "script" and name == Path(program.filename).stem

    def _watch(self, thing: Any) -> None:
        """Watch something that the program has imported."""
        if add_thing(self._profiler, thing):
            self._profiler.enable()

    def _add_named(self, target: str) -> int:
        found, rest = _import_longest(_module_name(target.removesuffix(".__init__")))
        if found is None:
            self._missing.append(target)
            return 0
        thing: Any = found
        for part in rest:
            thing = vars(thing).get(part) if isinstance(thing, type) else getattr(thing, part, None)
        if not isinstance(thing, ModuleType):
            added = add_thing(self._profiler, thing) if thing is not None else 0
            if not added:
                note(f"cannot record {target}: it has no Python function")
            return added
        inner = [] if target.endswith(".__init__") else self._submodules(thing)
        return sum(self._profiler.add_module(module) for module in [thing, *inner])

    def _submodules(self, package: ModuleType) -> list[ModuleType]:
        """Import and return all modules of a package; those that cannot be imported are named and left out."""
        found = []
        own = self._program.spec.name if self._program.spec is not None else None
        for info in pkgutil.walk_packages(
            getattr(package, "__path__", []), f"{package.__name__}.", onerror=note
        ):
            # The program is imported once, as `__main__`.
            if info.name == own or info.name.endswith(".__main__"):
                continue
            try:
                found.append(importlib.import_module(info.name))
            except Exception as error:
                note(f"cannot import {info.name}: {type(error).__name__}: {error}")
        return found


def _names(given: list[str]) -> list[str]:
    names: list[str] = []
    for text in given:
        if text == "":
            # An empty name clears those before it.
            names = []
        elif Path(text).exists():
            names.append(text)
        else:
            names += [name for name in text.split(",") if name]
    return names


def _dotted(target: str) -> str:
    return _module_name(target.removesuffix(".__init__"))


def _module_name(target: str) -> str:
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
    if path.exists():
        sys.path.append(str(resolved.parent))
    return resolved.stem


def _import_longest(name: str) -> tuple[ModuleType | None, list[str]]:
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


def note(text: str) -> None:
    """Say something on stderr."""
    print(f"note: {text}", file=sys.stderr)
