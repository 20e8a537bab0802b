"""Tables whose cells are plain Python values: what spreadsheets and statistics programs hold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.errors import TableError
from tallyveil.tables.base import CountArray, Order, Table
from tallyveil.tables.codes import Codes, encode_objects
from tallyveil.tables.counts import RowError, convert_objects, convert_text

__all__ = ["CellsTable", "Unreadable"]

Cells: TypeAlias = tuple[Any, ...]

PROBED = 50
"""A cell takes at most this many bytes beside its text, in any format that is written."""


@dataclass(frozen=True)
class Unreadable:
    """Stands in a cell that must not be read as it is; says what it holds and what to do."""

    what: str
    hint: str


@dataclass(frozen=True, eq=False)
class CellsTable(Table):
    """Columns of whole numbers, numbers, text, dates, true and false; None is no value."""

    names: tuple[str, ...] = ()
    columns: tuple[Cells, ...] = ((),)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.columns[0])

    def slice(self, start: int, stop: int) -> CellsTable:
        """Give the rows `start` to `stop`; cells are shared, not copied."""
        return replace(self, columns=tuple(column[start:stop] for column in self.columns))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.names)}

    def cells(self, name: str) -> Cells:
        """Give the cells of a column; one that must not be read is a `TableError`."""
        column = self.columns[self._places[name]]
        for row, cell in enumerate(column, start=1):
            if isinstance(cell, Unreadable):
                raise TableError(f"Row {row} of column {name!r} holds {cell.what}. {cell.hint}")
        return column

    def counts(self, name: str) -> Integers:
        """Read a column as counts; digits that are stored as text are counts too."""
        column = self.cells(name)
        for row, cell in enumerate(column, start=1):
            if isinstance(cell, (date, time, timedelta)):
                raise RowError(name, row, "a date or a time")
        if any(isinstance(cell, str) for cell in column):
            return convert_text([_write_plain(cell) for cell in column], name)
        return convert_objects(column, name)

    def codes(self, name: str) -> Codes:
        """Encode the labels of a column."""
        column = self.cells(name)
        return encode_objects(column, np.array([cell is None for cell in column], dtype=bool))

    def type_of(self, name: str) -> str:
        """Give the Frictionless type that every cell fits."""
        filled = [cell for cell in self.columns[self._places[name]] if cell is not None]
        kinds = {type(cell) for cell in filled}
        if not kinds or Unreadable in kinds:
            return "string"
        if kinds <= {bool}:
            return "boolean"
        if kinds <= {int, float}:
            whole = all(cell == int(cell) for cell in filled if math.isfinite(cell))
            return "integer" if whole and all(map(math.isfinite, filled)) else "number"
        if kinds <= {date, datetime}:
            return "date" if all(_is_day(cell) for cell in filled) else "datetime"
        return "string"

    def build_released(
        self, counts: Mapping[str, CountArray], keep: Sequence[str], order: Order = None
    ) -> CellsTable:
        """Build the table that is published; nothing of the file goes along but its cells."""
        columns = []
        names = (*keep, *(name for name in counts if name not in keep))
        for name in names:
            cells = tuple(counts[name].tolist()) if name in counts else self.cells(name)
            if order is not None:
                cells = tuple(map(cells.__getitem__, order.tolist()))
            columns.append(cells)
        return replace(self, names=names, columns=tuple(columns))

    def build_grouped(
        self, by: Sequence[str], labels: Sequence[tuple[Any, ...]], counts: Mapping[str, CountArray]
    ) -> CellsTable:
        """Build a table with one row for each category."""
        columns: list[Cells] = [tuple(label[at] for label in labels) for at in range(len(by))]
        columns += [tuple(values.tolist()) for values in counts.values()]
        return replace(self, names=(*by, *counts), columns=tuple(columns))

    def native(self) -> Any:
        """Give a pyarrow table; dates become text."""
        from tallyveil.tables.arrow import build_arrow

        known = ("integer", "number")
        types = {name: self.type_of(name) for name in self.names}
        types = {name: kind if kind in known else "string" for name, kind in types.items()}
        return build_arrow({name: self.texts(name) for name in self.names}, types)

    def texts(self, name: str) -> tuple[str, ...]:
        """Give the cells of a column as a text file writes them."""
        return tuple(map(_write_plain, self.cells(name)))

    def largest_size(self) -> int:
        """Give more bytes than any file of this table takes; what cannot be written fails now."""
        self.to_bytes()
        text = sum(len(cell.encode()) for name in self.names for cell in self.texts(name))
        cells = len(self.names) * (self.rows + 1)
        return 6 * text + 10 * sum(map(len, self.names)) + PROBED * cells + (1 << 16)


def _write_plain(cell: Any) -> str:
    """Write a cell as text: whole numbers without a point, days without a time."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and math.isfinite(cell) and cell == int(cell):
        return str(int(cell))
    if isinstance(cell, datetime):
        return cell.date().isoformat() if _is_day(cell) else cell.isoformat(sep=" ")
    return cell.isoformat() if isinstance(cell, (date, time)) else str(cell)


def _is_day(cell: date) -> bool:
    return not isinstance(cell, datetime) or cell.time() == time(0)
