"""How a table of the command line's JSON must look in the dashboard: the same values, written as people read them."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))
SIZES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
LARGE = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"))
#: Columns of points in time, which are written to the nanosecond.
MOMENTS = ("at", "begin", "allocated_at", "released_at")
#: Why a device is idle: the names that programs use, and what people call it.
CAUSES = {
    "host_late": "Host too slow to launch",
    "synchronise": "Synchronising call",
    "data_loader": "DataLoader",
    "copy": "Copy",
    "communication": "Communication call",
    "allocator": "Allocator",
    "dispatch": "Launched, not started",
    "unknown": "Unknown",
}
#: Rows that are drawn before a person asks for more.
DRAWN = 200


def fixed(value: float, digits: int) -> str:
    """As JavaScript's toFixed writes it: of two that are equally near, the larger."""
    return str(Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def digits(value: float, most: int = 2) -> str:
    """Three digits that count, and no more decimals than these."""
    decimals, limit = 0, 99.95
    while decimals < most and abs(value) < limit:
        decimals, limit = decimals + 1, limit / 10
    return fixed(value, decimals) if value else "0"


def scaled(value: float, steps: tuple[tuple[float, str], ...], step: int) -> str:
    """With the largest unit it has one of, rounded."""
    for factor, name in steps[:-1]:
        if abs(value) >= factor * (1 - 0.5 / step):
            return f"{digits(value / factor)} {name}"
    return f"{int(value) if float(value).is_integer() else digits(value)} {steps[-1][1]}"


def plain(value: float) -> str:
    """A number that counts nothing in particular."""
    if float(value).is_integer() and abs(value) < 1e6:
        return str(int(value))
    for factor, name in LARGE:
        if abs(value) >= factor:
            return f"{digits(value / factor)} {name}"
    return digits(value, 6)


def moment(nanoseconds: int) -> str:
    """A point in time, to the nanosecond."""
    places = {1e9: 9, 1e6: 6, 1e3: 3, 1: 0}
    factor, name = next(((factor, name) for factor, name in TIMES if abs(nanoseconds) >= factor), TIMES[-1])
    return f"{fixed(nanoseconds / factor, places[factor])} {name}"


def shown(value: Any, unit: str) -> str:
    """A value of a column with this unit."""
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, str):
        return value.strip()
    if unit == "ns":
        return scaled(value, TIMES, 1000)
    if unit == "bytes":
        return scaled(value, SIZES, 1024)
    if unit == "percent":
        return f"{digits(value)} %"
    if unit == "count":
        return f"{value:,}".replace(",", " ")
    return str(value) if unit == "ordinal" else plain(value)


def cell(key: str, value: Any, unit: str) -> str:
    """A value of the column of this key."""
    if key == "cause":
        return CAUSES[value]
    return moment(value) if key in MOMENTS and isinstance(value, int) else shown(value, unit)


def expected(table: dict[str, Any], rows: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Keys and cells of the command line's rows in the columns that the server sends."""
    columns = [(column["key"], column["unit"]) for column in table["columns"]]
    cells = [[cell(key, row[key], unit) for key, unit in columns] for row in rows[:DRAWN]]
    return [key for key, _ in columns], cells
