"""Every public name, parameter and default of cProfile and memory_profiler, and every option of py-spy, is here too.

What is left out on purpose is in ``LEFT_OUT``, with the reason; a reason without need fails as well.
"""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

MODULES = {
    "cProfile": "hotspan.cprofile",
    "memory_profiler": "hotspan.memory",
    "mprof": "hotspan.memory.mprof",
}

_DRAWS = "draws with matplotlib; hotspan writes SVG"
_PART = "a part of how the commands work, which do the same"
_MEASURED = "is what was measured, as the profiler returns it"
_RECORDER = "the recorder in Rust has no such state"

LEFT_OUT = {
    "memory_profiler.MemTimer": "a process that samples; hotspan samples with a thread",
    "memory_profiler.CodeMap.__init__": _MEASURED,
    "memory_profiler.CodeMap.add": _MEASURED,
    "memory_profiler.CodeMap.trace": _MEASURED,
    "memory_profiler.LineProfiler.trace_memory_usage": _RECORDER,
    "memory_profiler.LineProfiler.trace_max_mem": _RECORDER,
    "memory_profiler.LineProfiler.__exit__": "takes the same arguments, all in one",
    "mprof.add_brackets": _DRAWS,
    "mprof.add_timestamp_rectangle": _DRAWS,
    "mprof.flame_plotter": _DRAWS,
    "mprof.plot_file": _DRAWS,
    "mprof.filter_mprofile_mem_usage_by_function": _PART,
    "mprof.find_first_process": _PART,
    "mprof.get_action": _PART,
    "mprof.get_cmd_line": _PART,
    "mprof.get_profiles": _PART,
    "mprof.print_usage": _PART,
}


REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
SPECIAL = ("__init__", "__call__", "__enter__", "__exit__")


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The functions and classes that a module defines."""
    for name, value in vars(module).items():
        is_own = (
            getattr(value, "__module__", None) == module.__name__ and getattr(value, "__name__", "") == name
        )
        if is_own and not name.startswith("_"):
            yield name, value


def parts(name: str, value: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """A function, or the methods of a class with what calls take."""
    if not inspect.isclass(value):
        yield name, value
        return
    for attribute, method in inspect.getmembers(value, callable):
        homes = {base.__module__ for base in value.__mro__ if attribute in vars(base)}
        is_own = homes & {value.__module__, "_lsprof", "hotspan._core"}
        if is_own and (not attribute.startswith("_") or attribute in SPECIAL):
            yield f"{name}.{attribute}", method


def missing_parameters(theirs: Callable[..., Any], ours: Callable[..., Any]) -> Iterator[str]:
    """The parameters of one that the other does not take in the same place, by the same name, with the same default."""
    try:
        wanted = inspect.signature(theirs).parameters.values()
    except ValueError:
        # Methods of C that do not tell.
        return
    taken = inspect.signature(ours).parameters
    kinds = {parameter.kind for parameter in taken.values()}
    for parameter in wanted:
        found = taken.get(parameter.name)
        # However those are called that take all the rest.
        if parameter.name == "self" or (parameter.kind in REST and parameter.kind in kinds):
            continue
        # A list that nobody changes is as good as a tuple.
        default = () if parameter.default == [] else parameter.default
        if found is None or found.default != default:
            yield parameter.name


def differences(theirs: str, ours: str) -> Iterator[str]:
    module = importlib.import_module(ours)
    for name, value in public(importlib.import_module(theirs)):
        if not hasattr(module, name):
            yield f"{theirs}.{name}"
            continue
        own = dict(parts(name, getattr(module, name)))
        for part, function in parts(name, value):
            found = own.get(part) or getattr(getattr(module, name), part.partition(".")[2], None)
            if found is None:
                yield f"{theirs}.{part}"
            else:
                yield from (
                    f"{theirs}.{part}({parameter})" for parameter in missing_parameters(function, found)
                )


def reasons(prefix: str) -> set[str]:
    return {name for name in LEFT_OUT if re.match(rf"{prefix}\b(?!-)", name)}


def covered(found: set[str]) -> set[str]:
    """What has no reason: neither itself, nor what it is a part of."""
    return {name for name in found if not {name, name.partition("(")[0]} & set(LEFT_OUT)}


@pytest.mark.parametrize("theirs", MODULES)
def test_every_name_and_parameter_is_there(theirs: str) -> None:
    pytest.importorskip(theirs)
    found = set(differences(theirs, MODULES[theirs]))
    assert covered(found) == set()
    needed = found | {name.partition("(")[0] for name in found}
    assert reasons(theirs) - needed == set(), "these have a reason and are there"


def help_of(*command: str) -> str:
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def option_names(text: str) -> set[str]:
    """All options that a help text begins a line with."""
    heads = re.findall(r"^ {2,6}(-[\w-]+(?: <?[\w]+>?)?(?:, --?[\w-]+)*)", text, re.MULTILINE)
    return {option for head in heads for option in re.findall(r"(?:^|[ ,])(--?[a-zA-Z][\w-]*)", head)}


@pytest.mark.parametrize("command", ["record", "top", "dump"])
def test_every_option_of_py_spy_is_there(command: str) -> None:
    py_spy = Path(sys.executable).with_name("py-spy")
    if not py_spy.exists():
        pytest.skip("py-spy is not installed")
    theirs = option_names(help_of(str(py_spy), command))
    assert {"-p", "--pid", "--nonblocking"} <= theirs
    ours = option_names(help_of(str(py_spy.with_name("hotspan")), command))
    left_out = {name.rsplit(" ", 1)[1] for name in reasons(f"py-spy {command}")}
    assert theirs - ours - left_out == set()
    assert left_out - (theirs - ours) == set(), "these have a reason and are there"


@pytest.mark.parametrize("theirs", ["cProfile", "memory_profiler"])
def test_every_option_of_the_commands_is_there(theirs: str) -> None:
    pytest.importorskip(theirs)
    ours = option_names(help_of(sys.executable, "-m", MODULES[theirs]))
    # `-m` runs a module in both; ours has it in the first line.
    assert option_names(help_of(sys.executable, "-m", theirs)) - ours - {"-m"} == set()


@pytest.mark.parametrize("command", ["run", "rm", "clean", "list", "plot", "peak"])
def test_every_option_of_mprof_is_there(command: str) -> None:
    pytest.importorskip("mprof")
    theirs = option_names(help_of(sys.executable, "-m", "mprof", command))
    ours = option_names(help_of(sys.executable, "-m", "hotspan.memory.mprof", command))
    assert theirs - ours == set()
    assert "--help" in theirs
