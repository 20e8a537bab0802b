"""Arrow tables written in pieces of a fixed number of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Any

from tallyveil.tables.arrow_rebuild import rebuild_table
from tallyveil.tables.arrow_values import make_empty

__all__ = ["bound_file", "write_pieces"]

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
        yield pa.concat_tables(waiting).combine_chunks() if waiting else make_empty(schema)


def bound_file(size: int, rows: int, columns: int) -> int:
    """Bound the file of columns that take `size` bytes in memory.

    Snappy and LZ4 can lengthen what they cannot compress by a sixth; pages have headers.
    """
    groups = rows // _group_rows(columns) + 1
    return size + size // 6 + 4 * rows + (groups * columns << 12)
