"""Plain text files that are read block by block: the bytes of all other cells are carried over.

A file is plain if splitting it needs no reading of characters: no quotation mark, one kind of line
end, as many delimiters in every row as in the header, and an encoding in which delimiters and line
ends are bytes of their own. That is proved for the whole file before anything else is done with
it. Every other file goes to the careful reader (`tallyveil.tables.delimited`), which has the same
words for what is wrong.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers
from tallyveil.tables.base import BATCH_ROWS, CountArray, Order, Table
from tallyveil.tables.codes import Codes
from tallyveil.tables.counts import RowError, convert_text
from tallyveil.tables.delimited import (
    BOM,
    MOST_COLUMNS,
    DelimitedTable,
    infer_type,
    read_delimited,
)
from tallyveil.tables.hashes import Hashes, hash_text, join_hashes
from tallyveil.tables.identity import FileIdentity
from tallyveil.tables.splice import Splice, splice_rows
from tallyveil.tables.streamed import FileTable
from tallyveil.tables.text_column import TextColumn, Words, align_words

__all__ = ["PlainFile", "open_plain"]

SMALLEST = 2 << 20
"""Files of fewer bytes are one batch and are read into memory."""

BLOCK = 4 << 20
ENCODINGS = ("utf-8", "ascii", "iso8859-1", "cp1252")
LONGEST_CELL = 131_072
"""What the careful reader allows."""

SAFE_DIGITS = 8
NEW_LINE = 10


def open_plain(path: Path, mark: str, encoding: str) -> PlainFile | None:
    """Open a text file to be read block by block, if it is long and plain; else None."""
    return _open_plain(path, mark, encoding) if path.stat().st_size >= SMALLEST else None


def _open_plain(path: Path, mark: str, encoding: str) -> PlainFile | None:
    try:
        if codecs.lookup(encoding).name not in ENCODINGS or not (mark.isascii() and len(mark) == 1):
            return None
        identity = FileIdentity.of(path)
        with open(path, "rb") as file:
            first = file.readline()
        line_end = "\r\n" if first.endswith(b"\r\n") else "\n"
        header = first.decode(encoding).removesuffix(line_end)
    except (LookupError, UnicodeDecodeError):
        return None
    names = tuple(header.split(mark, MOST_COLUMNS))
    odd = mark in '"\r\n\0' or any(sign in header for sign in '"\r\0') or first.startswith(BOM)
    if odd or len(set(names)) != len(names) or len(names) > MOST_COLUMNS or not header:
        return None
    shape = _Shape(len(first), _find_end(path), mark, line_end, encoding)
    opened = PlainFile(identity, shape, names)
    rows = 0
    try:
        for batch in opened.batches():
            if not batch.is_plain():
                return None
            rows += batch.rows
    except (_NotPlainError, UnicodeDecodeError):
        return None
    return replace(opened, rows=rows)


def _find_end(path: Path) -> int:
    """Where the last row ends: line ends after it do not matter."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        while size:
            start = max(0, size - BLOCK)
            file.seek(start)
            kept = file.read(size - start).rstrip(b"\r\n")
            if kept:
                return start + len(kept)
            size = start
    return 0


class _NotPlainError(Exception):
    """Said of a file that the careful reader must read."""


@dataclass(frozen=True)
class _Shape:
    """How a text file is written, and where its rows start and end."""

    start: int
    end: int
    delimiter: str
    line_end: str
    encoding: str


