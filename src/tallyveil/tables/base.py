"""What the rest of the package knows of a table, and what its engines share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers
from tallyveil.errors import ArgumentError
from tallyveil.tables.codes import Codes

__all__ = ["BATCH_ROWS", "CountArray", "Engine", "Order", "Table"]

BATCH_ROWS = 65_536
"""How many rows a batch has unless told otherwise."""

CountArray: TypeAlias = NDArray[np.integer[Any]]
"""Counts of any integer type, compact or not."""

Order: TypeAlias = Integers | None
"""Row numbers in the order in which rows are wanted, or None for the order they have."""


class Table(Protocol):
    """What the rest of the package knows of a table.

    A table leaves as the kind it came in as. Everything outside this package sees columns,
    counts and labels, and never a library. A name is that of a column or of an index level.
    """

    @property
    def kind(self) -> str:
        """What the table is: csv, tsv, parquet, arrow, pandas, polars or array."""

    @property
    def extension(self) -> str:
        """The ending of the file that `to_bytes` fills, without a point."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in order."""

    @property
    def index_names(self) -> tuple[str, ...]:
        """Labels beside the columns that name a row (a pandas index), if any."""

    @property
    def rows(self) -> int:
        """How many rows there are."""

    def batches(self, size: int = BATCH_ROWS) -> Iterator[Table]:
        """Give the table in pieces of consecutive rows.

        Each call starts again at the first row and gives the same rows. A table in memory
        gives views of itself where its library allows.

        Parameters
        ----------
        size : int
            The number of rows of every piece but the last, at least 1.

        Returns
        -------
        iterator of Table
            Tables of the same kind; none for a table without rows.
        """

    def counts(self, name: str) -> Integers:
        """Read a column as counts, all at once; `read_counts` reads it in batches.

        Parameters
        ----------
        name : str
            A column.

        Returns
        -------
        array of int64, shape (rows,)
            The counts, at least 0; those above 2^62 are cut to it.

        Raises
        ------
        TableError
            If a row holds no count. Names the row, never what it holds.
        """

    def codes(self, name: str) -> Codes:
        """Encode the labels of a column or index level as integers.

        Parameters
        ----------
        name : str
            A column or an index level.

        Returns
        -------
        Codes
            A code for each row and the label of each code. Only what occurs has a code.
        """

    def labels(self, name: str) -> Sequence[str]:
        """Give the text of a column or index level by which categories are compared.

        Parameters
        ----------
        name : str
            A column or an index level.

        Returns
        -------
        sequence of str
            One label for each row; a row without a value has the empty label.
        """

    def type_of(self, name: str) -> str:
        """Give the Frictionless type of a column, such as integer or string."""

    def require_room(self, name: str, upper: int) -> None:
        """Raise a `TableError` unless the column's type can hold every count up to `upper`."""

    def released(
        self, counts: Mapping[str, CountArray], keep: Sequence[str], order: Order = None
    ) -> Table:
        """Build the table that is published.

        Whatever could tell of rows or columns that are not published (unused levels,
        metadata, old row numbers) is left out.

        Parameters
        ----------
        counts : mapping of str to array of int, shape (rows,)
            The released counts by column, in the row order of this table.
        keep : sequence of str
            The columns to publish, those of `counts` among them.
        order : array of int, shape (rows,), or None
            The rows in the order in which they are published.

        Returns
        -------
        Table
            A table of the same kind, each column of the type it had.
        """

    def grouped(
        self, by: Sequence[str], labels: Sequence[tuple[str, ...]], counts: Mapping[str, CountArray]
    ) -> Table:
        """Build a table of the same kind with one row for each category.

        Parameters
        ----------
        by : sequence of str
            The columns that the labels belong to.
        labels : sequence of tuple of str
            The public categories, one label for each column of `by`.
        counts : mapping of str to array of int, shape (categories,)
            The counts by column.

        Returns
        -------
        Table
            The columns `by`, of the type they have in this table, and the counts.
        """

    def native(self) -> Any:
        """Give the table as the kind that came in; a text file gives a pyarrow table."""

    def to_bytes(self) -> bytes:
        """Write the table as a file; equal tables give equal bytes."""


class Engine(ABC):
    """What the tables of all libraries share."""

    @property
    def index_names(self) -> tuple[str, ...]:
        """No labels beside the columns."""
        return ()

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def slice(self, start: int, stop: int) -> Table:
        """Give the rows `start` to `stop`, the last one left out, as a table of this kind."""

    @abstractmethod
    def codes(self, name: str) -> Codes:
        """Encode the labels of a column or index level as integers."""

    def labels(self, name: str) -> Sequence[str]:
        """Give the text of a column or index level by which categories are compared."""
        return self.codes(name).spread()

    def batches(self, size: int = BATCH_ROWS) -> Iterator[Table]:
        """Give the table in pieces of `size` consecutive rows."""
        if size < 1:
            raise ArgumentError("size", "be at least 1", size)
        return (self.slice(start, start + size) for start in range(0, self.rows, size))
