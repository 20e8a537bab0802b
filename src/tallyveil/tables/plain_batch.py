"""Some rows of a plain text file: its bytes, and where its cells end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers
from tallyveil.tables.base import BATCH_ROWS, CountArray, Order, Table
from tallyveil.tables.codes import Codes
from tallyveil.tables.counts import RowError, convert_text
from tallyveil.tables.delimited import infer_type
from tallyveil.tables.hashes import Hashes, hash_text, join_hashes
from tallyveil.tables.text_column import TextColumn, Words, align_words

__all__ = ["NotPlainError", "PlainBatch", "Shape"]

LONGEST_CELL = 131_072
"""What the careful reader allows."""

SAFE_DIGITS = 8
NEW_LINE = 10


class NotPlainError(Exception):
    """Said of a file that the careful reader must read."""


@dataclass(frozen=True)
class Shape:
    """How a text file is written, and where its rows start and end."""

    start: int
    end: int
    delimiter: str
    line_end: str
    encoding: str


@dataclass(frozen=True, eq=False)
class PlainBatch(Table):
    """Some rows of a plain file: its bytes, and where its delimiters and line ends are."""

    buffer: NDArray[np.uint8]
    ends: Integers
    """Where each cell ends, shape (rows, columns)."""

    names: tuple[str, ...] = ()
    shape: Shape | None = None

    @classmethod
    def split(cls, block: bytes, names: tuple[str, ...], shape: Shape) -> PlainBatch:
        """Split a block of whole rows, or say that it is not plain."""
        buffer = np.frombuffer(block, np.uint8)
        is_line = buffer == NEW_LINE
        at = np.flatnonzero((buffer == ord(shape.delimiter)) | is_line)
        if len(at) % len(names):
            raise NotPlainError
        ends = at.reshape(-1, len(names))
        if np.count_nonzero(is_line) != len(ends) or not is_line.take(ends[:, -1]).all():
            raise NotPlainError
        return cls(buffer, ends, names, shape)

    def is_plain(self) -> bool:
        """Whether no cell needs the careful reader."""
        content, shape = self.buffer.tobytes(), self._shape
        content.decode(shape.encoding)
        returns = len(self.ends) if shape.line_end == "\r\n" else 0
        if b'"' in content or b"\0" in content or content.count(b"\r") != returns:
            return False
        if returns and not (self.buffer[self.ends[:, -1] - 1] == ord("\r")).all():
            return False
        if len(self.names) == 1 and not self.text(self.names[0]).lengths.all():
            return False
        return int(np.diff(self.ends.reshape(-1), prepend=-1).max(initial=1)) - 1 <= LONGEST_CELL

    @property
    def _shape(self) -> Shape:
        if self.shape is None:
            raise NotPlainError
        return self.shape

    @property
    def encoding(self) -> str:
        """How text is encoded."""
        return self._shape.encoding

    @property
    def kind(self) -> str:
        """What the file is."""
        return "csv"

    @property
    def extension(self) -> str:
        """The ending of the file."""
        return "csv"

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.ends)

    @property
    def pieces(self) -> list[Integers]:
        """Lengths of each column's cells, and of what stands after them: one or the line end."""
        marks = np.ones((2, self.rows), np.int64)
        marks[1] = len(self._shape.line_end)
        found = []
        for name in self.names:
            found += [self.text(name).lengths, marks[0]]
        found[-1] = marks[1]
        return found

    @cached_property
    def _words(self) -> Words:
        return align_words(self.buffer)

    def text(self, name: str) -> TextColumn:
        """Give the cells of a column as bytes."""
        at = self.names.index(name)
        starts = np.zeros(self.rows, np.int64)
        before = self.ends[:, at - 1] if at else self.ends[:-1, -1]
        np.add(before, 1, out=starts[self.rows - len(before) :])
        lengths = self.ends[:, at] - starts
        if at == len(self.names) - 1:
            lengths -= len(self._shape.line_end) - 1
        return TextColumn(self.buffer, starts, lengths, self._words)

    def batches(self, size: int = BATCH_ROWS) -> Iterator[Table]:
        """Give the block as it is: it is one batch."""
        return iter((self,))

    def slice(self, start: int, stop: int) -> PlainBatch:
        """Refuse: blocks are read whole."""
        raise NotImplementedError

    def counts(self, name: str) -> Integers:
        """Read a column as counts; only cells that are not a few digits are read as text."""
        cells = self.text(name)
        quick = cells.is_digits & (cells.lengths > 0) & (cells.lengths <= SAFE_DIGITS)
        if quick.all():
            return cells.to_numbers()
        counts = np.empty(self.rows, np.int64)
        counts[quick] = cells.take(np.flatnonzero(quick)).to_numbers()
        others = np.flatnonzero(~quick)
        odd = cells.take(others)
        codes, first = odd.number()
        order = np.argsort(first)
        try:
            numbers = convert_text(odd.take(first[order]).decode(self.encoding), name)
        except RowError as error:
            row = int(others[first[order[error.row - 1]]])
            raise RowError(name, row + 1, error.what) from None
        by_code = np.empty_like(numbers)
        by_code[order] = numbers
        counts[others] = by_code[codes]
        return counts

    def codes(self, name: str) -> Codes:
        """Encode the cells of a column."""
        cells = self.text(name)
        codes, rows = cells.number()
        labels = cells.take(rows).decode(self.encoding)
        return Codes(codes, np.array(labels, dtype=object))

    def type_of(self, name: str) -> str:
        """Give the type of the cells that are filled, or nothing if none is."""
        cells = self.text(name)
        filled = cells.lengths > 0
        if not filled.any():
            return ""
        starts_with_zero = (cells.load() & np.uint64(0xFF)) == ord("0")
        whole = cells.is_digits & ~(starts_with_zero & (cells.lengths > 1))
        others = np.flatnonzero(filled & ~whole)
        if not len(others):
            return "integer"
        odd = cells.take(others)
        if infer_type(odd.take(slice(0, 1)).decode(self.encoding)) == "string":
            return "string"
        return infer_type(odd.take(odd.number()[1]).decode(self.encoding))

    def hash_labels(self, names: Sequence[str]) -> Hashes | None:
        """Hash the cells of some columns."""
        found = None
        for name in names:
            own = hash_text(self.text(name))
            found = own if found is None else join_hashes(found, own)
        return found

    def build_released(
        self, counts: Mapping[str, CountArray], keep: Sequence[str], order: Order = None
    ) -> Table:
        """Refuse: files are released whole."""
        raise NotImplementedError

    def build_grouped(
        self, by: Sequence[str], labels: Sequence[tuple[Any, ...]], counts: Mapping[str, CountArray]
    ) -> Table:
        """Refuse: files are released whole."""
        raise NotImplementedError

    def native(self) -> Any:
        """Refuse: files are released whole."""
        raise NotImplementedError

    def to_bytes(self) -> bytes:
        """Give the rows as they are."""
        return self.buffer.tobytes()
