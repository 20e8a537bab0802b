"""Arrow tables written in pieces of a fixed number of rows."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO, Any

from tallyveil.errors import TableError
from tallyveil.tables.arrow_rebuild import rebuild_table
from tallyveil.tables.arrow_values import make_empty

__all__ = ["bound_file", "choose_rows", "require_writable", "write_pieces"]

GROUP_ROWS, FEW_COLUMNS = 1 << 20, 8
"""Rows of a group of a Parquet file, of so many columns; fewer for more columns."""

SAMPLE_ROWS = 1 << 16
"""Rows that decide whether a column of numbers is written with a dictionary."""

IPC_ROWS = 1 << 16
"""Rows of a batch of a Feather file."""


def write_pieces(file: IO[bytes], extension: str, schema: Any, pieces: Iterable[Any]) -> None:
    """Write consecutive tables of one schema as one Parquet or Feather file.

    How many rows are written together depends on the number of columns alone: the file does not
    tell how the rows arrived.
    """
    import pyarrow as pa

    if extension == "parquet":
        import pyarrow.parquet as pq

        size = choose_rows(extension, len(schema))
        tables = _regroup(pieces, schema, size)
        first = next(tables)
        with pq.ParquetWriter(file, schema, use_dictionary=_choose_coded(first)) as writer:
            for table in chain([first], tables):
                writer.write_table(table, row_group_size=size)
        return
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(file, schema, options=options) as writer:
        for table in _regroup(pieces, schema, IPC_ROWS):
            # its buffers are written as they are, with what nulls hide and what follows a slice
            writer.write_table(rebuild_table(table, None), IPC_ROWS)


def require_writable(extension: str, fields: Iterable[Any]) -> None:
    """Refuse a column of a type that the published file cannot hold, before anything is spent.

    Feather holds every type of Arrow, and need not be tried.
    """
    import pyarrow as pa

    for field in fields if extension == "parquet" else ():
        try:
            write_pieces(io.BytesIO(), extension, pa.schema([field]), [])
        except (pa.ArrowException, OSError):
            raise TableError(
                f"Column {field.name!r} has the type {field.type}, which Parquet files "
                "do not have. Convert it first, to text for instance."
            ) from None


def _choose_coded(table: Any) -> bool | list[str]:
    """The columns that Parquet writes as codes of a dictionary; True for all.

    Whole numbers and text that hardly repeat are not among them: looking for their dictionary takes
    half the time of writing, and finds none. What decides are rows that are published as they are.
    """
    import pyarrow as pa

    if table.num_rows < SAMPLE_ROWS or any(map(pa.types.is_nested, table.schema.types)):
        return True
    sample = table.slice(0, SAMPLE_ROWS)
    return [name for name in sample.column_names if not _hardly_repeats(sample.column(name))]


def _hardly_repeats(column: Any) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    is_judged = pa.types.is_integer(column.type) or pa.types.is_string(column.type)
    return is_judged and bool(2 * pc.count_distinct(column).as_py() > len(column))


def choose_rows(extension: str, columns: int) -> int:
    """Rows that are written together.

    For Parquet 2^20, halved whenever the columns double beyond eight.
    """
    if extension != "parquet":
        return IPC_ROWS
    return GROUP_ROWS >> max(0, (columns - 1) // FEW_COLUMNS).bit_length()


def _regroup(pieces: Iterable[Any], schema: Any, size: int) -> Iterator[Any]:
    """Cut and join tables so that all but the last have `size` rows, each in one chunk."""
    import pyarrow as pa

    waiting: list[Any] = []
    rows, empty = 0, True
    for piece in pieces:
        start = 0
        while start < piece.num_rows:
            taken = min(size - rows, piece.num_rows - start)
            waiting.append(piece.slice(start, taken))
            start, rows = start + taken, rows + taken
            if rows == size:
                yield pa.concat_tables(waiting).combine_chunks()
                waiting, rows, empty = [], 0, False
    if waiting or empty:
        yield pa.concat_tables(waiting).combine_chunks() if waiting else make_empty(schema)


def bound_file(size: int, rows: int, columns: int) -> int:
    """Bound the file of columns that take `size` bytes in memory.

    Snappy and LZ4 can lengthen what they cannot compress by a sixth; pages have headers.
    """
    groups = rows // choose_rows("parquet", columns) + 1
    return size + size // 6 + 4 * rows + (groups * columns << 12)
