"""What ``hotspan run`` must know of processes: that this one ends or becomes another program, or starts others.

Each function that is replaced here does what it did. Before the end, what was recorded is written. Other Pythons are
started so that they record themselves, also where the program gives them an environment of its own.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # `signal` would load `enum`
import os

from hotspan import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, NoReturn

# Signals whose default is not to end the process.
_HARMLESS = frozenset(
    getattr(_signal, name)
    for name in ("SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGWINCH")
)


class Ends:
    """Called before the process ends or becomes another program, and when that did not come about."""

    def __init__(
        self, finish: Callable[[], None], flush: Callable[[], None], go_on: Callable[[], None]
    ) -> None:
        self.finish, self.flush, self.go_on = finish, flush, go_on

    def watch(self) -> None:
        """Replace the functions that end a process or make it another program."""
        exit_now, abort = os._exit, os.abort
        execv, execve = os.execv, os.execve

        # Children of multiprocessing end without the usual ceremony; they are told apart from crashes by this.
        def exit_(status: int) -> NoReturn:
            self.finish()
            exit_now(status)

        def abort_() -> NoReturn:
            self.finish()
            abort()

        def execv_(path: Any, argv: Any, /) -> NoReturn:
            followed = _environment([path], argv, None)
            if followed is None:
                self._become(path, execv, path, argv)
            self._become(path, execve, path, argv, followed)

        def execve_(path: Any, argv: Any, env: Any) -> NoReturn:
            followed = _environment([path], argv, env)
            self._become(path, execve, path, argv, env if followed is None else followed)

        for original, replacement in (
            (exit_now, exit_),
            (abort, abort_),
            (execv, execv_),
            (execve, execve_),
        ):
            _replace(os, original, replacement)
        _core.watch_kills(self._before_kill, self._before_killpg, self._before_signal)

    def _before_kill(self, pid: int, signal: int) -> None:
        if pid in (os.getpid(), 0, -1, -os.getpgrp()):
            self._before_signal(signal)

    def _before_killpg(self, pgid: int, signal: int) -> None:
        if pgid in (os.getpgrp(), 0):
            self._before_signal(signal)

    def _before_signal(self, signal: int) -> None:
        if signal not in _HARMLESS and _signal.getsignal(signal) == _signal.SIG_DFL:
            self.flush()

    def _become(self, path: Any, become: Callable[..., NoReturn], *arguments: Any) -> NoReturn:
        # `os.execvp` tries one folder after the other.
        is_there = isinstance(path, int) or _is_executable(path)
        if is_there:
            self.finish()
        try:
            become(*arguments)
        finally:
            if is_there:
                self.go_on()


def watch_spawn() -> None:
    """Have the Pythons that ``os.posix_spawn`` starts record themselves."""
    for name in ("posix_spawn", "posix_spawnp"):
        original = getattr(os, name, None)
        if original is not None:
            _replace(os, original, _spawning(original))


def watch_subprocess(subprocess: ModuleType) -> None:
    """Have the Pythons that ``subprocess`` and ``multiprocessing`` start record themselves."""
    import _posixsubprocess

    fork_exec = _posixsubprocess.fork_exec
    if getattr(fork_exec, "is_hotspans", False):
        return

    def follow_and_start(args: Any, executables: Any, *rest: Any) -> Any:
        # The fourth of the rest is the environment: a list of bytes, or nothing for the one of this process.
        if len(rest) > 3:
            followed = _environment(executables, args, rest[3])
            if followed is not None:
                variables = [name + b"=" + value for name, value in followed.items()]
                rest = (*rest[:3], variables, *rest[4:])
        return fork_exec(args, executables, *rest)

    follow_and_start.is_hotspans = True  # type: ignore[attr-defined]
    _replace(_posixsubprocess, fork_exec, follow_and_start)
    if getattr(subprocess, "_fork_exec", None) is fork_exec:
        subprocess._fork_exec = follow_and_start  # type: ignore[attr-defined]


def _spawning(spawn: Callable[..., int]) -> Callable[..., int]:
    def follow_and_spawn(path: Any, argv: Any, env: Any, /, **options: Any) -> int:
        followed = _environment([path], argv, env)
        return spawn(path, argv, env if followed is None else followed, **options)

    return follow_and_spawn


def _environment(paths: Any, argv: Any, env: Any) -> dict[bytes, bytes] | None:
    """Return the environment in which a child is recorded; ``None`` where that is the one it gets."""
    try:
        from hotspan._agent_children import environment

        return environment(paths, argv, env)
    except Exception:
        # What is wrong with the arguments, the function that gets them will say.
        return None


def _is_executable(path: Any) -> bool:
    try:
        return os.access(path, os.X_OK)
    except (TypeError, ValueError):
        return False


def _replace(module: ModuleType, original: Any, replacement: Any) -> None:
    """Put a function in the place of another, under its name: it can be pickled as that was."""
    name = original.__name__
    replacement.__module__, replacement.__name__, replacement.__qualname__ = module.__name__, name, name
    replacement.__doc__ = original.__doc__
    setattr(module, name, replacement)
