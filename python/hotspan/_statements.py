"""Which lines belong to one statement: a call written over five lines is one thing that happens."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from types import CodeType

from hotspan._code import line_range


def statement_starts(code: CodeType) -> list[int]:
    """Return, for each line of a code object, the line its statement begins at; nothing where all are their own."""
    first, last = line_range(code)
    starts = _starts_of_file(code.co_filename)
    mapped = [starts.get(line, line) for line in range(first, last + 1)]
    # A start above the function would be a line that is not in its table.
    if any(start < first for start in mapped) or mapped == list(range(first, last + 1)):
        return []
    return mapped


_FILES: dict[str, dict[int, int]] = {}


def _starts_of_file(filename: str) -> dict[int, int]:
    if filename not in _FILES:
        source = "".join(linecache.getlines(filename))
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            # Lines then count as they are.
            _FILES[filename] = {}
        else:
            _FILES[filename] = {
                line: first for first, last in _ranges(tree) for line in range(first + 1, last + 1)
            }
    return _FILES[filename]


def _ranges(tree: ast.AST) -> Iterator[tuple[int, int]]:
    """First and last lines of statements of several lines; of those with a body, what stands before it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            parts = _header(node)
            first = getattr(node, "lineno", None) or min((part.lineno for part in parts), default=0)
            last = max((part.end_lineno or part.lineno for part in parts), default=first)
            if last > first > 0:
                yield first, last


def _header(node: ast.AST) -> list[ast.expr | ast.stmt | ast.pattern]:
    """What runs when a statement begins: all of a simple one, the head of one with a body."""
    match node:
        case ast.If() | ast.While():
            return [node.test]
        case ast.For() | ast.AsyncFor():
            return [node.target, node.iter]
        case ast.With() | ast.AsyncWith():
            return [
                expression
                for item in node.items
                for expression in (item.context_expr, item.optional_vars)
                if expression
            ]
        case ast.Match():
            return [node.subject]
        case ast.match_case():
            return [node.pattern, *([node.guard] if node.guard else [])]
        case ast.ExceptHandler():
            return [node.type] if node.type else []
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return [*node.args.defaults, *(default for default in node.args.kw_defaults if default)]
        case ast.ClassDef():
            return [*node.bases, *(keyword.value for keyword in node.keywords)]
        case ast.stmt() if not hasattr(node, "body"):
            return [node]
    return []
