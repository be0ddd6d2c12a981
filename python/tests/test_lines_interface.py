"""Everything public in line_profiler and kernprof is in hotspan.lines too, with the same parameters and defaults.

What is not there has its reason in `REASONS`. A reason for something that is there fails as well.
"""

from __future__ import annotations

import importlib.util
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import line_profiler
import line_profiler.explicit_profiler
import line_profiler.scoping_policy
import line_profiler.toml_config
import pytest

import hotspan.lines
from hotspan.lines import __main__ as lines_command
from hotspan.lines import _command, _view, kernprof
from hotspan.lines._config import ConfigSource

_INSIDE = "how line_profiler is made: nobody's program needs it"
_HERE = "its names are in hotspan.lines itself"

REASONS = {
    "line_profiler.line_profiler": _HERE,
    "line_profiler.explicit_profiler": _HERE,
    "line_profiler.scoping_policy": _HERE,
    "line_profiler.toml_config": _INSIDE,
    "line_profiler.cli_utils": _INSIDE,
    "line_profiler.profiler_mixin": _INSIDE,
    "line_profiler.line_profiler_utils": _INSIDE,
    "line_profiler.autoprofile": "hotspan records whole programs without rewriting them",
    "line_profiler.rc": "the defaults are in hotspan.lines._config",
    "LineProfiler.c_code_map": _INSIDE,
    "LineProfiler.dupes_map": "code objects are told apart by identity, and never changed",
    "LineProfiler.threaddata": _INSIDE,
    "LineProfiler.tool_id": "hotspan takes any free tool of sys.monitoring, not that of profilers",
}


def names_of(thing: Any) -> list[str]:
    return [name for name in dir(thing) if not name.startswith("_")]


def parameters(function: Any) -> dict[str, Any]:
    return {
        name: (parameter.kind, parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
    }


def missing_parameters(name: str, theirs: Any, ours: Any) -> Iterator[str]:
    """Parameters that ours has not, or with another default. Ours may have more that need not be given."""
    if theirs is ours or not callable(theirs):
        return
    wanted, given = parameters(theirs), parameters(ours)
    for parameter, shape in wanted.items():
        if given.get(parameter) != shape:
            yield f"{name}({parameter})"
    for parameter, (kind, default) in given.items():
        is_needed = default is inspect.Parameter.empty and kind not in (
            inspect.Parameter.VAR_POSITIONAL,
            inspect.Parameter.VAR_KEYWORD,
        )
        if parameter not in wanted and is_needed:
            yield f"{name}({parameter})"


def missing() -> Iterator[str]:
    """Names, and names with parameters, that are line_profiler's and not ours."""
    for module in pkgutil.iter_modules(line_profiler.__path__):
        is_public = not module.name.startswith("_")
        if is_public and importlib.util.find_spec(f"hotspan.lines.{module.name}") is None:
            yield f"line_profiler.{module.name}"
    yield from missing_members("", line_profiler, hotspan.lines, line_profiler.__all__)
    theirs, ours = line_profiler.LineProfiler(), hotspan.lines.LineProfiler()
    # Some of them say nothing before there is something to say.
    yield from missing_members("LineProfiler.", line_profiler.LineProfiler, ours, names_of(theirs))
    yield from missing_members(
        "LineStats.", line_profiler.LineStats, hotspan.lines.LineStats, names_of(line_profiler.LineStats)
    )
    explicit = line_profiler.explicit_profiler.GlobalProfiler
    for mine in (hotspan.lines.GlobalProfiler(), hotspan.lines.profile):
        yield from missing_members("profile.", explicit(), mine, names_of(explicit()))
    yield from missing_parameters("GlobalProfiler", explicit, hotspan.lines.GlobalProfiler)
    policy = line_profiler.scoping_policy.ScopingPolicy
    yield from missing_members("ScopingPolicy.", policy, hotspan.lines.ScopingPolicy, names_of(policy))


def missing_members(prefix: str, theirs: Any, ours: Any, names: list[str]) -> Iterator[str]:
    for name in names:
        if name == "line_profiler":
            continue
        if not hasattr(type(ours), name) and not hasattr(ours, name):
            yield f"{prefix}{name}"
            continue
        wanted = getattr(theirs, name, None)
        is_class = inspect.isclass(wanted)
        if is_class or inspect.isroutine(wanted):
            given = getattr(
                type(ours) if inspect.isclass(theirs) and not inspect.isclass(ours) else ours, name
            )
            if name not in ("LineProfiler", "profile"):
                yield from missing_parameters(f"{prefix}{name}", wanted, given)


def test_every_public_name_parameter_and_default_is_there() -> None:
    found = set(missing())
    assert found - REASONS.keys() == set(), "missing, and without a reason"
    assert REASONS.keys() - found == set(), "a reason for what is there"


def test_the_walk_sees_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(hotspan.lines.LineProfiler, "add_class")
    monkeypatch.setattr(hotspan.lines, "show_text", lambda _: None)
    assert {"LineProfiler.add_class", "show_text(output_unit)"} <= set(missing())


def flags(module: str) -> set[str]:
    """The options that a command's help names, short forms too."""
    ended = subprocess.run(
        [sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True
    )
    options = ended.stdout.partition("options:")[2]
    starts = [line for line in options.splitlines() if re.match(r" {2,}-", line)]
    named = {
        flag
        for line in starts
        for flag in re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", line.partition("   ")[0])
    }
    return named | set(re.findall(r"short form: (-\w)", re.sub(r"\s+", " ", options)))


def test_kernprof_and_the_viewer_have_every_flag() -> None:
    wanted = flags("kernprof")
    assert {"-l", "--line-by-line", "-p", "--prof-imports", "--config", "-V", "-i"} <= wanted, (
        "they were read"
    )
    for manner in (kernprof.MANNER, lines_command.MANNER):
        parser = _command.parser(manner)
        assert wanted - set(parser._option_string_actions) == set()
    viewer = flags("line_profiler")
    assert {"-u", "-z", "-t", "-m", "-c"} <= viewer
    assert viewer - set(_view.parser()._option_string_actions) == set()


def test_the_defaults_of_flags_and_settings_are_the_same() -> None:
    theirs = line_profiler.toml_config.ConfigSource.from_default().conf_dict
    assert ConfigSource.from_default().conf_dict == theirs
