"""Adds the functions of a class or module to a profiler, as scoping policies say."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from hotspan.lines._functions import WRAPPED, functions_of
from hotspan.lines._scope import ScopingPolicy
from hotspan.lines._wrap import wrap_members

if TYPE_CHECKING:
    from hotspan.lines._profiler import LineProfiler


def add_thing(profiler: LineProfiler, thing: Any, scoping_policy: Any = None, wrap: bool = False) -> int:
    """Watch a module, a class or a callable, and return how much of it."""
    if isinstance(thing, type | ModuleType):
        return Members(profiler, ScopingPolicy.to_policies(scoping_policy), wrap).add(thing)
    return profiler.add_callable(thing)


class Members:
    """Goes through a namespace and those in it, each once."""

    def __init__(self, profiler: LineProfiler, policies: dict[str, ScopingPolicy], wrap: bool) -> None:
        self._profiler = profiler
        self._policies = policies
        self._wrap = wrap
        self._seen: set[int] = set()

    def add(self, namespace: type | ModuleType) -> int:
        """Watch the members of a namespace and return how many there were."""
        is_wanted = {kind: policy.get_filter(namespace, kind) for kind, policy in self._policies.items()}
        functions = {}
        count = 0
        for name, value in list(vars(namespace).items()):
            if id(value) in self._seen:
                continue
            self._seen.add(id(value))
            if isinstance(value, type | ModuleType):
                kind = "class" if isinstance(value, type) else "module"
                count += bool(is_wanted[kind](value) and self.add(value))
            elif self._add_function(value, is_wanted["func"]):
                functions[name] = value
                count += 1
        if self._wrap:
            wrap_members(self._profiler.recorder, namespace, functions)
        return count

    def _add_function(self, value: Any, is_wanted: Callable[[Any], bool]) -> bool:
        if isinstance(value, FunctionType) and not hasattr(value, WRAPPED):
            # What a decorator put around a function is not what was written here.
            value = inspect.unwrap(value)
        found = functions_of(value, self._profiler.is_wrapped)
        wanted = [function for function in found if is_wanted(function)]
        for function in wanted:
            self._profiler.add_function(function)
        return bool(wanted)
