"""A released table that is not in memory: the public columns of a file, and new counts."""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.tables.base import CountArray, Order, Table
from tallyveil.tables.codes import Codes
from tallyveil.tables.identity import FileIdentity

__all__ = ["FileTable", "StreamedTable"]


class FileTable(Table):
    """A table in a file that is read batch by batch, as often as needed.

    What cannot be done batch by batch is done with `load`, which reads the whole table.
    """

    identity: FileIdentity

    @abstractmethod
    def load(self) -> Table:
        """Read the whole table into memory."""

    @abstractmethod
    def write_released(
        self, file: IO[bytes], counts: Mapping[str, CountArray], keep: Sequence[str]
    ) -> None:
        """Write the table that is published, batch by batch."""

    @abstractmethod
    def bound_released(self, counts: Mapping[str, CountArray], keep: Sequence[str]) -> int:
        """Bound the size of the published file, if no count is larger than these."""

    @abstractmethod
    def open_released(self, path: Path) -> Table:
        """Open a published file of the same kind."""

    def slice(self, start: int, stop: int) -> Table:
        """Give some rows, in memory."""
        return self.load().slice(start, stop)

    def build_released(
        self, counts: Mapping[str, CountArray], keep: Sequence[str], order: Order = None
    ) -> Table:
        """Give the table that is published, to be written batch by batch unless it is reordered."""
        if order is not None:
            return self.load().build_released(counts, keep, order)
        return StreamedTable(self, dict(counts), tuple(keep))

    def native(self) -> Any:
        """Give the whole table."""
        return self.load().native()

    def to_bytes(self) -> bytes:
        """Write the whole table."""
        return self.load().to_bytes()


@dataclass(frozen=True, eq=False)
class StreamedTable(Table):
    """The columns `keep` of a file with released counts in place of its own."""

    source: FileTable
    released: Mapping[str, CountArray]
    keep: tuple[str, ...]

    @property
    def kind(self) -> str:
        """What the file is."""
        return self.source.kind

    @property
    def extension(self) -> str:
        """The ending of the file."""
        return self.source.extension

    @property
    def delimiter(self) -> str:
        """What separates the cells of a text file."""
        return getattr(self.source, "delimiter", ",")

    @property
    def encoding(self) -> str:
        """How a text file is encoded."""
        return getattr(self.source, "encoding", "utf-8")

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, new ones last."""
        return (*self.keep, *(name for name in self.released if name not in self.keep))

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.source.rows

    def slice(self, start: int, stop: int) -> Table:
        """Give some rows, in memory."""
        return self._loaded.slice(start, stop)

    def counts(self, name: str) -> Integers:
        """Give released counts, or read a column as counts."""
        if name in self.released:
            return self.released[name].astype(np.int64)
        return self.source.counts(name)

    def codes(self, name: str) -> Codes:
        """Encode released counts, or the labels of a column."""
        if name in self.released:
            values, codes = np.unique(self.released[name], return_inverse=True)
            return Codes(codes, values)
        return self.source.codes(name)

    def type_of(self, name: str) -> str:
        """Give the Frictionless type of a column."""
        return "integer" if name in self.released else self.source.type_of(name)

    def build_released(
        self, counts: Mapping[str, CountArray], keep: Sequence[str], order: Order = None
    ) -> Table:
        """Build a table from this one, in memory."""
        return self._loaded.build_released(counts, keep, order)

    def build_grouped(
        self, by: Sequence[str], labels: Sequence[tuple[Any, ...]], counts: Mapping[str, CountArray]
    ) -> Table:
        """Build a table with one row for each category."""
        return self.source.build_grouped(by, labels, counts)

    def native(self) -> Any:
        """Give the whole table."""
        return self._loaded.native()

    def to_bytes(self) -> bytes:
        """Write the table as a file, in memory."""
        buffer = io.BytesIO()
        self.write(buffer)
        return buffer.getvalue()

    def largest_size(self) -> int:
        """Bound the size of the file; a source that has changed is noticed before the debit."""
        self.source.identity.require_same()
        return self.source.bound_released(self.released, self.keep)

    def write(self, file: IO[bytes]) -> None:
        """Write the table batch by batch; the source must not have changed since it was checked."""
        self.source.identity.require_same()
        self.source.write_released(file, self.released, self.keep)
        self.source.identity.require_same()

    def reopen(self, path: Path) -> Table:
        """Give the published file in place of the confidential one, or hold it if it is short."""
        found = self.source.open_released(path)
        return found if isinstance(found, FileTable) else self._loaded

    def hold(self) -> Table:
        """Give the published table in memory."""
        return self._loaded

    def __reduce__(self) -> Any:
        """Copy the published table, and nothing of the confidential file."""
        return _give, (self._loaded,)

    @cached_property
    def _loaded(self) -> Table:
        self.source.identity.require_same()
        return self.source.load().build_released(self.released, self.keep)


def _give(table: Table) -> Table:
    return table
