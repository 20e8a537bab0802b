"""Counts as they stand in a column, turned into whole numbers or refused in words.

A message names the column, the row and the rule; it never quotes what the row holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers, Mask, freeze
from tallyveil.errors import TableError
from tallyveil.tables.base import CountArray, Table

__all__ = [
    "ColumnCounts",
    "RowError",
    "clip_counts",
    "convert_numbers",
    "convert_objects",
    "convert_text",
    "name_type",
    "read_counts",
    "read_plain_counts",
]

LARGEST = 2**62
"""Larger counts are cut to this; every upper bound lies far below it."""

SAFE_DIGITS = 18
"""A number of at most this many digits is below `LARGEST`."""

LARGEST_EXACT = 2**53
"""Whole numbers up to this are held exactly in floating point."""

MISSING = frozenset(("", "na", "nan", "n/a", "<na>", "nat", "null", "none", "-", "."))
"""What programs write for a missing value, in small letters."""

HINTS = {
    "text": " A code for a missing count is declared with --missing, a separator of thousands with "
    "--thousands; a row that is no row of the table is left out with --skip-footer or --comment. "
    "A numeric column of PostgreSQL is cast in the query, as in sum(cases)::bigint.",
    "no value": " If it is public that this count is missing, --missing leaves such rows out.",
}
"""What would work, by what a row holds."""


class RowError(TableError):
    """A row that holds no count: says which row of which column, never what it holds."""

    def __init__(self, column: str, row: int, what: str) -> None:
        self.column, self.row, self.what = column, row, what
        super().__init__(self.describe(f"Row {row}"))

    def describe(self, which: str) -> str:
        """Say what is wrong with some row."""
        return (
            f"Column {self.column!r} must hold a whole number of at least 0 in every row. "
            f"{which} holds {self.what}.{HINTS.get(self.what, '')}"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.column, self.row, self.what)


@dataclass(frozen=True, eq=False)
class ColumnCounts:
    """A column of confidential counts in one compact array, and how many were above the bound.

    `values` is read-only, cut to the upper bound, of the smallest unsigned type that holds it.
    """

    values: CountArray
    above: int

    def collect(self, places: Integers, size: int, upper: int) -> ColumnCounts:
        """Add up the counts of the rows at each of `size` places, and cut the sums to 0..upper.

        Cutting before and after gives what cutting the sums alone does.
        """
        sums = np.zeros(size, dtype=np.int64)
        np.add.at(sums, places, self.values)
        cut = clip_counts(sums, upper)
        return ColumnCounts(cut.values, max(cut.above, self.above))

    def keep_only(self, rows: Mask) -> ColumnCounts:
        """The same with a count of 0 in all other rows."""
        return ColumnCounts(freeze(self.values * rows), self.above)

    def cut(self, bounds: CountArray) -> ColumnCounts:
        """The same with no count above its row's own bound."""
        values = np.minimum(self.values, bounds).astype(self.values.dtype)
        beyond = int(np.count_nonzero(self.values > bounds))
        return ColumnCounts(freeze(values), max(self.above, beyond))


def clip_counts(counts: Integers, upper: int) -> ColumnCounts:
    """Cut counts that are whole numbers already to 0..upper.

    >>> clip_counts(np.array([3, 300]), 9).values.tolist()
    [3, 9]
    """
    compact = np.minimum(counts, upper).astype(np.min_scalar_type(upper))
    return ColumnCounts(freeze(compact), int((counts > upper).sum()))


def read_counts(table: Table, name: str, upper: int) -> ColumnCounts:
    """Read a column of counts, cut to 0..upper, in batches.

    Takes O(rows) time, one compact array and one batch of memory. A row without a count raises a
    `RowError` that numbers it in the whole table.

    >>> from tallyveil.tables.source import read_table
    >>> read_counts(read_table([3, 0, 12]), "count", 9)
    ColumnCounts(values=array([3, 0, 9], dtype=uint8), above=1)
    """
    return _read(table, name, upper)[0]


def read_plain_counts(table: Table, name: str, upper: int) -> tuple[ColumnCounts, bool]:
    """Read a column of counts, and say whether text holds them as their digits alone.

    >>> from tallyveil.tables.delimited import read_delimited
    >>> read_plain_counts(read_delimited(b"n\\n7\\n"), "n", 9)[1]
    True
    >>> read_plain_counts(read_delimited(b"n\\n07\\n"), "n", 9)[1]
    False
    """
    is_text = table.extension.partition(".")[0] in ("csv", "tsv")
    found, written = _read(table, name, upper, measure=is_text)
    most = len(str(int(found.values.max(initial=0))))
    longer = (int(np.count_nonzero(found.values >= 10**digits)) for digits in range(1, most))
    return found, not is_text or written == len(found.values) + sum(longer)


def _read(table: Table, name: str, upper: int, measure: bool = False) -> tuple[ColumnCounts, int]:
    """Counts cut to 0..upper, and how many bytes their text has, if it is measured."""
    bound = min(upper, LARGEST)
    values = np.empty(table.rows, dtype=np.min_scalar_type(upper))
    above = start = written = 0
    for batch in table.select([name]).batches():
        try:
            counts = batch.counts(name)
        except RowError as error:
            raise RowError(name, start + error.row, error.what) from None
        stop = start + len(counts)
        np.minimum(counts, bound, out=values[start:stop], casting="unsafe")
        above += int(np.count_nonzero(counts > bound))
        start = stop
        if measure:
            cells = batch.text(name)
            labels = batch.labels(name) if cells is None else ()
            written += sum(map(len, labels)) if cells is None else int(cells.lengths.sum())
    return ColumnCounts(freeze(values), above), written


