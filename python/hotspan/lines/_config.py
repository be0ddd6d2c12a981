"""Configuration in TOML files, under line_profiler's names: ``line_profiler.toml``, ``pyproject.toml``, or a file named
in ``LINE_PROFILER_RC``. What a file does not say has a default."""

from __future__ import annotations

import copy as copies
import importlib
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NAMESPACE = ["tool", "line_profiler"]
_ENVIRONMENT = "LINE_PROFILER_RC"
_NAMES = ("line_profiler.toml", "pyproject.toml")

_DEFAULTS: dict[str, Any] = {
    "kernprof": {
        "line-by-line": False,
        "builtin": False,
        "rich": False,
        "skip-zero": False,
        "summarize": False,
        "preimports": True,
        "prof-imports": False,
        "verbose": 0,
        "outfile": "",
        "setup": "",
        "unit": 1e-6,
        "output-interval": 0,
        "prof-mod": [],
    },
    "cli": {"unit": 1e-6, "rich": False, "skip-zero": False, "sort": False, "summarize": False},
    "setup": {"environ_flags": ["LINE_PROFILE"], "cli_flags": ["--line-profile", "--line_profile"]},
    "write": {
        "output_prefix": "profile_output",
        "lprof": True,
        "text": True,
        "timestamped_text": True,
        "stdout": True,
    },
    "show": {
        "sort": True,
        "stripzeros": True,
        "rich": True,
        "details": False,
        "summarize": True,
        "column_widths": {"line": 6, "hits": 9, "time": 12, "perhit": 8, "percent": 8},
    },
}


@dataclass
class ConfigSource:
    """Settings, the file they come from, and the tables of it that they are."""

    conf_dict: dict[str, Any]
    path: Path
    subtable: list[str]

    def copy(self) -> ConfigSource:
        """Return a copy that can be changed."""
        return type(self)(copies.deepcopy(self.conf_dict), self.path, list(self.subtable))

    def get_subconfig(self, *headers: str, allow_absence: bool = False, copy: bool = False) -> ConfigSource:
        """Return the settings of a table in this one."""
        table: Any = self.conf_dict
        for header in headers:
            table = table.get(header, {}) if allow_absence else table[header]
        return type(self)(copies.deepcopy(table) if copy else table, self.path, [*self.subtable, *headers])

    @classmethod
    def from_default(cls, *, copy: bool = True) -> ConfigSource:
        """Return what counts where no file says otherwise; the file that says so is this module."""
        return cls(copies.deepcopy(_DEFAULTS) if copy else _DEFAULTS, Path(__file__), list(_NAMESPACE))

    @classmethod
    def from_config(
        cls, config: str | os.PathLike[str] | bool | None = None, *, read_env: bool = True
    ) -> ConfigSource:
        """Return the settings of a file: one that is given, named in the environment, or found above this folder.

        ``False`` looks for none. A file that is given must be readable; others are passed over when they are not.
        """
        default = cls.from_default()
        if config is False or (isinstance(config, Path) and config == default.path):
            return default
        if config is None or config is True:
            path = _find(read_env)
            content = None if path is None else _read(path, must=False)
            if path is None or content is None:
                return default
        else:
            path = Path(config)
            content = _read(path, must=True)
        try:
            merged = _merge(default.conf_dict, _table(content, "tool", "line_profiler"), ".".join(_NAMESPACE))
        except TypeError as error:
            if config is None or config is True:
                return default
            raise ValueError(f"config = {str(path)!r}: expected these keys to be tables: {error}") from None
        return cls(merged, path.absolute(), list(_NAMESPACE))


def command_config(table: str, config: str | os.PathLike[str] | bool | None = None) -> ConfigSource:
    """The settings of a command, under the names of its options."""
    found = ConfigSource.from_config(config).get_subconfig(table)
    found.conf_dict = {key.replace("-", "_"): value for key, value in found.conf_dict.items()}
    return found


def _find(read_env: bool) -> Path | None:
    named = os.environ.get(_ENVIRONMENT) if read_env else None
    if named:
        return Path(named) if Path(named).exists() else None
    try:
        here = Path.cwd()
    except OSError:
        return None
    for folder in (here, *here.parents):
        for name in _NAMES:
            if (folder / name).is_file() and _read(folder / name, must=False) is not None:
                return folder / name
    return None


def _read(path: Path, must: bool) -> dict[str, Any] | None:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        if not must:
            return None
        if isinstance(error, FileNotFoundError):
            raise FileNotFoundError(
                f"Cannot load configurations from {str(path)!r}: there is no such file"
            ) from None
        raise ValueError(f"Cannot load configurations from {str(path)!r}: {error}") from None
    if not text.strip():
        return {}
    try:
        tomllib: Any = importlib.import_module("tomllib")
    except ImportError:
        # Python 3.10 has none. A file that says nothing to us is no loss.
        if must or "[tool.line_profiler" in text:
            warnings.warn(f"{path} is not read: that takes Python 3.11 or newer", stacklevel=2)
        return {}
    try:
        content: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        if must:
            raise ValueError(f"Cannot load configurations from {str(path)!r}: {error}") from None
        return None
    return content


def _table(content: Any, *names: str) -> Mapping[str, Any]:
    done: list[str] = []
    for name in names:
        content = content.get(name, {})
        done.append(name)
        if not isinstance(content, Mapping):
            raise TypeError(repr(".".join(done)))
    found: Mapping[str, Any] = content
    return found


def _merge(default: dict[str, Any], given: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Defaults with what is given in their place; what has no default means nothing."""
    merged = {}
    for key, value in default.items():
        if isinstance(value, dict):
            inner = given.get(key, {})
            if not isinstance(inner, Mapping):
                raise TypeError(repr(f"{name}.{key}"))
            merged[key] = _merge(value, inner, f"{name}.{key}")
        else:
            merged[key] = given.get(key, value)
    return merged
