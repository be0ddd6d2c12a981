"""How a table of the command line's JSON must look in the dashboard: the same values, written as people read them."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))
SIZES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
#: Rows that are drawn before a person asks for more.
DRAWN = 200


def fixed(value: float, digits: int) -> str:
    """As JavaScript's toFixed writes it: of two that are equally near, the larger."""
    return str(Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def scaled(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    """With the largest unit it has one of."""
    for factor, name in steps:
        if factor == 1 and float(value).is_integer():
            return f"{int(value)} {name}"
        if abs(value) >= factor:
            return f"{fixed(value / factor, 1 if abs(value) / factor >= 100 else 3)} {name}"
    return f"{value} {steps[-1][1]}"


def shown(value: Any, unit: str) -> str:
    """A value of a column with this unit."""
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, str):
        return value.strip()
    if unit == "ns":
        return scaled(value, TIMES)
    if unit == "bytes":
        return scaled(value, SIZES)
    if unit == "percent":
        return f"{fixed(value, 2)} %"
    if unit == "count":
        return f"{value:,}".replace(",", " ")
    return str(int(value)) if float(value).is_integer() else fixed(value, 3)


def expected(table: dict[str, Any], rows: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Keys and cells of the command line's rows in the columns that the server sends."""
    columns = [(column["key"], column["unit"]) for column in table["columns"]]
    cells = [[shown(row[key], unit) for key, unit in columns] for row in rows[:DRAWN]]
    return [key for key, _ in columns], cells
