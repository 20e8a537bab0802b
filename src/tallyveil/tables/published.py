"""Data files that somebody else released: read in bounds, and only in their one form.

What a file can hide (metadata, statistics, dictionaries, bytes between pages or beyond values, line
ends at the end) is published too, and no receipt mentions it. So a CSV file must hold the bytes
that this program writes for its cells, and a Parquet file the pages.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

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
    """Refuse somebody else's table that has far more rows than a file of its size should.

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
    """Refuse a Parquet file that is not in its one form; first by what it unpacks to."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    identity = FileIdentity.of(path)
    try:
        with (
            path.open("rb") as opened,
            mmap(opened.fileno(), 0, access=ACCESS_READ) as content,
            pq.ParquetFile(path, thrift_container_size_limit=MOST_PARTS, pre_buffer=False) as file,
        ):
            _check_footer(file, content)
            _check_schema(file, rows, counts)
            _check_pages(file, content, counts)
    except (pa.ArrowException, OSError, ValueError, KeyError) as problem:
        if isinstance(problem, TableError):
            raise
        raise TableError("The file cannot be read as Parquet.") from None
    identity.require_same()


def _require(holds: bool, problem: str = ONE_FORM) -> None:
    if not holds:
        raise TableError(problem)


def _check_footer(file: Any, content: mmap) -> None:
    """Refuse a footer with anything that pyarrow would not write again."""
    meta = file.metadata
    again = io.BytesIO()
    meta.write_metadata_file(again)
    written = again.getvalue()[len(MARK) :]
    _require(content[-len(written) :] == written, MORE)
    _require(content[: len(MARK)] == MARK)
    _require(not meta.metadata, MORE)
    _require(WRITER.fullmatch(meta.created_by or "") is not None, MORE)


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


def _check_pages(file: Any, content: mmap, counts: Sequence[str]) -> None:
    """Refuse bytes between pages, and pages that unpack to other than their values take."""
    meta, end = file.metadata, len(MARK)
    for group in range(meta.num_row_groups):
        part = meta.row_group(group)
        _require(not part.sorting_columns, MORE)
        sizes = []
        for number in range(meta.num_columns):
            chunk = part.column(number)
            _require(chunk.compression == "SNAPPY" and {*chunk.encodings} <= {"PLAIN", "RLE"})
            fits = not (chunk.has_dictionary_page or chunk.is_stats_set or chunk.file_path)
            _require(fits and not (chunk.has_offset_index or chunk.has_column_index))
            _require(chunk.data_page_offset == end, MORE)
            sizes.append(list(_measure_pages(content, end, chunk.total_compressed_size)))
            end += chunk.total_compressed_size
            if chunk.path_in_schema in counts:
                _require(sum(sizes[-1]) == 8 * part.num_rows)
        _require(sizes == _write_again(file, group))
    _require(end + meta.serialized_size + TAIL == len(content), MORE)


def _write_again(file: Any, group: int) -> list[list[int]]:
    """Measure what the pages of a row group unpack to when they are written again."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = file.read_row_group(group, use_threads=False)
    buffer = io.BytesIO()
    with open_parquet(buffer, table.schema.remove_metadata()) as writer:
        writer.write_table(table, max(table.num_rows, 1))
    written = buffer.getvalue()
    part = pq.ParquetFile(pa.BufferReader(written)).metadata.row_group(0)
    chunks = map(part.column, range(part.num_columns))
    return [
        list(_measure_pages(written, c.data_page_offset, c.total_compressed_size)) for c in chunks
    ]


def _measure_pages(content: bytes | mmap, start: int, length: int) -> Iterator[int]:
    """Yield what every page of a column unpacks to; its header has one form.

    In Thrift's compact protocol: the type, two sizes, and of its values how many there are, how
    they are encoded, and no statistics.
    """
    place, end = start, start + length
    while place < end:
        numbers = []
        for mark in (b"\x15\x00\x15", b"\x15", b"\x2c\x15"):
            place = _skip(content, place, mark)
            place, number = _read_number(content, place)
            numbers.append(number)
        place = _skip(content, place, b"\x15\x00\x15\x06\x15\x06")
        place = _skip(content, place, b"\x1c\x00") if content[place] else place
        place = _skip(content, place, b"\x00\x00")
        unpacked, packed, _ = numbers
        _require(min(unpacked, packed) >= 0 and place + packed <= end)
        yield unpacked
        place += packed


def _skip(content: bytes | mmap, start: int, expected: bytes) -> int:
    """Refuse other bytes than the expected ones; return where they end."""
    end = start + len(expected)
    _require(content[start:end] == expected, MORE)
    return end


def _read_number(content: bytes | mmap, place: int) -> tuple[int, int]:
    """Read a number in pieces of seven bits, the lowest of all its sign."""
    value = shift = 0
    while shift < 64:
        _require(place < len(content))
        value |= (content[place] & 127) << shift
        place, shift = place + 1, shift + 7
        if content[place - 1] < 128:
            break
    return place, (value >> 1) ^ -(value & 1)
