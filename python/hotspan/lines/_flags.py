"""Flags of line_profiler's command lines: ``--flag``, ``--flag=no``, ``--no-flag`` and short forms."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_TRUE = {"1", "on", "t", "true", "y", "yes"}
_FALSE = {"", "0", "off", "f", "false", "n", "no"}
_VALUES = "Y[es] | N[o] | T[rue] | F[alse] | on | off | 1 | 0"


def boolean(value: str, *, fallback: bool | None = None, invert: bool = False) -> bool:
    """Return what a word says; ``fallback`` for a word that says neither."""
    word = value.lower()
    if word in _TRUE | _FALSE:
        return (word in _TRUE) != invert
    if fallback is None:
        raise ValueError(f"value = {value!r}: cannot be parsed into a boolean: {_VALUES}")
    return fallback


def positive_float(value: str) -> float:
    """Return a number above 0."""
    number = float(value)
    if not number > 0:
        raise ValueError(f"{value} is not above 0")
    return number


def add_argument(
    parser_like: Any, arg: str, /, *args: str, hide_complementary_options: bool = True, **kwargs: Any
) -> argparse.Action:
    """Add an option. One that is on or off takes a word too, and has a ``--no-`` form; short forms can be joined."""
    names = (arg, *args)
    action = kwargs.get("action")
    if action not in ("store_true", "store_false"):
        added: argparse.Action = parser_like.add_argument(*names, **kwargs)
        return added
    sets = action == "store_true"
    long = [name for name in names if name.startswith("--")]
    short = [name for name in names if not name.startswith("--")]
    shared = {"default": None, **{key: value for key, value in kwargs.items() if key != "action"}}
    if not long:
        only: argparse.Action = parser_like.add_argument(*short, action="store_const", const=sets, **shared)
        return only
    named = {"metavar": _VALUES, **shared}
    if short:
        named["help"] = _with_short_forms(named.get("help"), short)
    added = parser_like.add_argument(*long, nargs="?", const=sets, type=_word(not sets), **named)
    if short:
        hidden = {**shared, "help": argparse.SUPPRESS, "dest": added.dest}
        parser_like.add_argument(*short, action="store_const", const=sets, **hidden)
    if sets:
        negated = [f"--no-{name[2:]}" for name in long]
        words = argparse.SUPPRESS if hide_complementary_options else f"the opposite of {', '.join(names)}"
        opposite = {**named, "dest": added.dest, "help": words}
        parser_like.add_argument(*negated, nargs="?", const=False, type=_word(True), **opposite)
    return added


def _word(invert: bool) -> Callable[[str], bool]:
    def read(value: str) -> bool:
        return boolean(value, invert=invert)

    return read


def _with_short_forms(text: str | None, short: list[str]) -> str | None:
    if text == argparse.SUPPRESS:
        return text
    forms = f"hort form{'s' if len(short) > 1 else ''}: {', '.join(short)}"
    if not text:
        return f"(S{forms})"
    if text.endswith(")"):
        return f"{text[:-1]}; s{forms})"
    return f"{text} (S{forms})"


def short_string_path(path: str | os.PathLike[str]) -> str:
    """Return a path as short as it can be: as it is, absolute, or seen from this folder."""
    absolute = Path(path).absolute()
    forms = [str(Path(path)), str(absolute)]
    with contextlib.suppress(ValueError, OSError):
        forms.append(str(absolute.relative_to(Path.cwd())))
    return min(forms, key=len)


def get_python_executable() -> str:
    """Return the command that starts this Python."""
    for name in ("python", "python3"):
        found = shutil.which(name)
        if found and Path(sys.executable).exists() and Path(found).samefile(sys.executable):
            return name
    return short_string_path(sys.executable)
