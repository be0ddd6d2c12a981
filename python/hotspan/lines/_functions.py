"""What can be profiled: finds the Python functions behind methods, properties, partials, classes and modules."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType
from typing import Any

from hotspan.lines._scope import ScopingPolicy

#: A wrapper of ours names the function it stands for, and the recorder it turns on.
WRAPPED = "__hotspan_wrapped__"
RECORDER = "__hotspan_recorder__"


def functions_of(thing: Any, is_left_out: Callable[[FunctionType], bool] | None = None) -> list[FunctionType]:
    """Return the Python functions of a callable; none for one written in C. Wrappers may be left out."""
    found = _functions_of(thing, set())
    return [
        getattr(function, WRAPPED, function)
        for function in found
        if not (is_left_out and is_left_out(function))
    ]


def is_wrapper_of(recorder: object, function: Any) -> bool:
    """Whether a function is a wrapper that turns this recorder on."""
    return isinstance(function, FunctionType) and getattr(function, RECORDER, None) == id(recorder)


def _functions_of(thing: Any, seen: set[int]) -> Iterator[FunctionType]:
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, FunctionType):
        yield thing
    elif isinstance(thing, MethodType | classmethod | staticmethod):
        yield from _functions_of(thing.__func__, seen)
    elif isinstance(thing, functools.partial | functools.partialmethod | functools.cached_property):
        yield from _functions_of(thing.func, seen)
    elif isinstance(thing, property):
        for accessor in (thing.fget, thing.fset, thing.fdel):
            yield from _functions_of(accessor, seen)
    elif isinstance(thing, type):
        yield from _functions_of_class(thing, seen)
    elif callable(thing):
        yield from _functions_of_callable(thing, seen)


def _functions_of_class(owner: type, seen: set[int]) -> Iterator[FunctionType]:
    for value in list(vars(owner).values()):
        if belongs(owner, value):
            yield from _functions_of(value, seen)


def _functions_of_callable(thing: Any, seen: set[int]) -> Iterator[FunctionType]:
    try:
        # Not by `getattr`, which objects may answer by doing something.
        wrapped = object.__getattribute__(thing, "__dict__").get("__wrapped__")
    except AttributeError:
        wrapped = None
    if wrapped is not None:
        yield from _functions_of(wrapped, seen)
    else:
        call = type(thing).__call__
        if isinstance(call, FunctionType):
            yield from _functions_of(call, seen)


def belongs(owner: type, member: Any) -> bool:
    """Whether a member of a class was defined there: what `@profile` on the class means."""
    is_child = ScopingPolicy.CHILDREN.get_filter(owner, "func")
    if isinstance(member, type):
        return is_child(member)
    inner = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    if isinstance(inner, type):
        return is_child(inner)
    found = list(_functions_of(member, set()))
    return any(is_child(function) for function in found)
