"""A table inside another: everything is the inner table's, but for what a subclass changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers
from tallyveil.tables.base import BATCH_ROWS, CountArray, Order, Table
from tallyveil.tables.codes import Codes

__all__ = ["WrappedTable"]


@dataclass(frozen=True, eq=False)
class WrappedTable(Table):
    """A table that hands everything on to the one inside; what is built is wrapped again."""

    inner: Table

    @property
    def kind(self) -> str:
        """What the inner table is."""
        return self.inner.kind

    @property
    def extension(self) -> str:
        """The ending of the inner table's file."""
        return self.inner.extension

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in order."""
        return self.inner.names

    @property
    def index_names(self) -> tuple[str, ...]:
        """Labels beside the columns that name a row, if any."""
        return self.inner.index_names

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.inner.rows

    @property
    def delimiter(self) -> str:
        """What separates cells, where that is a question."""
        return str(getattr(self.inner, "delimiter", ","))

    @property
    def encoding(self) -> str:
        """The encoding of a text file."""
        return str(getattr(self.inner, "encoding", "utf-8"))

    def slice(self, start: int, stop: int) -> Table:
        """Give the rows `start` to `stop`."""
        return replace(self, inner=self.inner.slice(start, stop))

    def counts(self, name: str) -> Integers:
        """Read a column as counts."""
        return self.inner.counts(name)

    def codes(self, name: str) -> Codes:
        """Encode the labels of a column."""
        return self.inner.codes(name)

    def labels(self, name: str) -> Sequence[str]:
        """Give the labels of a column."""
        return self.inner.labels(name)

    def type_of(self, name: str) -> str:
        """Give the Frictionless type of a column."""
        return self.inner.type_of(name)

    def build_released(
        self, counts: Mapping[str, CountArray], keep: Sequence[str], order: Order = None
    ) -> Table:
        """Build the published table."""
        return replace(self, inner=self.inner.build_released(counts, keep, order))

    def build_grouped(
        self, by: Sequence[str], labels: Sequence[tuple[Any, ...]], counts: Mapping[str, CountArray]
    ) -> Table:
        """Build a table with one row for each public category."""
        return replace(self, inner=self.inner.build_grouped(by, labels, counts))

    def native(self) -> Any:
        """Give the inner table as the kind that came in."""
        return self.inner.native()

    def to_bytes(self) -> bytes:
        """Write the inner table as a file."""
        return self.inner.to_bytes()

    def write(self, file: IO[bytes]) -> None:
        """Write the inner table to an open file."""
        self.inner.write(file)

    def largest_size(self) -> int:
        """Bound the size of the inner table's file."""
        return self.inner.largest_size()

    def reopen(self, path: Path) -> Table:
        """Give the table after it was written to `path`."""
        return replace(self, inner=self.inner.reopen(path))

    def select(self, names: Sequence[str]) -> Table:
        """Give a table with at least these columns, for one pass over them."""
        return replace(self, inner=self.inner.select(names))

    def batches(self, size: int = BATCH_ROWS) -> Iterator[Table]:
        """Give the inner table's pieces."""
        return (replace(self, inner=batch) for batch in self.inner.batches(size))

    def hash_labels(self, names: Sequence[str]) -> NDArray[np.uint64] | None:
        """Hash the labels of every row."""
        return self.inner.hash_labels(names)