def convert_text(values: Sequence[str], column: str) -> Integers:
    """Convert text to counts, cut to `LARGEST`: digits, with nothing but zeros after a point.

    >>> convert_text(["3", " 0 ", "12.0"], "cases").tolist()
    [3, 0, 12]
    """
    cells = list(map(str.strip, values))
    joined = "".join(cells)
    if joined.isascii() and joined.isdigit() and all(cells):
        if max(map(len, cells)) <= SAFE_DIGITS:
            return np.fromiter(map(int, cells), np.int64, len(cells))
        return np.fromiter(map(_read_digits, cells), np.int64, len(cells))
    counts = np.empty(len(cells), dtype=np.int64)
    for row, cell in enumerate(cells):
        head, _, tail = cell.partition(".")
        if not (head.isascii() and head.isdigit() and not tail.strip("0")):
            raise RowError(column, row + 1, _describe_text(cell))
        counts[row] = _read_digits(head)
    return counts


def convert_numbers(values: NDArray[Any], column: str, missing: Mask | None = None) -> Integers:
    """Convert a numeric array to counts, cut to `LARGEST`; no row may be `missing`."""
    if missing is not None:
        _require_none(missing, column, "no value")
    if values.dtype.kind == "u":
        small: Integers = np.minimum(values, np.uint64(LARGEST)).astype(np.int64)
        return small
    if values.dtype.kind == "i":
        _require_none(values < 0, column, "a negative number")
        whole: Integers = np.minimum(values, np.int64(LARGEST))
        return whole
    if values.dtype.kind != "f":
        raise TableError(
            f"Column {column!r} must hold whole numbers; it holds {_describe_type(values)}."
        )
    _require_none(~np.isfinite(values), column, "no finite number")
    _require_none(values < 0, column, "a negative number")
    _require_none(values != np.floor(values), column, "a fraction")
    counts: Integers = np.minimum(values, np.float64(LARGEST)).astype(np.int64)
    return counts


def convert_objects(values: Sequence[Any], column: str) -> Integers:
    """Convert the cells of a column of mixed type to counts, cut to `LARGEST`; None is no value."""
    quick = _convert_plain(values)
    if quick is not None:
        return quick
    counts = np.empty(len(values), dtype=np.int64)
    for row, value in enumerate(values):
        what = _describe_object(value)
        if what:
            raise RowError(column, row + 1, what)
        counts[row] = min(int(value), LARGEST)
    return counts


def name_type(letter: str) -> str:
    """Name the Frictionless type that fits a NumPy kind letter.

    >>> name_type("u")
    'integer'
    """
    return {"i": "integer", "u": "integer", "f": "number", "b": "boolean", "M": "datetime"}.get(
        letter, "string"
    )


def _convert_plain(values: Sequence[Any]) -> Integers | None:
    """Convert ints and floats at once; None if there is anything else or a bad or large one."""
    kinds = set(map(type, values))
    if kinds == {int} and min(values) >= 0 and max(values) <= LARGEST:
        return np.fromiter(values, np.int64, len(values))
    if not kinds or not kinds <= {int, float}:
        return None
    try:
        numbers = np.fromiter(values, np.float64, len(values))
    except OverflowError:
        return None
    exact = (numbers >= 0) & (numbers <= LARGEST_EXACT) & (numbers == np.floor(numbers))
    return numbers.astype(np.int64) if exact.all() else None


def _describe_object(value: Any) -> str:
    """Say why `value` is not a count; nothing if it is one."""
    is_real = isinstance(value, Real) and not isinstance(value, Integral)
    if value is None or (is_real and math.isnan(value)):
        return "no value"
    if isinstance(value, str):
        return "text"
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__int__"):
        return "something other than a number"
    if not isinstance(value, Integral):
        if not math.isfinite(value):
            return "no finite number"
        if value != int(value):
            return "a fraction"
    return "a negative number" if value < 0 else ""


def _describe_text(cell: str) -> str:
    """Say why a cell that is not a count is not one."""
    if cell.lower() in MISSING:
        return "no value"
    try:
        number = float(cell)
    except ValueError:
        return "text"
    if not math.isfinite(number):
        return "no finite number"
    if number < 0:
        return "a negative number"
    return "a fraction" if number != int(number) else "a number that is not in plain digits"


def _describe_type(values: NDArray[Any]) -> str:
    return {"b": "true and false", "O": "text", "U": "text", "M": "dates"}.get(
        values.dtype.kind, "no numbers"
    )


def _read_digits(digits: str) -> int:
    """Read a number of any length, cut to `LARGEST`."""
    significant = digits.lstrip("0")
    return LARGEST if len(significant) > 19 else min(int(significant or "0"), LARGEST)


def _require_none(broken: Mask, column: str, what: str) -> None:
    """Raise a `RowError` about the first row that is `broken`."""
    if broken.any():
        raise RowError(column, int(broken.argmax()) + 1, what)
