"""What the rest of the package knows of a table, and what its engines share."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers
from tallyveil.errors import ArgumentError, TableError
from tallyveil.tables.codes import Codes
from tallyveil.tables.text_column import TextColumn

__all__ = [
    "BATCH_ROWS",
    "TABLE_KINDS",
    "CountArray",
    "Order",
    "Table",
    "UnheldError",
    "encode_file",
    "read_signed",
    "write_text",
]

TABLE_KINDS = (
    "csv",
    "tsv",
    "parquet",
    "arrow",
    "xlsx",
    "dta",
    "sav",
    "xpt",
    "pandas",
    "polars",
    "array",
)
"""What a table can be."""

SIGNED = re.compile(r"0|-?[1-9][0-9]{0,17}")
BATCH_ROWS = 65_536
"""How many rows a batch has unless told otherwise."""

CountArray: TypeAlias = NDArray[np.integer[Any]]
"""Counts of any integer type, compact or not."""

Order: TypeAlias = Integers | None
"""Row numbers in the order in which rows are wanted, or None for the order they have."""


class UnheldError(TableError):
    """Said by a writer whose format cannot hold a table, and that does not know which column."""


class Table(Protocol):
    """A table, whatever library holds it; it leaves as the kind it came in as.

    Everything outside this package sees columns, counts and labels, and never a library. A
    name is that of a column or, for labels, also of an index level.
    """

    def __getstate__(self) -> dict[str, Any]:
        """Copy the table, and nothing that was worked out from it: how it was read might show."""
        kept = vars(self).items()
        return {
            name: value
            for name, value in kept
            if not isinstance(getattr(type(self), name, None), cached_property)
        }

    @property
    def kind(self) -> str:
        """What the table is, one of `TABLE_KINDS`."""

    @property
    def extension(self) -> str:
        """The ending of the file that `to_bytes` fills, without a point."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in order."""

    @property
    def index_names(self) -> tuple[str, ...]:
        """Labels beside the columns that name a row (a pandas index), if any."""
        return ()

    @property
    def rows(self) -> int:
        """How many rows there are."""

    def slice(self, start: int, stop: int) -> Table:
        """Give the rows `start` to `stop`, the last one left out, as a table of this kind."""

    def batches(self, size: int = BATCH_ROWS) -> Iterator[Table]:
        """Give the table in pieces of `size` consecutive rows, the same ones at every call."""
        if size < 1:
            raise ArgumentError("size", "be at least 1", size)
        return (self.slice(start, start + size) for start in range(0, self.rows, size))

    def counts(self, name: str) -> Integers:
        """Read a column as counts of at least 0, all at once, those above 2^62 cut to it.

        A row without a count raises a `RowError`. `read_counts` reads in batches.
        """

    def codes(self, name: str) -> Codes:
        """Encode the labels of a column or index level; only what occurs has a code."""

    def labels(self, name: str) -> Sequence[str]:
        """Give the text of each row by which categories are compared, empty for no value."""
        return self.codes(name).spread()

    def type_of(self, name: str) -> str:
        """Give the Frictionless type of a column, such as integer or string."""

    def build_released(
        self, counts: Mapping[str, CountArray], keep: Sequence[str], order: Order = None
    ) -> Table:
        """Build the published table: the columns `keep`, with released counts as int64.

        Counts of a name that is not in `keep` become new columns, after the others. Counts
        stand in the row order of this table, the result in `order`. Whatever could tell of
        rows or columns that are not published (unused levels, metadata, old row numbers) is
        left out.
        """

    def build_grouped(
        self, by: Sequence[str], labels: Sequence[tuple[Any, ...]], counts: Mapping[str, CountArray]
    ) -> Table:
        """Build a table of the same kind with one row for each public category.

        It has the columns `by`, of the types of the labels, and the counts. Nothing of this table
        goes along: the type of a column may tell of a row, such as one without a value.
        """

    def native(self) -> Any:
        """Give the table as the kind that came in; a text file gives a pyarrow table."""

    def to_bytes(self) -> bytes:
        """Write the table as a file; equal tables give equal bytes."""

    def largest_size(self) -> int:
        """Give at least as many bytes as the file takes, whatever its counts turn out to be."""
        return len(self.to_bytes())

    def write(self, file: IO[bytes]) -> None:
        """Write the same bytes to a file that is open; in pieces where the table is in a file."""
        file.write(self.to_bytes())

    def reopen(self, path: Path) -> Table:
        """Give the table after it was written to `path`: the one there if it is not in memory."""
        return self

    def select(self, names: Sequence[str]) -> Table:
        """Give a table with at least these columns, for one pass over them."""
        return self

    def hash_labels(self, names: Sequence[str]) -> NDArray[np.uint64] | None:
        """Hash the labels of every row; None where they can only be compared as `codes`.

        Rows with the same labels have the same hash, in every batch of one run of the program.
        """
        return None

    def text(self, name: str) -> TextColumn | None:
        """Give a column of text as bytes, in UTF-8 unless the table has another encoding.

        None where a column holds no text, or is held in another way.
        """
        return None


def write_text(
    names: Sequence[str],
    columns: Sequence[Iterable[Any]],
    delimiter: str = ",",
    line_end: str = "\n",
) -> str:
    """Write columns as text; cells that hold the end of a line of any kind are quoted.

    Python quotes the marks of its own line end alone.

    >>> write_text(["a", "b"], [["x\\ry"], [1]])
    'a,b\\n"x\\ry",1\\n'
    """
    buffer = io.StringIO(newline="")
    _write_rows(csv.writer(buffer, delimiter=delimiter, lineterminator=line_end), names, columns)
    text = buffer.getvalue()
    if not any(mark in text for mark in "\r\n" if mark not in line_end):
        return text
    both, lines = "\r\n", _Lines()
    _write_rows(csv.writer(lines, delimiter=delimiter, lineterminator=both), names, columns)
    return "".join(line.removesuffix(both) + line_end for line in lines)


def _write_rows(writer: Any, names: Sequence[str], columns: Sequence[Iterable[Any]]) -> None:
    writer.writerow(names)
    writer.writerows(zip(*columns, strict=True))


class _Lines(list[str]):
    """What a writer writes, row by row."""

    write = list.append


def encode_file(text: str, encoding: str = "utf-8") -> bytes:
    """Encode the text of a published file; an `UnheldError` if a character has no bytes in it."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        cure = "Correct it" if encoding.startswith("utf") else "Convert the table to UTF-8"
        raise UnheldError(
            "A name or label that is to be published has a character that cannot be written as "
            f"{encoding}. {cure} first."
        ) from None


def read_signed(table: Table, name: str) -> Integers:
    """Read a released column of whole numbers of any sign, written in their one form."""
    codes = table.codes(name)
    labels = codes.labels
    if getattr(table, "holds_doubles", False):  # files of statistics programs have no others
        labels = [label.removesuffix(".0") for label in labels]
    if not all(SIGNED.fullmatch(label) for label in labels):
        raise TableError(f"Column {name!r} must hold a whole number in every row.")
    return np.array([int(label) for label in labels], dtype=np.int64)[codes.codes]
