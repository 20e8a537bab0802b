"""Data files released by others: read within bounds, and only in canonical form.

What a file can hide (metadata, statistics, dictionaries, bytes between pages or beyond values, line
ends at the end) is published too, and no receipt mentions it. So a file must hold the bytes that
this program writes for its rows.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from tallyveil.errors import TableError
from tallyveil.tables.columnar import ParquetRows
from tallyveil.tables.read import PARQUET_ENDINGS, TEXT_ENDINGS, read_table
from tallyveil.tables.source import Source
from tallyveil.tables.table import FileIdentity, Rows, Table, plain_type
from tallyveil.tables.text import (
    Room,
    TextRows,
    UnpackedError,
    count_packed,
    open_released,
    reopen_released,
    split_packing,
)
from tallyveil.tables.write import choose_group_rows, open_parquet, render_csv, render_names
from tallyveil.untrusted import SMALL

ONE_FORM = "The data are not written in the one form that a release has."
MORE = "The released file holds more than its table."

ROWS_READ, BYTES_READ = 2_500_000, 4
"""Rows that a small file of somebody else may have, and the bytes each must take in a larger; one
that is not small has a row more for every byte beyond."""

MOST_PARTS = 100_000
"""Columns, or groups of rows, of somebody else's file."""

WRITER = re.compile(r"parquet-cpp-arrow version [0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}")
MARK, TAIL = b"PAR1", 8


def read_published(path: Path, delimiter: str | None = None, encoding: str = "utf-8") -> Table:
    """Read a table that is public; delimiter and encoding are for text only."""
    is_text = split_packing(path)[0] in TEXT_ENDINGS
    return read_table(path, Source(delimiter=delimiter, encoding=encoding) if is_text else None)


def require_likely_rows(path: Path) -> None:
    """Refuse a table with far more rows than its size makes likely.

    Rows of text take a few bytes each; this is for what can hold very many in hardly any.
    """
    ending, packing = split_packing(path)
    if not path.is_file():
        return
    size = path.stat().st_size
    most = max(ROWS_READ, size // BYTES_READ) + max(0, size - SMALL)
    if packing and ending in TEXT_ENDINGS:
        count_packed(path, packing, Room(64 * most, most))
    elif ending in PARQUET_ENDINGS:
        rows = 0
        with suppress(TableError):  # a file that cannot be read is refused by its reader
            rows = ParquetRows.open(path, is_ours=True).count
        if rows > most:
            raise UnpackedError


def reopen(path: Path, names: Sequence[str], rows: int) -> Rows:
    """Open the rows of a data file that was just written."""
    if path.suffix == ".parquet":
        return ParquetRows.open(path, is_ours=True)
    return reopen_released(path, names, rows)


def read_released(path: Path, *, rows: int, counts: Sequence[str]) -> Table:
    """Read a table of `rows` rows that somebody else released, in the form of releases."""
    released = tuple(counts)
    if path.suffix == ".csv":
        return Table(_read_csv(path, rows), "csv", is_text=True, released=released)
    if path.suffix == ".parquet":
        _check_parquet(path, rows, counts)
        parquet = ParquetRows.open(path, is_ours=True)
        return Table(parquet, "parquet", "parquet", released=released)
    raise TableError(f"{path.name!r} is not a kind of table that is released.")


def _read_csv(path: Path, rows: int) -> TextRows:
    size = read = 0

    def judge(block: bytes, batch: Any) -> None:
        nonlocal size, read
        size, read = size + len(block), read + batch.num_rows
        if read > rows:
            raise TableError(f"The table has more than the stated {rows:,} rows.")
        if render_csv(batch) != block:
            raise TableError(ONE_FORM)

    opened = open_released(path).survey(judge)
    if len(render_names(opened.names)) + size != path.stat().st_size:
        raise TableError(ONE_FORM)
    opened.require_same()
    return opened


def _check_parquet(path: Path, rows: int, counts: Sequence[str]) -> None:
    """Refuse a Parquet file unless writing its rows again gives the same bytes.

    Only the version of the writer, in the footer, may be another one.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    identity = FileIdentity.of(path)
    try:
        with (
            path.open("rb") as content,
            pq.ParquetFile(path, thrift_container_size_limit=MOST_PARTS, pre_buffer=False) as file,
        ):
            _check_schema(file, rows, counts)
            footer = _write_again(file, content)
            _require(content.read() == _name_writer(footer, file.metadata.created_by), MORE)
    except (pa.ArrowException, OSError, ValueError, KeyError) as problem:
        if isinstance(problem, TableError):
            raise
        raise TableError("The file cannot be read as Parquet.") from None
    identity.require_same()


def _require(holds: bool, problem: str = ONE_FORM) -> None:
    if not holds:
        raise TableError(problem)


def _check_schema(file: Any, rows: int, counts: Sequence[str]) -> None:
    """Refuse repeated names, types that are not plain, and row groups of another size."""
    import pyarrow as pa

    schema, meta = file.schema_arrow, file.metadata
    _require(len(set(schema.names)) == len(schema.names) == meta.num_columns > 0)
    for field in schema:
        ids = {b"PARQUET:field_id"}
        _require(not schema.metadata and not {*(field.metadata or ())} - ids, MORE)
        _require(plain_type(field.type) == field.type)
    for name in counts:
        field = schema.field(name)
        fits = pa.types.is_int64(field.type) and not field.nullable
        _require(fits, "A released count must be a column of whole numbers.")
    size = choose_group_rows(len(schema))
    groups = [meta.row_group(k).num_rows for k in range(meta.num_row_groups)]
    full = [size] * (rows // size) + ([rows % size] if rows % size else [])
    _require(groups == full and meta.num_rows == rows, f"The table has other than {rows:,} rows.")


class _SameBytes(io.RawIOBase):
    """A file to write to that compares what is written with an open file.

    Once `footer` is set, it collects bytes instead.
    """

    def __init__(self, expected: IO[bytes]) -> None:
        self.expected = expected
        self.differs = False
        self.footer: bytearray | None = None

    def writable(self) -> bool:
        """Return True, as for every file to write to."""
        return True

    def write(self, content: Any) -> int:
        """Compare bytes, or collect them."""
        if self.footer is not None:
            self.footer += content
        elif not self.differs:
            self.differs = self.expected.read(len(content)) != content
        return len(content)


def _write_again(file: Any, content: IO[bytes]) -> bytes:
    """Write the row groups of a file again and compare them with its bytes; return the footer."""
    import pyarrow as pa

    schema = pa.schema([field.remove_metadata() for field in file.schema_arrow])
    sink = _SameBytes(content)
    with open_parquet(sink, schema) as writer:
        for group in range(file.num_row_groups):
            if not sink.differs:
                table = file.read_row_group(group, use_threads=False).combine_chunks()
                writer.write_table(table.cast(schema), choose_group_rows(len(schema)))
        sink.footer = bytearray()
    footer, name = bytes(sink.footer), str(file.metadata.created_by)
    is_own = name.encode() in footer or not WRITER.fullmatch(name)
    _require(not sink.differs, ONE_FORM if is_own else f"{ONE_FORM} Check it with {name}.")
    return footer


def _name_writer(footer: bytes, writer: str | None) -> bytes:
    """Put the version of another writer into a footer."""
    _require(WRITER.fullmatch(writer or "") is not None, MORE)
    *_, this = re.finditer(WRITER.pattern.encode(), footer)
    name = str(writer).encode()
    body = footer[: this.start() - 1] + bytes([len(name)]) + name + footer[this.end() : -TAIL]
    return body + len(body).to_bytes(4, "little") + MARK
