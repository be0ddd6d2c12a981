"""Wrappers that record while the wrapped function runs: generators, coroutines, methods and classes too."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, Protocol


class Recorder(Protocol):
    """What a wrapper turns on and off."""

    def enable_by_count(self) -> None:
        """Begin to record, or count one more request."""

    def disable_by_count(self) -> None:
        """Take one request back."""


def wrap(recorder: Recorder, thing: Any) -> Any:
    """Return ``thing`` with every Python function in it wrapped; what has none is returned as it is."""
    if isinstance(thing, FunctionType):
        wrapper = _wrap_function(recorder, thing)
        wrapper.__hotspan_wrapped__ = thing
        return wrapper
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
        return type(thing)(
            wrap(recorder, thing.fget), wrap(recorder, thing.fset), wrap(recorder, thing.fdel), thing.__doc__
        )
    if isinstance(thing, type):
        for name, value in list(vars(thing).items()):
            wrapped = value if isinstance(value, type) else wrap(recorder, value)
            if wrapped is not value:
                setattr(thing, name, wrapped)
    return thing


def _wrap_function(recorder: Recorder, function: FunctionType) -> Any:
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


def _wrap_coroutine(recorder: Recorder, function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        recorder.enable_by_count()
        try:
            return await function(*args, **kwargs)
        finally:
            recorder.disable_by_count()

    return wrapper


def _wrap_generator(recorder: Recorder, function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        recorder.enable_by_count()
        try:
            return (yield from function(*args, **kwargs))
        finally:
            recorder.disable_by_count()

    return wrapper


def _wrap_async_generator(recorder: Recorder, function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        sent: Any = None
        thrown: BaseException | None = None
        recorder.enable_by_count()
        try:
            while True:
                try:
                    item = await (generator.asend(sent) if thrown is None else generator.athrow(thrown))
                except StopAsyncIteration:
                    return
                sent, thrown = None, None
                try:
                    sent = yield item
                except GeneratorExit:
                    await generator.aclose()
                    raise
                except BaseException as error:
                    thrown = error
        finally:
            recorder.disable_by_count()

    return wrapper
