"""The counts of a column, turned into whole numbers or refused.

A message names the column, the row and the rule; it never quotes what the row holds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers, Mask, freeze
from tallyveil.errors import TableError
from tallyveil.tables.labels import fill_empty, normal_label, view_numbers
from tallyveil.tables.source import Source

if TYPE_CHECKING:
    from tallyveil.tables.table import CountArray, Table

LARGEST = 2**62
"""Larger counts are cut to this; every upper bound lies far below it."""

WIDEST: Mapping[str, Any] = {"u": np.uint64, "i": np.int64, "f": np.float64}
"""The widest type of each kind of number."""

SAFE_DIGITS = 18
"""A number of at most this many digits is below `LARGEST`."""

NOT_PLAIN = "^0.|[^0-9]"
"""Text that is not the digits of a number alone."""

UNCLEAR = r"^[0-9]+\.000$"
"""Text that is thousands in one country and decimals in another."""

DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\b")
SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2019": "'"})

MISSING = frozenset(("", "na", "nan", "n/a", "<na>", "nat", "null", "none", "-", "."))
"""What programs write for a missing value, in small letters."""

HINTS = {
    "text": " A code for a missing count is declared with 'source.na_values', a separator of "
    "thousands with 'source.thousands'; a row that is no row of the table is left out with "
    "'source.skipfooter' or 'source.comment'.",
    "a fraction in text": " A separator of thousands is declared with 'source.thousands'.",
    "three zeros behind a point": " If these are thousands, set source.thousands='.' and "
    "source.decimal=','; if they are decimals, set source.thousands=','.",
    "no value": " If it is public which counts are missing, declare the code with "
    "'source.na_values'.",
}
"""Advice, by what a row holds."""


class RowError(TableError):
    """A row that holds no count; the message has its number and column, never its content."""

    def __init__(self, column: str, row: int, what: str) -> None:
        self.column, self.row, self.what = column, row, what
        super().__init__(self.describe(f"Row {row}"))

    def describe(self, which: str) -> str:
        """Describe the error of a row."""
        return (
            f"{which} of count column {self.column!r} has {self.what}; counts must be whole "
            f"numbers of at least 0.{HINTS.get(self.what, '')}"
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
        """Return the counts, with 0 in all other rows."""
        return ColumnCounts(freeze(self.values * rows), self.above)

    def cut(self, bounds: CountArray) -> ColumnCounts:
        """Return the counts, each top-coded at the bound of its row."""
        values = np.minimum(self.values, bounds).astype(self.values.dtype)
        beyond = int(np.count_nonzero(self.values > bounds))
        return ColumnCounts(freeze(values), max(self.above, beyond))


def clip_counts(counts: Integers, upper: int) -> ColumnCounts:
    """Top-code counts at `upper`, in the smallest type that holds it.

    >>> clip_counts(np.array([3, 300]), 9).values.tolist()
    [3, 9]
    """
    compact = np.minimum(counts, upper).astype(np.min_scalar_type(upper))
    return ColumnCounts(freeze(compact), int((counts > upper).sum()))


def read_counts(table: Table, name: str, upper: int) -> ColumnCounts:
    """Read a column of counts, top-coded at `upper`, in batches.

    Takes O(rows) time, one compact array and one batch of memory. A row without a count raises a
    `RowError` that numbers it in the whole table.

    >>> from tallyveil.tables.read import read_table
    >>> read_counts(read_table([3, 0, 12]), "count", 9)
    ColumnCounts(values=array([3, 0, 9], dtype=uint8), above=1)
    """
    return read_plain_counts(table, name, upper)[0]


def read_plain_counts(table: Table, name: str, upper: int) -> tuple[ColumnCounts, bool]:
    """Read a column of counts, and say whether text holds them as their digits alone."""
    import pyarrow as pa
    import pyarrow.compute as pc

    bound = min(upper, LARGEST)
    values = np.empty(table.rows, dtype=np.min_scalar_type(upper))
    above = start = 0
    is_plain = True
    for counts, column in table.scan_counts(name):
        stop = start + len(counts)
        np.minimum(counts, bound, out=values[start:stop], casting="unsafe")
        above += int(np.count_nonzero(counts > bound))
        start = stop
        if pa.types.is_string(column.type):
            is_plain &= not pc.any(pc.match_substring_regex(column, NOT_PLAIN)).as_py()
    return ColumnCounts(freeze(values), above), is_plain


def convert_column(column: Any, name: str, options: Source) -> Integers:
    """Convert an Arrow array of plain type to counts, cut to `LARGEST`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    require_numeric(kind, name)
    if pa.types.is_string(kind):
        if _is_digits(column):
            return view_numbers(column.cast(pa.int64()))
        texts = pc.utf8_trim_whitespace(fill_empty(column))
        if options.marks_numbers:
            return convert_text([plain_number(cell, options) for cell in texts.to_pylist()], name)
        unclear = pc.match_substring_regex(texts, UNCLEAR).cast(pa.uint8())
        _require_none(view_numbers(unclear).view(bool), name, "three zeros behind a point")
        trimmed = pc.replace_substring_regex(texts, r"\.0*$", "")
        if _is_digits(trimmed):
            return view_numbers(trimmed.cast(pa.int64()))
        return convert_text(texts.to_pylist(), name)
    if pa.types.is_decimal(kind):
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid:  # a fraction, or too large; beyond 2^53, doubles are not exact
            column = column.cast(pa.float64())
    missing = None
    if column.null_count:
        missing = view_numbers(column.is_null().cast(pa.uint8())).view(bool)
        column = column.fill_null(0)
    return convert_numbers(view_numbers(column), name, missing)