@dataclass(frozen=True, eq=False)
class PlainFile(FileTable):
    """A plain CSV or TSV file."""

    identity: FileIdentity
    shape: _Shape
    names: tuple[str, ...] = ()
    rows: int = 0
    types: dict[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """tsv if a tab separates cells, else csv."""
        return "tsv" if self.delimiter == "\t" else "csv"

    @property
    def extension(self) -> str:
        """The ending of the file it is written to."""
        return self.kind

    @property
    def delimiter(self) -> str:
        """What separates cells."""
        return self.shape.delimiter

    @property
    def encoding(self) -> str:
        """How text is encoded."""
        return self.shape.encoding

    def batches(self, size: int = BATCH_ROWS) -> Iterator[PlainBatch]:
        """Read the file in blocks of whole rows, the same ones at every call."""
        found = 0
        for block in self._read_blocks():
            batch = PlainBatch.split(block, self.names, self.shape)
            found += batch.rows
            yield batch
        if self.rows and found != self.rows:
            raise _NotPlainError
        self.identity.require_same()

    def _read_blocks(self) -> Iterator[bytes]:
        """Whole rows, each with its line end."""
        ending, rest = self.shape.line_end.encode(), b""
        left = self.shape.end - self.shape.start
        with open(self.identity.path, "rb") as file:
            file.seek(self.shape.start)
            while left > 0:
                read = file.read(min(BLOCK, left))
                if not read:
                    self.identity.require_same()
                    raise _NotPlainError
                left -= len(read)
                cut = read.rfind(b"\n") + 1 if left else len(read)
                if cut:
                    yield rest + read[:cut] + (b"" if left else ending)
                    rest = read[cut:]
                else:
                    rest += read

    def load(self, path: Path | None = None) -> DelimitedTable:
        """Read the whole table into memory, or one that is written in the same way."""
        return read_delimited(path or self.identity.path, self.delimiter, self.encoding)

    def open_released(self, path: Path) -> Table:
        """Open a published file of the same kind."""
        found = open_plain(path, self.delimiter, self.encoding)
        return found or self.load(path)

    def counts(self, name: str) -> Integers:
        """Read a column as counts."""
        return np.concatenate([batch.counts(name) for batch in self.batches()])

    def codes(self, name: str) -> Codes:
        """Encode the cells of a column; the table is read into memory."""
        return self.load().codes(name)

    def type_of(self, name: str) -> str:
        """Give the Frictionless type of a column; a column of names is known by its first block."""
        if name not in self.types:
            kinds: set[str] = set()
            for batch in self.batches():
                kinds.add(batch.type_of(name))
                if "string" in kinds:
                    break
            kinds.discard("")
            rank = [kind for kind in ("string", "number", "integer") if kind in kinds]
            self.types[name] = rank[0] if rank else "string"
        return self.types[name]

    def build_grouped(
        self, by: Sequence[str], labels: Sequence[tuple[Any, ...]], counts: Mapping[str, CountArray]
    ) -> DelimitedTable:
        """Build a table with one row for each category."""
        empty = DelimitedTable((), ((),), self.delimiter, encoding=self.encoding)
        return empty.build_grouped(by, labels, counts)

    def bound_released(self, counts: Mapping[str, CountArray], keep: Sequence[str]) -> int:
        """Bound the size of the published file."""
        digits = sum(len(str(int(values.max()))) for values in counts.values())
        return self.shape.end + (digits + len(counts)) * self.rows + 4096

    def write_released(
        self, file: IO[bytes], counts: Mapping[str, CountArray], keep: Sequence[str]
    ) -> None:
        """Write the published table: new digits between the bytes of all other cells."""
        new = [name for name in counts if name not in keep]
        header = self.delimiter.join((*keep, *new)) + self.shape.line_end
        file.write(header.encode(self.encoding))
        start = 0
        for batch in self.batches():
            part = slice(start, start + batch.rows)
            values = {name: column[part] for name, column in counts.items()}
            kept = np.array([name in keep for name in self.names])
            replaced = {self.names.index(name): v for name, v in values.items() if name in keep}
            added = [values[name] for name in new]
            splice = Splice(kept, replaced, added, self.delimiter.encode())
            file.write(splice_rows(batch.buffer, batch.pieces, splice).data)
            start = part.stop


@dataclass(frozen=True, eq=False)
class PlainBatch(Table):
    """Some rows of a plain file: its bytes, and where its delimiters and line ends are."""

    buffer: NDArray[np.uint8]
    ends: Integers
    """Where each cell ends, shape (rows, columns)."""

    names: tuple[str, ...] = ()
    shape: _Shape | None = None

    @classmethod
    def split(cls, block: bytes, names: tuple[str, ...], shape: _Shape) -> PlainBatch:
        """Split a block of whole rows, or say that it is not plain."""
        buffer = np.frombuffer(block, np.uint8)
        at = np.flatnonzero((buffer == ord(shape.delimiter)) | (buffer == NEW_LINE))
        if len(at) % len(names):
            raise _NotPlainError
        ends = at.reshape(-1, len(names))
        lines = block.count(b"\n")
        if lines != len(ends) or not (buffer[ends[:, -1]] == NEW_LINE).all():
            raise _NotPlainError
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
        empty = len(self.names) == 1 and bool((self.pieces[:, 0] == 0).any())
        return not empty and int(self.pieces.max()) <= LONGEST_CELL

    @property
    def _shape(self) -> _Shape:
        if self.shape is None:
            raise _NotPlainError
        return self.shape

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

    @cached_property
    def pieces(self) -> Integers:
        """Lengths of each row's cells and what stands after them, shape (rows, 2 columns)."""
        line_end = len(self._shape.line_end)
        found = np.ones((self.rows, 2 * len(self.names)), np.int64)
        flat = self.ends.reshape(-1)
        found[:, ::2] = np.diff(flat, prepend=-1).reshape(self.ends.shape) - 1
        found[:, -1] = line_end
        found[:, -2] -= line_end - 1
        return found

    @cached_property
    def _words(self) -> Words:
        return align_words(self.buffer)

    def text(self, name: str) -> TextColumn:
        """Give the cells of a column as bytes."""
        at = self.names.index(name)
        lengths = self.pieces[:, 2 * at]
        line_end = len(self._shape.line_end) - 1 if at == len(self.names) - 1 else 0
        return TextColumn(self.buffer, self.ends[:, at] - line_end - lengths, lengths, self._words)

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
            numbers = convert_text(odd.take(first[order]).decode(self._shape.encoding), name)
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
        labels = cells.take(rows).decode(self._shape.encoding)
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
        if infer_type(odd.take(slice(0, 1)).decode(self._shape.encoding)) == "string":
            return "string"
        return infer_type(odd.take(odd.number()[1]).decode(self._shape.encoding))

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
