"""``ContextualProfile``: what kernprof uses without ``-l``; it counts calls as cProfile does."""

from __future__ import annotations

from types import CodeType
from typing import Any

from hotspan.cprofile import Profile
from hotspan.lines._wrap import wrap


class ContextualProfile(Profile):
    """A profiler of calls that decorates functions, and that nested users switch on and off."""

    def __init__(self, *args: Any, **kwds: Any) -> None:
        super().__init__(*args, **kwds)
        self.enable_count = 0

    def enable_by_count(self, subcalls: bool = True, builtins: bool = True) -> None:
        """Record until :meth:`disable_by_count` was called as often."""
        if self.enable_count == 0:
            self.enable(subcalls=subcalls, builtins=builtins)
        self.enable_count += 1

    def disable_by_count(self) -> None:
        """Take one :meth:`enable_by_count` back."""
        if self.enable_count > 0:
            self.enable_count -= 1
            if self.enable_count == 0:
                self.disable()

    def __call__(self, func: Any) -> Any:
        return self.wrap_callable(func)

    def wrap_callable(self, func: Any) -> Any:
        """Return ``func`` so that it is recorded whenever it is called."""
        return wrap(self, func)

    def __enter__(self) -> ContextualProfile:
        self.enable_by_count()
        return self

    def __exit__(self, *_error: object) -> None:
        self.disable_by_count()

    def runctx(self, cmd: str | CodeType, globals: dict[str, Any], locals: Any) -> ContextualProfile:  # noqa: A002
        """Record a statement in these namespaces."""
        with self:
            exec(cmd, globals, locals)
        return self

    def runcall(self, func: Any, /, *args: Any, **kw: Any) -> Any:
        """Record one call and return its result."""
        with self:
            return func(*args, **kw)
