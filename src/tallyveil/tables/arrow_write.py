"""Arrow tables written in pieces of a fixed number of rows, and their labels hashed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.tables.arrow_rebuild import rebuild_table
from tallyveil.tables.hashes import EMPTY, Hashes, hash_numbers, hash_text
from tallyveil.tables.text_column import TextColumn

__all__ = ["bound_file", "hash_column", "text_column", "write_pieces"]

GROUP_ROWS, FEW_COLUMNS = 1 << 20, 8
"""Rows of a group of a Parquet file, of so many columns; fewer for more columns."""

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

        size = _group_rows(len(schema))
        with pq.ParquetWriter(file, schema) as writer:
            for table in _regroup(pieces, schema, size):
                writer.write_table(table, row_group_size=size)
        return
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(file, schema, options=options) as writer:
        for table in _regroup(pieces, schema, IPC_ROWS):
            # its buffers are written as they are, with what nulls hide and what follows a slice
            writer.write_table(rebuild_table(table, None), IPC_ROWS)


def _group_rows(columns: int) -> int:
    """Rows of a Parquet group: 2^20, halved whenever the columns double beyond eight."""
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
        yield pa.concat_tables(waiting).combine_chunks() if waiting else schema.empty_table()


def bound_file(size: int, rows: int, columns: int) -> int:
    """Bound the file of columns that take `size` bytes in memory.

    Snappy and LZ4 can lengthen what they cannot compress by a sixth; pages have headers.
    """
    groups = rows // _group_rows(columns) + 1
    return size + size // 6 + 4 * rows + (groups * columns << 12)


def hash_column(column: Any) -> Hashes | None:
    """Hash the labels of a column by its type; None for a type that is not hashed.

    Labels are equal exactly if the values are: text (no value is the empty text), whole numbers,
    doubles by their bits, days, true and false.
    """
    import pyarrow as pa

    types, kind = pa.types, column.type
    if types.is_string(kind) or types.is_large_string(kind):
        pieces = [hash_text(text_column(chunk)) for chunk in column.chunks]
    elif types.is_integer(kind) or kind in (pa.float32(), pa.float64()):
        pieces = [_hash_values(chunk) for chunk in column.chunks]
    elif types.is_date32(kind):
        pieces = [_hash_values(chunk.view(pa.int32())) for chunk in column.chunks]
    elif types.is_boolean(kind):
        pieces = [_hash_values(chunk.cast(pa.uint8())) for chunk in column.chunks]
    else:
        return None
    return np.concatenate(pieces) if pieces else np.zeros(0, np.uint64)


def _hash_values(chunk: Any) -> Hashes:
    if not chunk.null_count:
        return hash_numbers(_to_numpy(chunk))
    found = hash_numbers(_to_numpy(chunk.fill_null(0)))
    found[np.asarray(chunk.is_null())] = EMPTY
    return found


def _to_numpy(chunk: Any) -> NDArray[Any]:
    values: NDArray[Any] = chunk.to_numpy(zero_copy_only=False)
    return values


def text_column(chunk: Any) -> TextColumn:
    """An array of strings as bytes; no value is the empty text."""
    import pyarrow as pa

    if chunk.null_count:
        chunk = chunk.fill_null("")
    kind = np.int64 if pa.types.is_large_string(chunk.type) else np.int32
    _, offsets, text = chunk.buffers()
    ends = np.frombuffer(offsets, kind, len(chunk) + 1, chunk.offset * np.dtype(kind).itemsize)
    first, last = int(ends[0]), int(ends[-1])
    buffer = np.frombuffer(text, np.uint8, last - first, first) if last > first else NOTHING
    starts = (ends[:-1] - first).astype(np.int64)
    return TextColumn(buffer, starts, np.diff(ends).astype(np.int64))


NOTHING = np.zeros(0, np.uint8)
