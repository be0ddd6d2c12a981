"""Scoping policies: which members of a class or module are recorded with it, and which namespaces are entered."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


class StringEnum(str, enum.Enum):
    """Names that are strings. They are found again in any case, and ``auto()`` makes them lower case."""

    @staticmethod
    def _generate_next_value_(name: str, *_: Any) -> str:
        return name.lower()

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, form: str) -> str:
        return format(str(self.value), form)

    @classmethod
    def _missing_(cls, value: object) -> Any:
        if isinstance(value, str):
            return next((member for member in cls if member.value.lower() == value.lower()), None)
        return None


class ScopingPolicy(StringEnum):
    """What belongs to a class or module: its functions are recorded, its classes and modules entered.

    ``CHILDREN`` are defined in it; ``EXACT`` are its functions alone; ``DESCENDANTS`` are children of children too;
    ``SIBLINGS`` are also what its module (of a class) or its package (of a module) defines; ``NONE`` takes everything.
    """

    EXACT = enum.auto()
    CHILDREN = enum.auto()
    DESCENDANTS = enum.auto()
    SIBLINGS = enum.auto()
    NONE = enum.auto()

    def get_filter(self, namespace: type | ModuleType, obj_type: str) -> Callable[[Any], bool]:
        """Return the test of members of a namespace; ``obj_type`` is "func", "class" or "module"."""
        if obj_type not in ("func", "class", "module"):
            raise ValueError(f"obj_type = {obj_type!r}: expected 'func', 'class' or 'module'")
        in_class = isinstance(namespace, type)
        if obj_type == "module" and in_class:
            return lambda _: False
        if self is ScopingPolicy.NONE:
            return lambda _: True
        if self is ScopingPolicy.EXACT and obj_type != "func":
            return lambda _: False
        if obj_type == "module":
            return lambda module: self._has_module(namespace.__name__, module.__name__)
        if in_class:
            return lambda member: self._has_in_class(namespace, member)
        return lambda member: self._has_in_module(namespace.__name__, _module_of(member))

    def _has_in_class(self, owner: Any, member: Any) -> bool:
        if owner.__module__ != _module_of(member):
            return False
        name = str(getattr(member, "__qualname__", ""))
        if self is ScopingPolicy.SIBLINGS:
            return True
        if self is ScopingPolicy.DESCENDANTS:
            return name.startswith(f"{owner.__qualname__}.")
        return name.rpartition(".")[0] == str(owner.__qualname__)

    def _has_in_module(self, owner: str, module: str) -> bool:
        if self is ScopingPolicy.SIBLINGS:
            return _is_within(module, owner) or _is_within(module, owner.rpartition(".")[0])
        if self is ScopingPolicy.DESCENDANTS:
            return _is_within(module, owner)
        return module == owner

    def _has_module(self, owner: str, module: str) -> bool:
        if self is ScopingPolicy.CHILDREN:
            return module.rpartition(".")[0] == owner
        parent = owner.rpartition(".")[0] if self is ScopingPolicy.SIBLINGS else owner
        return module != parent and _is_within(module, parent)

    @classmethod
    def to_policies(
        cls, policies: str | ScopingPolicy | Mapping[str, str] | None = None
    ) -> dict[str, ScopingPolicy]:
        """Return a policy each for functions, classes and modules."""
        if policies is None:
            policies = DEFAULT_SCOPING_POLICIES
        if isinstance(policies, str):
            policies = dict.fromkeys(("func", "class", "module"), policies)
        return {kind: cls(policies[kind]) for kind in ("func", "class", "module")}


#: Functions and classes of the same package; modules are not entered.
DEFAULT_SCOPING_POLICIES: Mapping[str, str] = {"func": "siblings", "class": "siblings", "module": "exact"}


def _module_of(member: Any) -> str:
    return str(getattr(member, "__module__", ""))


def _is_within(name: str, package: str) -> bool:
    return bool(package) and (name == package or name.startswith(f"{package}."))
