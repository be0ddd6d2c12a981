"""``_core.pyi`` and ``hotspan._core`` say the same: names, members of classes, parameters and their defaults."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from types import ModuleType, WrapperDescriptorType
from typing import Any

import hotspan
from hotspan import _core

assert hotspan.__file__ is not None
STUB = ast.parse(Path(hotspan.__file__).with_name("_core.pyi").read_text())

# Python iterates over whatever has `__getitem__`; type checkers want to see it.
ONLY_IN_STUB = {"__iter__"}
# Python calls either, and cannot tell which was written.
CONSTRUCTORS = {"__init__", "__new__"}


class _Bare:
    """Has what every class has."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def stub_names(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """The public names of a module or class in the stub."""
    found: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = node
    return {name: node for name, node in found.items() if not is_private(name)}


def stub_parameters(node: ast.FunctionDef) -> list[tuple[str, str, str]]:
    """Name, kind and default of each parameter, as the stub writes them."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    pairs = [
        *((one, default, "positional") for one, default in zip(positional, defaults, strict=True)),
        *(
            (one, default, "keyword")
            for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        ),
    ]
    told = [(one.arg, kind, "" if default is None else ast.unparse(default)) for one, default, kind in pairs]
    return told[1:] if told and told[0][0] in ("self", "cls") else told


def real_parameters(function: Any) -> list[tuple[str, str, str]]:
    """The same, of the extension."""
    told = []
    for one in inspect.signature(function).parameters.values():
        kind = "keyword" if one.kind is one.KEYWORD_ONLY else "positional"
        told.append((one.name, kind, "" if one.default is one.empty else repr(one.default)))
    return told[1:] if told and told[0][0] in ("self", "cls", "type") else told


def decorators(node: ast.FunctionDef) -> set[str]:
    return {ast.unparse(decorator) for decorator in node.decorator_list}


def real_names(owner: type | ModuleType) -> set[str]:
    return {name for name in vars(owner) if not is_private(name)}


def classes() -> list[tuple[type, ast.ClassDef]]:
    found = stub_names(STUB.body)
    return [
        (kind, node)
        for name, kind in vars(_core).items()
        if inspect.isclass(kind) and isinstance(node := found.get(name), ast.ClassDef)
    ]


def test_the_module_has_the_names_of_the_stub() -> None:
    of_every_module = set(vars(ModuleType("x"))) | {"__file__", "__all__"}
    assert real_names(_core) - of_every_module == set(stub_names(STUB.body))


def test_functions_have_the_parameters_of_the_stub() -> None:
    functions = {
        name: node for name, node in stub_names(STUB.body).items() if isinstance(node, ast.FunctionDef)
    }
    assert len(functions) > 15
    for name, node in functions.items():
        assert real_parameters(getattr(_core, name)) == stub_parameters(node), name


def test_classes_have_the_members_of_the_stub() -> None:
    assert len(classes()) > 15
    for kind, node in classes():
        told = set(stub_names(node.body))
        real = real_names(kind)
        assert told - CONSTRUCTORS - ONLY_IN_STUB <= real, kind
        # What every class has need not be told.
        assert real - told <= set(dir(_Bare)), kind
        # An object of which the stub shows no constructor cannot be made.
        can_be_made = kind.__new__ is not object.__new__ and not issubclass(kind, Exception)
        assert bool(told & CONSTRUCTORS) == can_be_made, kind
        assert node.bases == [] or [ast.unparse(base) for base in node.bases] == [
            base.__name__ for base in kind.__bases__
        ]


def test_members_are_what_the_stub_says() -> None:
    compared = 0
    for kind, node in classes():
        for name, member in stub_names(node.body).items():
            where = f"{kind.__name__}.{name}"
            real = vars(kind).get(name)
            if isinstance(member, ast.AnnAssign):
                assert type(real).__name__ == ast.unparse(member.annotation), where
                continue
            assert isinstance(member, ast.FunctionDef)
            if name in CONSTRUCTORS:
                assert real_parameters(kind) == stub_parameters(member), where
            elif "property" in decorators(member):
                assert inspect.isgetsetdescriptor(real), where
            # Slots of the interpreter such as `__len__` have its names for their parameters.
            elif name not in ONLY_IN_STUB and not isinstance(real, WrapperDescriptorType):
                assert isinstance(real, staticmethod) == ("staticmethod" in decorators(member)), where
                assert real_parameters(getattr(kind, name)) == stub_parameters(member), where
            compared += 1
    assert compared > 150
