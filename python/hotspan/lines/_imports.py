"""Watches what a program imports, at the moment it does: a call is put after its import statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from hotspan.lines import _watching

if TYPE_CHECKING:
    from hotspan._program import Program


def with_watched_imports(
    program: Program, wanted: list[str] | None, watch: Callable[[Any], None]
) -> CodeType | None:
    """Return the program's code, changed so that ``watch`` gets the things imported that are ``wanted``, or all."""
    source = _source(program)
    if source is None:
        return program.code
    package = (program.spec.parent or "") if program.spec is not None else ""
    tree = ast.parse(source)
    body: list[ast.stmt] = []
    for statement in tree.body:
        body.append(statement)
        for name, local in _imported(statement, package):
            if wanted is None or any(name == target or name.startswith(f"{target}.") for target in wanted):
                body += _call(local, statement)
    tree.body = body
    _watching.watch = watch
    return compile(tree, program.filename, "exec", dont_inherit=True)


def _source(program: Program) -> bytes | str | None:
    if program.kind == "code":
        return program.target
    if program.kind == "stdin":
        import linecache

        return "".join(linecache.getlines(program.filename))
    path = Path(program.filename)
    return path.read_bytes() if path.suffix in (".py", ".pyw", "") and path.is_file() else None


def _imported(statement: ast.stmt, package: str) -> Iterator[tuple[str, str]]:
    """The full names of what a statement imports, and what it calls them. A star says no names."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            yield alias.name, alias.asname or alias.name
    elif isinstance(statement, ast.ImportFrom):
        above = package.split(".")[: -(statement.level - 1) or None] if statement.level else []
        module = ".".join([*above, *([statement.module] if statement.module else [])])
        for alias in statement.names:
            # Nothing may stand between imports from the future.
            if alias.name != "*" and module != "__future__":
                yield f"{module}.{alias.name}", alias.asname or alias.name


def _call(local: str, after: ast.stmt) -> list[ast.stmt]:
    made = ast.parse(f"__import__('hotspan.lines._watching', fromlist=['watch']).watch({local})").body
    for node in [inner for statement in made for inner in ast.walk(statement)]:
        ast.copy_location(node, after)
    return made
