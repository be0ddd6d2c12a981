"""Rows: what lists of results consist of. The numbers come from Rust; here they get their names.

Times are whole nanoseconds and end in ``_ns``, sizes are whole bytes and end in ``bytes``, shares are percent.
"""

from __future__ import annotations

from keyword import iskeyword
from typing import Any, NamedTuple

from hotspan._notices import warn_deprecated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hotspan import _core


class Row:
    """One row of a table, with an attribute for each column; None where the trace does not say.

    The columns are those that the command line prints with ``--json``; a time gets ``_ns`` and a size ``_bytes`` at the
    end of its name, and a Python keyword an underscore (``from_``).
    """

    __slots__ = ("_names", "_values")
    _names: tuple[str, ...]
    _values: tuple[_core._Cell, ...]

    def __init__(self, names: tuple[str, ...], values: tuple[_core._Cell, ...]) -> None:
        object.__setattr__(self, "_names", names)
        object.__setattr__(self, "_values", values)

    def __getattr__(self, name: str) -> Any:
        if name not in self._names:
            raise AttributeError(f"this row has no {name!r}; it has {', '.join(self._names)}")
        return self._values[self._names.index(name)]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"rows cannot be changed: {name!r}")

    def _asdict(self) -> dict[str, _core._Cell]:
        """Return the row as a dict, for ``pandas.DataFrame`` and others."""
        return dict(zip(self._names, self._values, strict=True))

    def __getitem__(self, name: str) -> Any:
        found = next((column for column in _spellings(name) if column in self._names), None)
        if found is None:
            raise KeyError(name)
        warn_deprecated(f"row[{name!r}]", f"row.{found}", stacklevel=2)
        return getattr(self, found)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._names]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return NotImplemented
        return self._names == other._names and self._values == other._values

    def __hash__(self) -> int:
        return hash((self._names, self._values))

    def __reduce__(self) -> tuple[Any, ...]:
        return Row, (self._names, self._values)

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"


def _spellings(name: str) -> tuple[str, ...]:
    """What a column may be called that had this name when rows were dicts."""
    return name, f"{name}_ns", f"{name}_bytes", f"{name}_"


def rows_of(table: _core._Table) -> list[Row]:
    """Return the rows of a table."""
    columns, rows = table
    names = tuple(f"{name}_" if iskeyword(name) else name for name in columns)
    return [Row(names, values) for values in rows]


class CategoryTotal(NamedTuple):
    """The spans of one category."""

    spans: int
    total_ns: int


class Device(NamedTuple):
    """A device the trace was recorded on."""

    id: int
    name: str


class Kernel(NamedTuple):
    """One kernel, copy or fill by name; its occupancy in percent."""

    name: str
    calls: int
    total_ns: int
    min_ns: int
    max_ns: int
    blocks_per_sm: float | None
    occupancy: float | None
    tensor_cores: bool

    @property
    def total(self) -> float:
        """Microseconds in all; deprecated."""
        return _microseconds("total", self.total_ns)

    @property
    def min(self) -> float:
        """Microseconds of the shortest; deprecated."""
        return _microseconds("min", self.min_ns)

    @property
    def max(self) -> float:
        """Microseconds of the longest; deprecated."""
        return _microseconds("max", self.max_ns)


def _microseconds(name: str, nanoseconds: int) -> float:
    warn_deprecated(f"Kernel.{name} in microseconds", f"Kernel.{name}_ns in nanoseconds", stacklevel=3)
    return nanoseconds / 1000


class Step(NamedTuple):
    """A profiler step, which begins at ``start_ns`` from the start of the trace."""

    number: int
    start_ns: int
    duration_ns: int


class MemoryHolder(NamedTuple):
    """What one operator held when most memory was held."""

    operator: str
    bytes: int
    blocks: int
    category: str
    stack: list[str]


class MemoryHeld(NamedTuple):
    """How much memory is held from a moment on."""

    time_ns: int
    bytes: int


class MemoryTimeline(NamedTuple):
    """The memory of one device. What was there before counts where the trace tells of it.

    Categories are ``parameter``, ``optimizer_state``, ``input``, ``temporary``, ``activation``, ``gradient``,
    ``autograd_detail`` and ``unknown``. ``process`` is None unless several processes have memory of such a device.
    """

    device_type: int
    device_index: int
    held: list[MemoryHeld]
    peak_bytes: int
    peak_ns: int
    holders: list[MemoryHolder]
    peak_by_category: dict[str, int]
    process: int | None = None


class MemoryByCategory(NamedTuple):
    """Bytes of each category at each of the times; a value holds until the next."""

    times_ns: list[int]
    bytes: dict[str, list[int]]

    @property
    def times(self) -> list[int]:
        """The times; deprecated."""
        warn_deprecated("MemoryByCategory.times", "MemoryByCategory.times_ns", stacklevel=2)
        return self.times_ns
