"""``TimeStamper``: when functions began and ended, and the memory then; ``mprof plot`` draws it."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import IO, Any

from hotspan.memory._readings import choose_backend, memory_of


class _Block:
    """Stands for a function where a block of code is stamped."""

    __module__ = ""

    def __init__(self, name: str) -> None:
        self.__name__ = name


class TimeStamper:
    """Records time and memory at the beginning and end of each call of the functions it decorates.

    ``functions`` has ``[(memory, time), (memory, time)]`` for each call of a function, ``stack`` the depth of each.
    """

    def __init__(self, backend: str, include_children: bool = False) -> None:
        self.backend = choose_backend(backend)
        self.include_children = include_children
        self.functions: dict[Any, list[list[tuple[float, float]]]] = {}
        self.stack: dict[Any, list[int]] = {}
        self.current_stack_level = -1

    def __call__(self, func: Any = None, precision: int | None = None) -> Any:
        del precision
        if func is None:
            return self.__call__
        if not callable(func):
            raise ValueError("only functions can be stamped")
        return self.wrap_function(func)

    def add_function(self, func: Any) -> None:
        """Make room for the stamps of a function."""
        self.functions.setdefault(func, [])
        self.stack.setdefault(func, [])

    def wrap_function(self, func: Callable[..., Any]) -> Any:
        """Return the function so that every call of it is stamped."""
        self.add_function(func)
        if inspect.iscoroutinefunction(func):

            @functools.wraps(func)
            async def async_wrapper(*args: Any, **kwargs: Any) -> Any:
                with self._stamped(func):
                    return await func(*args, **kwargs)

            return async_wrapper

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self._stamped(func):
                return func(*args, **kwargs)

        return wrapper

    @contextlib.contextmanager
    def call_on_stack(self, func: Any, *args: Any, **kwds: Any) -> Iterator[Any]:
        """Call a function one level deeper; its result is the value of the context."""
        self.current_stack_level += 1
        self.stack[func].append(self.current_stack_level)
        try:
            yield func(*args, **kwds)
        finally:
            self.current_stack_level -= 1

    def timestamp(self, name: str = "<block>") -> contextlib.AbstractContextManager[None]:
        """Return a context whose beginning and end are stamped under a name."""
        block = _Block(name)
        self.add_function(block)
        return self._stamped(block)

    @contextlib.contextmanager
    def _stamped(self, func: Any) -> Iterator[None]:
        file = inspect.getsourcefile(func) if inspect.isfunction(func) else None
        stamps = [self._stamp(file)]
        self.functions[func].append(stamps)
        self.current_stack_level += 1
        self.stack[func].append(self.current_stack_level)
        try:
            yield
        finally:
            self.current_stack_level -= 1
            stamps.append(self._stamp(file))

    def _stamp(self, file: str | None) -> tuple[float, float]:
        return memory_of(os.getpid(), self.backend, self.include_children, file) or 0.0, time.time()

    def show_results(self, stream: IO[str] | None = None) -> None:
        """Write a line of mprof's form for each call that has ended."""
        stream = stream or sys.stdout
        for func, calls in self.functions.items():
            for stamps, level in zip(calls, self.stack[func], strict=False):
                if len(stamps) == 2:
                    (before, begin), (after, end) = stamps
                    name = f"{func.__module__}.{func.__name__}"
                    stream.write(f"FUNC {name} {before:.4f} {begin:.4f} {after:.4f} {end:.4f} {level}\n")