def require_numeric(kind: Any, name: str) -> None:
    """Refuse a column of a plain type that holds no numbers; text may."""
    import pyarrow as pa

    words = "true and false" if pa.types.is_boolean(kind) else "dates or times"
    if pa.types.is_boolean(kind) or pa.types.is_temporal(kind):
        raise TableError(f"Column {name!r} must hold whole numbers; it holds {words}.")


def _is_digits(texts: Any) -> bool:
    """Return whether every text is a number of few digits and nothing else."""
    import pyarrow.compute as pc

    is_short = (pc.max(pc.binary_length(texts)).as_py() or 0) <= SAFE_DIGITS
    return is_short and not texts.null_count and bool(pc.all(pc.ascii_is_decimal(texts)).as_py())


def plain_number(cell: str, options: Source) -> str:
    """Write a number without separators and with a decimal point; return other text unchanged.

    Separators must be where thousands end: 1,5 is not read as 15.

    >>> german = Source(thousands=".", decimal=",")
    >>> plain_number("1.234.567,0", german), plain_number("1.5", german)
    ('1234567.0', '1.5')
    """
    text = cell.strip().translate(SPACES)
    head, mark, tail = text.partition(options.decimal)
    separator = (options.thousands or "").translate(SPACES)
    if separator and separator in head:
        if not re.fullmatch(rf"[+-]?\d{{1,3}}({re.escape(separator)}\d{{3}})+", head):
            return cell
        head = head.replace(separator, "")
    return head + ("." + tail if mark else "")


def leave_out_missing(
    table: Table, names: Sequence[str], codes: Sequence[str]
) -> tuple[Table, int]:
    """Leave out every row with one of these codes in one of these columns, and count them.

    Which rows these are is not protected: their owner declares it public.
    """
    stays, normal = np.ones(table.rows, dtype=bool), set(map(normal_label, codes))
    for name in names:
        column = table.codes(name)
        is_code = np.array([normal_label(label) in normal for label in column.labels], dtype=bool)
        stays &= ~is_code[column.codes]
    missing = int((~stays).sum())
    return (table.leave_out(stays) if missing else table), missing


def convert_text(values: Sequence[str], column: str) -> Integers:
    """Convert text to counts, cut to `LARGEST`: digits, with nothing but zeros after a point.

    >>> convert_text(["3", " 0 ", "12.0"], "cases").tolist()
    [3, 0, 12]
    """
    counts = np.empty(len(values), dtype=np.int64)
    for row, cell in enumerate(map(str.strip, values)):
        head, _, tail = cell.partition(".")
        if not (head.isascii() and head.isdigit() and not tail.strip("0")):
            raise RowError(column, row + 1, _describe_text(cell))
        counts[row] = int(min(Decimal(head), Decimal(LARGEST)))  # unlike int, of any length
    return counts


def convert_numbers(values: NDArray[Any], column: str, missing: Mask | None = None) -> Integers:
    """Convert a numeric array to counts, cut to `LARGEST`; no row may be `missing`."""
    if missing is not None:
        _require_none(missing, column, "no value")
    is_float = values.dtype.kind == "f"
    if is_float:
        _require_none(~np.isfinite(values), column, "no finite number")
    _require_none(values < 0, column, "a negative number")
    if is_float:
        _require_none(values != np.floor(values), column, "a fraction")
    counts: Integers = np.minimum(values, WIDEST[values.dtype.kind](LARGEST)).astype(np.int64)
    return counts


def _describe_text(cell: str) -> str:
    """Describe a cell that is not a count."""
    word = cell.lower()
    if word in MISSING:
        return "no value"
    try:
        number = float(cell)
    except ValueError:
        is_truth = word in ("true", "false")
        what = "a date" if DAY.match(cell) else "text"
        return "something other than a number" if is_truth else what
    if not math.isfinite(number):
        return "no finite number"
    if number < 0:
        return "a negative number"
    return "a fraction in text" if number != int(number) else "a number that is not in plain digits"


def _require_none(broken: Mask, column: str, what: str) -> None:
    """Raise a `RowError` about the first row that is `broken`."""
    if broken.any():
        raise RowError(column, int(broken.argmax()) + 1, what)
