"""Plain text files that are read block by block: the bytes of all other cells are carried over.

A file that is packed is unpacked in every pass, piece by piece.

A file is plain if splitting it needs no reading of characters: no quotation mark but around whole
names of the header, one kind of line end, as many delimiters in every row as in the header, and an
encoding in which delimiters and line ends are bytes of their own. That is proved for the whole
file before anything else is done with it. Every other file goes to the careful reader
(`tallyveil.tables.delimited`), which has the same words for what is wrong, and writes names that
need no quotation marks without them, too.
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

from tallyveil.arrays import Integers
from tallyveil.tables.base import BATCH_ROWS, CountArray, Table
from tallyveil.tables.codes import Codes
from tallyveil.tables.delimited import (
    BOM,
    DelimitedTable,
    read_delimited,
)
from tallyveil.tables.identity import FileIdentity
from tallyveil.tables.packed import (
    ANY_SIZE,
    PackedTable,
    Room,
    bound_packed,
    open_packed,
    open_unpacked,
)
from tallyveil.tables.plain_batch import NotPlainError, PlainBatch, Shape
from tallyveil.tables.splice import Splice, splice_rows
from tallyveil.tables.streamed import FileTable

__all__ = ["PlainFile", "open_plain"]

SMALLEST = 2 << 20
"""Files of fewer bytes are one batch and are read into memory."""

BLOCK = 4 << 20
LONGEST_HEADER = 16 << 20
MANY_COLUMNS = 2000
"""Tables with more columns have few rows for their size, and are read into memory."""

FEW_COLUMNS = 8
"""Columns whose types are looked for one by one."""

ENCODINGS = ("utf-8", "ascii", "iso8859-1", "cp1252")


def open_plain(
    path: Path, mark: str, encoding: str, packing: str = "", room: Room = ANY_SIZE
) -> PlainFile | None:
    """Open a text file to be read block by block, if it is long and plain; else None.

    One that is packed may unpack to as much as it has `room` for.
    """
    file = _PlainBytes(path, packing, room)
    opened = _read_header(file, mark, encoding) if file.size >= SMALLEST else None
    if opened is None:
        return None
    rows = 0
    try:
        for batch in opened.batches():
            if not batch.is_plain():
                return None
            rows += batch.rows
    except (NotPlainError, UnicodeDecodeError):
        return None
    return replace(opened, rows=rows) if rows else None


def _read_header(file: _PlainBytes, mark: str, encoding: str) -> PlainFile | None:
    """A file whose header is plain; how many rows it has is not known yet."""
    try:
        if codecs.lookup(encoding).name not in ENCODINGS or not (mark.isascii() and len(mark) == 1):
            return None
        identity = FileIdentity.of(file.path)
        with file.open() as stream:
            first = stream.readline(LONGEST_HEADER)
        line_end = "\r\n" if first.endswith(b"\r\n") else "\n"
        header = first.decode(encoding).removesuffix(line_end)
    except (LookupError, UnicodeDecodeError):
        return None
    names = tuple(map(_unquote, header.split(mark, MANY_COLUMNS)))
    odd = mark in '"\r\n\0' or first.startswith(BOM) or names == ("",)
    odd = odd or any(sign in name for name in names for sign in '"\r\0')
    if odd or len(set(names)) != len(names) or len(names) > MANY_COLUMNS:
        return None
    shape = Shape(len(first), file.find_end(), mark, line_end, encoding)
    return PlainFile(identity, shape, names, packing=file.packing, size=file.size)


def _unquote(cell: str) -> str:
    """Take one pair of quotation marks from around a cell."""
    return cell[1:-1] if len(cell) > 1 and cell[0] == cell[-1] == '"' else cell


@dataclass(frozen=True)
class _PlainBytes:
    """The bytes of a text file, unpacked if it is packed."""

    path: Path
    packing: str = ""
    room: Room = ANY_SIZE

    def open(self) -> IO[bytes]:
        if self.packing:
            return open_unpacked(self.path, self.packing, self.room)
        return open(self.path, "rb")

    @cached_property
    def size(self) -> int:
        """How long the text is."""
        return self._measured[0] if self.packing else os.path.getsize(self.path)

    @cached_property
    def _measured(self) -> tuple[int, int]:
        """How long a packed text is, and where its last row ends: it is read through."""
        size = end = 0
        with self.open() as stream:
            while part := stream.read(BLOCK):
                kept = part.rstrip(b"\r\n")
                end = size + len(kept) if kept else end
                size += len(part)
        return size, end

    def find_end(self) -> int:
        """Where the last row ends: line ends after it do not matter."""
        if self.packing:
            return self._measured[1]
        size = self.size
        with self.open() as file:
            while size:
                start = max(0, size - BLOCK)
                file.seek(start)
                kept = file.read(size - start).rstrip(b"\r\n")
                if kept:
                    return start + len(kept)
                size = start
        return 0


@dataclass(frozen=True, eq=False)
class PlainFile(FileTable):
    """A plain CSV or TSV file."""

    identity: FileIdentity
    shape: Shape
    names: tuple[str, ...] = ()
    rows: int = 0
    types: dict[str, str] = field(default_factory=dict)
    packing: str = ""
    size: int = 0

    @property
    def ends_with_a_row(self) -> bool:
        """Whether the text ends with the line end of its last row."""
        return self.size == self.shape.end + len(self.shape.line_end)

    @property
    def kind(self) -> str:
        """tsv if a tab separates cells, else csv."""
        return "tsv" if self.delimiter == "\t" else "csv"

    @property
    def extension(self) -> str:
        """The ending of the file it is written to."""
        return self.kind + self.packing

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
        try:
            for block in self._read_blocks():
                batch = PlainBatch.split(block, self.names, self.shape)
                found += batch.rows
                yield batch
            if self.rows and found != self.rows:
                raise NotPlainError
        except (NotPlainError, OSError):
            self.identity.require_same()
            raise
        self.identity.require_same()

    def _read_blocks(self) -> Iterator[bytes]:
        """Whole rows, each with its line end."""
        ending, rest = self.shape.line_end.encode(), b""
        left = self.shape.end - self.shape.start
        with _PlainBytes(self.identity.path, self.packing).open() as file:
            file.seek(self.shape.start) if not self.packing else file.read(self.shape.start)
            while left > 0:
                read = file.read(min(BLOCK, left))
                if not read:
                    raise NotPlainError
                left -= len(read)
                cut = read.rfind(b"\n") + 1 if left else len(read)
                if cut:
                    yield rest + read[:cut] + (b"" if left else ending)
                    rest = read[cut:]
                else:
                    rest += read

    def load(self, path: Path | None = None) -> Table:
        """Read the whole table into memory, or one that is written in the same way."""
        with _PlainBytes(path or self.identity.path, self.packing).open() as file:
            content = file.read()
        return self._wrap(read_delimited(content, self.delimiter, self.encoding))

    def _wrap(self, table: DelimitedTable) -> Table:
        return PackedTable(table, self.packing) if self.packing else table

    def open_released(self, path: Path) -> Table:
        """Open a published file if it is long; it is plain because the one it was made from is."""
        file = _PlainBytes(path, self.packing)
        long = file.size >= SMALLEST
        found = _read_header(file, self.delimiter, self.encoding) if long else None
        return self.load(path) if found is None else replace(found, rows=self.rows)

    def counts(self, name: str) -> Integers:
        """Read a column as counts."""
        return np.concatenate([batch.counts(name) for batch in self.batches()])

    def codes(self, name: str) -> Codes:
        """Encode the cells of a column, in the order in which they occur first."""
        code_of: dict[str, int] = {}
        found = []
        for batch in self.batches():
            cells = batch.text(name)
            codes, rows = cells.number()
            order = np.argsort(rows)
            labels = cells.take(rows[order]).decode(self.encoding)
            numbers = np.empty(len(rows), np.int64)
            numbers[order] = [code_of.setdefault(label, len(code_of)) for label in labels]
            found.append(numbers[codes])
        return Codes(np.concatenate(found), np.array(list(code_of), dtype=object))

    def type_of(self, name: str) -> str:
        """Give the Frictionless type of a column; a column of names is known by its first block.

        Whoever asks for many columns gets all the others in one pass.
        """
        if name not in self.types:
            asked = [name] if len(self.types) < FEW_COLUMNS else self.names
            kinds: dict[str, set[str]] = {one: set() for one in asked if one not in self.types}
            for batch in self.batches():
                for one in [one for one, found in kinds.items() if "string" not in found]:
                    kinds[one].add(batch.type_of(one))
                if all("string" in found for found in kinds.values()):
                    break
            self.types.update((one, _widest(found)) for one, found in kinds.items())
        return self.types[name]

    def build_grouped(
        self, by: Sequence[str], labels: Sequence[tuple[Any, ...]], counts: Mapping[str, CountArray]
    ) -> Table:
        """Build a table with one row for each category."""
        empty = DelimitedTable((), ((),), self.delimiter, encoding=self.encoding)
        return self._wrap(empty.build_grouped(by, labels, counts))

    def bound_released(self, counts: Mapping[str, CountArray], keep: Sequence[str]) -> int:
        """Bound the size of the published file."""
        digits = sum(len(str(int(values.max()))) for values in counts.values())
        return bound_packed(self.shape.end + (digits + len(counts)) * self.rows + 4096)

    def write_released(
        self, file: IO[bytes], counts: Mapping[str, CountArray], keep: Sequence[str]
    ) -> None:
        """Write the published table: new digits between the bytes of all other cells."""
        if not self.packing:
            return self._write_text(file, counts, keep)
        with open_packed(file, self.packing) as packed:
            self._write_text(packed, counts, keep)

    def _write_text(
        self, file: IO[bytes], counts: Mapping[str, CountArray], keep: Sequence[str]
    ) -> None:
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


def _widest(kinds: set[str]) -> str:
    """The type that holds all of these; a column of empty cells is text."""
    return next((kind for kind in ("string", "number", "integer") if kind in kinds), "string")
