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
from pathlib import Path
from typing import IO, Any

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.tables.base import BATCH_ROWS, CountArray, Table
from tallyveil.tables.codes import Codes
from tallyveil.tables.delimited import (
    BOM,
    MOST_COLUMNS,
    DelimitedTable,
    read_delimited,
)
from tallyveil.tables.identity import FileIdentity
from tallyveil.tables.plain_batch import NotPlainError, PlainBatch, Shape
from tallyveil.tables.splice import Splice, splice_rows
from tallyveil.tables.streamed import FileTable

__all__ = ["PlainFile", "open_plain"]

SMALLEST = 2 << 20
"""Files of fewer bytes are one batch and are read into memory."""

BLOCK = 4 << 20
ENCODINGS = ("utf-8", "ascii", "iso8859-1", "cp1252")


def open_plain(path: Path, mark: str, encoding: str) -> PlainFile | None:
    """Open a text file to be read block by block, if it is long and plain; else None."""
    opened = _read_header(path, mark, encoding) if path.stat().st_size >= SMALLEST else None
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


def _read_header(path: Path, mark: str, encoding: str) -> PlainFile | None:
    """A file whose header is plain; how many rows it has is not known yet."""
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
    shape = Shape(len(first), _find_end(path), mark, line_end, encoding)
    return PlainFile(identity, shape, names)


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


@dataclass(frozen=True, eq=False)
class PlainFile(FileTable):
    """A plain CSV or TSV file."""

    identity: FileIdentity
    shape: Shape
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
        try:
            for block in self._read_blocks():
                batch = PlainBatch.split(block, self.names, self.shape)
                found += batch.rows
                yield batch
            if self.rows and found != self.rows:
                raise NotPlainError
        except NotPlainError:
            self.identity.require_same()
            raise
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
                    raise NotPlainError
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
        """Open a published file if it is long; it is plain because the one it was made from is."""
        long = path.stat().st_size >= SMALLEST
        found = _read_header(path, self.delimiter, self.encoding) if long else None
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
