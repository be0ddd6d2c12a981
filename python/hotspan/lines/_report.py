"""line_profiler's report as text: of all functions, or of one. The text itself is made in Rust."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from hotspan import _core
from hotspan.lines._stats import Timings

_COLUMNS = ("line", "hits", "time", "perhit", "percent")


def show_text(
    stats: Timings,
    unit: float,
    output_unit: float | None = None,
    stream: IO[str] | None = None,
    stripzeros: bool = False,
    details: bool = True,
    summarize: bool = False,
    sort: bool = False,
    rich: bool = False,
    *,
    config: str | os.PathLike[str] | bool | None = None,
) -> None:
    """Print line_profiler's report of all functions. ``rich`` is accepted and changes nothing."""
    del rich
    functions = [(*key, list(rows)) for key, rows in stats.items()]
    text = _core.line_text(
        functions,
        unit,
        output_unit or unit,
        stripzeros,
        sort,
        details,
        summarize,
        True,
        column_widths(config),
        generated_sources(key[0] for key in stats),
    )
    write(sys.stdout if stream is None else stream, text)


def show_func(
    filename: str,
    start_lineno: int,
    func_name: str,
    timings: Iterable[tuple[int, float, float]],
    unit: float,
    output_unit: float | None = None,
    stream: IO[str] | None = None,
    stripzeros: bool = False,
    rich: bool = False,
    *,
    config: str | os.PathLike[str] | bool | None = None,
) -> None:
    """Print the report of one function; its lines are (line, hits, time)."""
    del rich
    text = _core.line_text(
        [(filename, start_lineno, func_name, list(timings))],
        unit,
        output_unit or unit,
        stripzeros,
        False,
        True,
        False,
        False,
        column_widths(config),
        generated_sources([filename]),
    )
    write(sys.stdout if stream is None else stream, text)


def column_widths(config: str | os.PathLike[str] | bool | None) -> list[int]:
    """How wide the columns are at least: as configured, never narrower than line_profiler's."""
    from hotspan.lines._config import ConfigSource

    default = ConfigSource.from_default().conf_dict["show"]["column_widths"]
    wanted = ConfigSource.from_config(config).conf_dict["show"]["column_widths"]
    return [max(default[column], int(wanted.get(column, 0))) for column in _COLUMNS]


def is_generated_code(filename: str) -> bool:
    """Whether code lies in no file that stays: a cell of a notebook, or text that a program made."""
    import tempfile

    folder = Path(tempfile.gettempdir())
    made = ("ipykernel_", "xpython_")
    return filename.startswith(("<generated", "<ipython-input-", *(str(folder / name) for name in made)))


def generated_sources(files: Iterable[str]) -> dict[str, str]:
    """The source of code that lies in no file: notebooks, doctests, ``exec``."""
    wanted = {
        file
        for file in files
        if file.startswith("<") or (is_generated_code(file) and not Path(file).exists())
    }
    found = {file: "".join(linecache.getlines(file)) for file in wanted}
    return {file: text for file, text in found.items() if text or file.startswith("<")}


def get_code_block(filename: str | os.PathLike[str], lineno: int) -> list[str]:
    """Return the lines of the function or class that begins at a line of a file."""
    import inspect

    return inspect.getblock(linecache.getlines(os.fspath(filename))[lineno - 1 :])


def write(stream: IO[str], text: str) -> None:
    """Write text to a stream, with escapes for what its encoding does not have."""
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = getattr(stream, "encoding", None) or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def text_arguments(options: Any) -> dict[str, Any]:
    """What a command line says about the report, as arguments of `show_text`."""
    return {
        "output_unit": options.unit,
        "stripzeros": options.skip_zero,
        "summarize": options.summarize,
        "sort": options.sort,
        "config": options.config,
    }
