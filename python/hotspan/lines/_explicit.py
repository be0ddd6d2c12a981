"""``profile``: marks functions whose lines are recorded. The results are shown when the program ends.

`GlobalProfiler` is line_profiler's: off unless ``LINE_PROFILE=1``, ``--line-profile`` or `GlobalProfiler.enable` turns
it on, and it writes files. ``hotspan.lines.profile`` is on without being asked and prints the lines; asked in one of
these ways, it does what line_profiler does. Under ``python -m hotspan.lines`` both feed the profiler of that run, which
shows the results instead.
"""

from __future__ import annotations

import atexit
import os
import sys
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotspan.lines._profiler import LineProfiler

_OFF = {"0", "off", "no", "false", "n", "f"}


#: The profiler of a command that runs the program, and shows the results itself.
_running: Any = None


def feed(profiler: Any) -> None:
    """Give what is decorated to this profiler from now on; None: to nobody but ``profile`` itself."""
    global _running
    _running = profiler


class GlobalProfiler:
    """The object behind ``profile``, with line_profiler's settings: what turns it on, what it writes, what it shows."""

    def __init__(self, config: str | os.PathLike[str] | bool | None = None) -> None:
        self._config_asked = config
        self._profile: Any = None
        self._owner_pid: int | None = None
        self._settings: dict[str, Any] | None = None
        self.enabled: bool | None = None

    # Files are looked for when they are first needed: importing hotspan reads none.
    def _configured(self) -> dict[str, Any]:
        if self._settings is None:
            from hotspan.lines._config import ConfigSource

            source = ConfigSource.from_config(self._config_asked)
            write, show = source.conf_dict["write"], source.conf_dict["show"]
            show.pop("column_widths")
            self._settings = {
                "setup": source.conf_dict["setup"],
                "prefix": write.pop("output_prefix"),
                "write": write,
                "show": show,
                "path": source.path,
            }
        return self._settings

    @property
    def setup_config(self) -> dict[str, list[str]]:
        """The environment variables and flags that turn it on."""
        found: dict[str, list[str]] = self._configured()["setup"]
        return found

    @property
    def write_config(self) -> dict[str, bool]:
        """What is written at the end: lprof, text, timestamped_text, stdout."""
        found: dict[str, bool] = self._configured()["write"]
        return found

    @property
    def show_config(self) -> dict[str, bool]:
        """How the text is made: sort, stripzeros, rich, details, summarize."""
        found: dict[str, bool] = self._configured()["show"]
        return found

    @property
    def output_prefix(self) -> str:
        """What the names of files begin with."""
        return str(self._configured()["prefix"])

    @output_prefix.setter
    def output_prefix(self, prefix: str) -> None:
        self._configured()["prefix"] = prefix

    def _is_asked(self) -> bool:
        setup = self.setup_config
        words = (os.environ.get(name, "") for name in setup["environ_flags"])
        return any(word and word.lower() not in _OFF for word in words) or any(
            flag in sys.argv for flag in setup["cli_flags"]
        )

    def _set_up(self) -> None:
        if self._is_asked():
            self.enable()
        else:
            self.disable()

    def _new_profiler(self) -> LineProfiler:
        from hotspan.lines._profiler import LineProfiler

        return LineProfiler()

    def enable(self, output_prefix: str | None = None) -> None:
        """Record what is decorated from here on, and show it when the program ends."""
        if _running is not None:
            self.enabled = True
            return
        if _is_helper_process():
            self.enabled = False
            return
        if self._profile is None:
            self._profile = self._new_profiler()
            self._owner_pid = os.getpid()
            atexit.register(self._at_exit)
        self.enabled = True
        if output_prefix is not None:
            self.output_prefix = output_prefix

    def disable(self) -> None:
        """Leave what is decorated from here on alone."""
        self.enabled = False

    def __call__(self, func: Any) -> Any:
        if _running is not None:
            return func if self.enabled is False else _running(func)
        if self.enabled is None:
            self._set_up()
        return self._profile(func) if self.enabled else func

    def _at_exit(self) -> None:
        # A forked child inherits the exit handler, not the task.
        if self._profile is not None and self._owner_pid == os.getpid():
            self.show()

    def show(self) -> None:
        """Write what was recorded, in the ways that ``write_config`` names."""
        if self._profile is None:
            return
        shown = {**self.show_config, "config": self._configured()["path"]}
        if self.write_config["stdout"]:
            self._profile.print_stats(**shown)
        stream = StringIO()
        self._profile.print_stats(stream, **{**shown, "details": True, "rich": False})
        stamp = datetime.now().strftime("%Y-%m-%dT%H%M%S")
        texts = {"text": f"{self.output_prefix}.txt", "timestamped_text": f"{self.output_prefix}_{stamp}.txt"}
        for kind, name in texts.items():
            if self.write_config[kind]:
                Path(name).write_text(stream.getvalue(), encoding="utf-8")
                print(f"Wrote profile results to {name}")
        if self.write_config["lprof"]:
            name = f"{self.output_prefix}.lprof"
            self._profile.dump_stats(name)
            print(f"Wrote profile results to {name}\nTo view details run:\nhotspan stats {name}")


class ExplicitProfiler(GlobalProfiler):
    """``hotspan.lines.profile``: on without being asked, and then the lines are printed and no file is written.

    ``LINE_PROFILE=0`` in the environment switches it off.
    """

    def __init__(self, config: str | os.PathLike[str] | bool | None = None) -> None:
        super().__init__(config)
        self._prints = False

    def _set_up(self) -> None:
        if self._is_asked():
            self.enable()
        elif os.environ.get("LINE_PROFILE", "1").lower() in _OFF:
            self.disable()
        else:
            self._prints = True
            self.enable()

    def _new_profiler(self) -> LineProfiler:
        from hotspan.lines._profiler import RunningProfiler

        return RunningProfiler()

    def _at_exit(self) -> None:
        if not self._prints:
            super()._at_exit()
        elif self._profile is not None and self._owner_pid == os.getpid():
            self._profile.print_stats(output_unit=1e-6)

    def print_stats(self, stream: IO[str] | None = None, **options: Any) -> None:
        """Print line_profiler's report of what was recorded so far."""
        (self._profile or self._new_profiler()).print_stats(stream, **options)

    def dump_stats(self, filename: str | os.PathLike[str]) -> None:
        """Write line_profiler's file."""
        (self._profile or self._new_profiler()).dump_stats(filename)


def _is_helper_process() -> bool:
    """Whether multiprocessing started this process to work for another one, which shows its own results."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        return True
    starts = tuple(
        f"from multiprocessing.{name} import" for name in ("spawn", "forkserver", "resource_tracker")
    )
    return "--multiprocessing-fork" in sys.argv or any(word.startswith(starts) for word in sys.orig_argv[1:])


profile = ExplicitProfiler()
