"""Code objects: their names, their lines, and the functions in compiled source."""

from __future__ import annotations

from types import CodeType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# `inspect.CO_NEWLOCALS`; programs that `hotspan run` records need not pay for that module.
_NEW_LOCALS = 2


def code_name(code: CodeType) -> str:
    """The name of a function, with its class where Python knows it."""
    return str(getattr(code, "co_qualname", code.co_name))


def line_range(code: CodeType) -> tuple[int, int]:
    """Return the first and last line of a code object."""
    lines = [line for _, _, line in code.co_lines() if line]
    return code.co_firstlineno, max([code.co_firstlineno, *lines])


def codes_of_script(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of every function in compiled source: methods and inner functions too, no lambdas."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            is_function = bool(constant.co_flags & _NEW_LOCALS)
            if is_function and not constant.co_name.startswith("<"):
                yield constant
            yield from codes_of_script(constant)
