"""mprof's files: lines of memory, of children and of functions. How they are found, read and named."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

_PATTERN = "mprofile_??????????????.dat"
_STAMP = "%Y%m%d%H%M%S"


def new_name() -> str:
    """Return the name of a file for a run that begins now."""
    return f"mprofile_{time.strftime(_STAMP)}.dat"


def begun(name: str) -> str:
    """Return when the run of a file began, as its name says."""
    try:
        moment = time.strptime(Path(name).stem.rsplit("_", 1)[-1], _STAMP)
    except ValueError:
        return ""
    return time.strftime("%H:%M:%S %d/%m/%Y", moment)


def existing() -> list[str]:
    """Return the files in this folder, oldest first."""
    return sorted(str(path) for path in Path().glob(_PATTERN))


def get_profile_filenames(args: Sequence[str]) -> list[str]:
    """Return the files that are meant: ``"all"``, or names and numbers of the list; each once."""
    known = existing()
    if args == "all":
        return known
    found: list[str] = []
    for word in args:
        if word == "--":
            continue
        if word.removeprefix("-").isdigit():
            if not -len(known) <= int(word) < len(known):
                raise ValueError(f"there is no file number {word} here: mprof list shows {len(known)}")
            found.append(known[int(word)])
        elif Path(word).is_file():
            found.append(word)
        else:
            raise ValueError(f"{word} is {'a folder' if Path(word).is_dir() else 'no file'}")
    return list(dict.fromkeys(found))


def read_mprofile_file(filename: str) -> dict[str, Any]:
    """Return what a file has: memory in MiB with Unix times, calls of functions, memory of children, the command.

    ``func_timestamp`` has ``[begin, end, memory at begin, memory at end, depth]`` for each call of a function.
    """
    memory: list[float] = []
    times: list[float] = []
    functions: dict[str, list[list[Any]]] = {}
    children: dict[str, list[tuple[float, float]]] = defaultdict(list)
    command = None
    for number, line in enumerate(Path(filename).read_text(encoding="utf-8").splitlines(), 1):
        kind, _, rest = line.partition(" ")
        words = rest.split(" ")
        try:
            if kind == "CMDLINE":
                command = rest
            elif kind == "MEM":
                memory.append(float(words[0]))
                times.append(float(words[1]))
            elif kind == "CHLD":
                children[words[0]].append((float(words[1]), float(words[2])))
            elif kind == "FUNC":
                before, begin, after, end = map(float, words[1:5])
                depth = [int(word) for word in words[5:6]]
                functions.setdefault(words[0], []).append([begin, end, before, after, *depth])
        except (ValueError, IndexError):
            raise ValueError(f"{filename}, line {number}: not a line of mprof: {line!r}") from None
    return {
        "mem_usage": memory,
        "timestamp": times,
        "func_timestamp": functions,
        "filename": filename,
        "cmd_line": command,
        "children": children,
    }


def function_labels(dotted_function_names: Iterable[str]) -> dict[str, str]:
    """Return the shortest end of each dotted name that no other one has too."""
    names = list(dict.fromkeys(dotted_function_names))
    labels = {}
    # How many parts of the names with a common end are shown: more and more, until they differ.
    groups = [(names, 1)]
    while groups:
        members, parts = groups.pop()
        ends: dict[str, list[str]] = defaultdict(list)
        for name in members:
            ends[".".join(name.split(".")[-parts:])].append(name)
        for end, alike in ends.items():
            if len(alike) == 1:
                labels[alike[0]] = end
            else:
                groups.append((alike, parts + 1))
    return labels
