"""Wrappers that record while the wrapped function runs: generators, coroutines, methods and classes too.

A generator or coroutine is recorded from each resumption to the next suspension. One that is left suspended for good
leaves nothing switched on.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Generator, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any, Protocol

from hotspan.lines._functions import RECORDER, WRAPPED, belongs, functions_of, is_wrapper_of

_CACHE_METHODS = ("cache_info", "cache_clear", "cache_parameters")


class Recorder(Protocol):
    """What a wrapper turns on and off."""

    def enable_by_count(self) -> None:
        """Begin to record, or count one more request."""

    def disable_by_count(self) -> None:
        """Take one request back."""


def wrap(recorder: Recorder, thing: Any) -> Any:
    """Return ``thing`` with every Python function in it wrapped; what has none is returned as it is."""
    if isinstance(thing, FunctionType):
        return (
            thing
            if is_wrapper_of(recorder, thing)
            else _marked(recorder, thing, _wrap_function(recorder, thing))
        )
    if isinstance(thing, classmethod | staticmethod):
        return type(thing)(wrap(recorder, thing.__func__))
    if isinstance(thing, MethodType):
        return MethodType(wrap(recorder, thing.__func__), thing.__self__)
    if isinstance(thing, functools.partial):
        return type(thing)(wrap(recorder, thing.func), *thing.args, **thing.keywords)
    if isinstance(thing, functools.partialmethod):
        return type(thing)(wrap(recorder, thing.func), *thing.args, **thing.keywords)
    if isinstance(thing, functools.cached_property):
        replaced = type(thing)(wrap(recorder, thing.func))
        replaced.attrname = thing.attrname
        return replaced
    if isinstance(thing, property):
        return _wrap_property(recorder, thing)
    if isinstance(thing, type):
        wrap_members(
            recorder, thing, {name: value for name, value in vars(thing).items() if belongs(thing, value)}
        )
        return thing
    if callable(thing) and functions_of(thing):
        wrapper = _wrap_function(recorder, thing)
        for name in _CACHE_METHODS:
            if hasattr(thing, name):
                setattr(wrapper, name, getattr(thing, name))
        return _marked(recorder, functions_of(thing)[0], wrapper)
    return thing


def wrap_members(recorder: Recorder, namespace: type | ModuleType, members: Mapping[str, Any]) -> None:
    """Replace members of a class or module by wrappers, and warn about those that cannot be replaced."""
    kept = {}
    for name, member in members.items():
        wrapper = wrap(recorder, member)
        if wrapper is not member:
            try:
                setattr(namespace, name, wrapper)
            except (AttributeError, TypeError):
                kept[name] = member
    if kept:
        what = f"cannot wrap {len(kept)} attribute(s) of {namespace!r} (`{{attr: value}}`): {kept!r}"
        warnings.warn(what, stacklevel=3)


def _marked(recorder: Recorder, function: Any, wrapper: Any) -> Any:
    setattr(wrapper, WRAPPED, getattr(function, WRAPPED, function))
    setattr(wrapper, RECORDER, id(recorder))
    return wrapper


def _wrap_property(recorder: Recorder, given: property) -> property:
    get, put, delete = (
        accessor and wrap(recorder, accessor) for accessor in (given.fget, given.fset, given.fdel)
    )
    return type(given)(get, put, delete, given.__doc__)


def _wrap_function(recorder: Recorder, function: Callable[..., Any]) -> Any:
    if inspect.iscoroutinefunction(function):
        return _wrap_coroutine(recorder, function)
    if inspect.isasyncgenfunction(function):
        return _wrap_async_generator(recorder, function)
    if inspect.isgeneratorfunction(function):
        return _wrap_generator(recorder, function)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        recorder.enable_by_count()
        try:
            return function(*args, **kwargs)
        finally:
            recorder.disable_by_count()

    return wrapper


def _steps(recorder: Recorder, inner: Any) -> Generator[Any, Any, Any]:
    """Run a generator, or what awaits a coroutine, and record while it runs."""
    step, value = inner.send, None
    try:
        while True:
            recorder.enable_by_count()
            try:
                item = step(value)
            except StopIteration as end:
                return end.value
            finally:
                recorder.disable_by_count()
            try:
                step, value = inner.send, (yield item)
            except GeneratorExit:
                recorder.enable_by_count()
                try:
                    inner.close()
                finally:
                    recorder.disable_by_count()
                raise
            except BaseException as error:
                step, value = inner.throw, error
    finally:
        # An exception that leaves keeps this frame, which must not keep the exception in turn.
        del inner, step, value


class _Stepped:
    """Awaits something step by step."""

    def __init__(self, recorder: Recorder, awaited: Any) -> None:
        self._recorder = recorder
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, Any]:
        return _steps(self._recorder, self._awaited.__await__())


def _wrap_coroutine(recorder: Recorder, function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return await _Stepped(recorder, function(*args, **kwargs))

    return wrapper


def _wrap_generator(recorder: Recorder, function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return (yield from _steps(recorder, function(*args, **kwargs)))

    return wrapper


def _wrap_async_generator(recorder: Recorder, function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        step: Any = generator.asend
        value: Any = None
        try:
            while True:
                try:
                    item = await _Stepped(recorder, step(value))
                except StopAsyncIteration:
                    return
                try:
                    step, value = generator.asend, (yield item)
                except GeneratorExit:
                    await _Stepped(recorder, generator.aclose())
                    raise
                except BaseException as error:
                    step, value = generator.athrow, error
        finally:
            del generator, step, value

    return wrapper
