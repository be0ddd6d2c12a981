"""What can be profiled: finds the Python functions behind methods, properties, partials, classes and modules."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any


def functions_of(thing: Any) -> list[FunctionType]:
    """Return the Python functions of a callable; none for one written in C."""
    return list(_functions_of(thing, set()))


def _functions_of(thing: Any, seen: set[int]) -> Iterator[FunctionType]:
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, FunctionType):
        # A wrapper of ours stands for what it wraps.
        yield getattr(thing, "__hotspan_wrapped__", thing)
    elif isinstance(thing, MethodType | classmethod | staticmethod):
        yield from _functions_of(thing.__func__, seen)
    elif isinstance(thing, functools.partial | functools.partialmethod | functools.cached_property):
        yield from _functions_of(thing.func, seen)
    elif isinstance(thing, property):
        for accessor in (thing.fget, thing.fset, thing.fdel):
            yield from _functions_of(accessor, seen)
    elif isinstance(thing, type):
        for value in list(vars(thing).values()):
            if not isinstance(value, type) or _is_inside(value, thing):
                yield from _functions_of(value, seen)
    elif callable(thing) and hasattr(thing, "__wrapped__"):
        yield from _functions_of(thing.__wrapped__, seen)


def _is_inside(inner: type, outer: type) -> bool:
    return inner.__module__ == outer.__module__ and inner.__qualname__.startswith(outer.__qualname__ + ".")


def functions_of_module(module: ModuleType) -> list[FunctionType]:
    """Return the functions and methods that a module defines itself, in the order of its names."""
    seen: set[int] = set()
    found: list[FunctionType] = []
    for value in list(vars(module).values()):
        if getattr(value, "__module__", None) == module.__name__ and not isinstance(value, ModuleType):
            found += _functions_of(inspect.unwrap(value) if inspect.isfunction(value) else value, seen)
    return found
