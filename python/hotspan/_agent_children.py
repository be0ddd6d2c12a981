"""The environment in which a child records itself, for children that get another one from the program.

Only Pythons are touched, and only those that look at the environment: ``-I``, ``-E`` and ``-S`` keep them out, and
``hotspan run`` names them in its report.
"""

from __future__ import annotations

import os
import sys

from hotspan import _agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_VARIABLE = os.fsencode(_agent.VARIABLE)
_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_inject").encode()  # noqa: PTH100, PTH118, PTH120
#: A first line longer than this is none that the system reads.
_FIRST_LINE = 256


def environment(paths: Iterable[Any], argv: Iterable[Any], env: Any) -> dict[bytes, bytes] | None:
    """Return the variables for a child that may be any of some files; ``None``: the environment is good as it is.

    ``env`` is a mapping, a list of bytes as ``_posixsubprocess`` takes it, or ``None`` for that of this process.
    """
    words = [os.fsencode(word) for word in argv]
    if not any(_records_itself(os.fsencode(path), words) for path in paths if not isinstance(path, int)):
        return None
    variables = _variables(env)
    run = variables.get(_VARIABLE)
    folders = variables.get(b"PYTHONPATH", b"")
    # The same folder may be spelled in several ways, and one of them is enough.
    has_folder = any(folder.endswith(b"hotspan/_inject") for folder in folders.split(b":"))
    # Who sets it to nothing does not want the child to be recorded.
    if run == b"" or (run is not None and has_folder):
        return None
    if run is None:
        variables = {**_variables(_agent.told()), **variables}
    if not has_folder:
        variables[b"PYTHONPATH"] = _FOLDER + b":" + folders if folders else _FOLDER
    return variables


def _variables(env: Any) -> dict[bytes, bytes]:
    if env is None:
        env = os.environ
    if isinstance(env, (list, tuple)):
        pairs = [variable.partition(b"=") for variable in env]
        return {name: value for name, _, value in pairs}
    return {os.fsencode(name): os.fsencode(value) for name, value in env.items()}


def _records_itself(path: bytes, words: list[bytes]) -> bool:
    """Whether a program is a Python that will look for us."""
    if _is_python(path):
        return not _looks_away(words[1:])
    try:
        if not os.path.isfile(path):  # noqa: PTH113
            return False
        with open(path, "rb") as file:  # noqa: PTH123 (pathlib may not be loaded)
            start = file.readline(_FIRST_LINE)
    except (OSError, ValueError):
        return False
    if not start.startswith(b"#!"):
        return False
    interpreter = start[2:].split()
    names = [index for index, word in enumerate(interpreter) if _is_python(word)]
    return bool(names) and not _looks_away(interpreter[names[0] + 1 :])


def _is_python(path: bytes) -> bool:
    name = path.rpartition(b"/")[2]
    return name.startswith((b"python", b"pypy")) or path == os.fsencode(sys.executable)


def _looks_away(words: list[bytes]) -> bool:
    """Whether the options of a Python make it ignore the environment, or ``sitecustomize``."""
    rest = iter(words)
    for word in rest:
        if not word.startswith(b"-") or word in (b"-", b"--"):
            return False
        if word.startswith(b"--"):
            continue
        for index, letter in enumerate(word[1:].decode("latin-1"), 2):
            if letter in "IES":
                return True
            if letter in "cm":
                return False
            if letter in "XW":
                if index == len(word):
                    next(rest, None)
                break
    return False
