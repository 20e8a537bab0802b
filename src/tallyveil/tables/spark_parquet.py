"""Plain Parquet files that tasks read themselves. Runs on executors; knows no Spark.

Spark hands rows to Python one by one; a DataFrame that is nothing but files is read much faster
from these. Only types that Spark and Arrow read alike are.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tallyveil.errors import TableError
from tallyveil.tables.base import BATCH_ROWS
from tallyveil.tables.spark_tasks import Batches, Task, list_numbers

__all__ = ["Piece", "ReadFiles", "cut_files"]

ALIKE = ("int8", "int16", "int32", "int64", "float", "double", "bool", "string")
"""Types, by Arrow's names, that are read alike."""

PIECE_ROWS, MOST_FILES, BUFFER = 1 << 21, 1000, 1 << 20
"""Rows that are read together, files that are looked into first, and bytes read at once."""


@dataclass(frozen=True)
class Piece:
    """Some groups of rows of a Parquet file."""

    path: str
    first: int
    last: int
    rows: int


def cut_files(files: Sequence[Path], schema: Any) -> tuple[Piece, ...] | None:
    """Cut files into pieces, in order; None if Spark might read other values than Arrow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if len(files) > MOST_FILES or not all(str(own.type) in ALIKE for own in schema):
        return None
    found: list[Piece] = []
    for path in files:
        try:
            with pq.ParquetFile(path) as file:
                own, meta = file.schema_arrow, file.metadata
        except (pa.ArrowException, OSError):
            return None
        for field in schema:
            if own.names.count(field.name) != 1 or own.field(field.name).type != field.type:
                return None
        found += _cut(str(path), [meta.row_group(at).num_rows for at in range(meta.num_row_groups)])
    return tuple(found) or None


def _cut(path: str, sizes: Sequence[int]) -> Iterator[Piece]:
    first = rows = 0
    for at, size in enumerate(sizes, 1):
        rows += size
        if rows >= PIECE_ROWS or (at == len(sizes) and rows):
            yield Piece(path, first, at, rows)
            first, rows = at, 0


@dataclass(frozen=True)
class ReadFiles(Task):
    """Let a task look at some columns of a piece, for each number that arrives."""

    task: Task
    names: tuple[str, ...]
    pieces: tuple[Piece, ...]

    def run(self, batches: Batches, _: int) -> Iterator[Mapping[str, Any]]:
        """Give what the task gives, or nothing where a file is not there for this machine."""
        for number in list_numbers(batches):
            if Path(self.pieces[number].path).is_file():
                yield from self.task.run(self._read(self.pieces[number]), number)
            else:
                yield {"result": pickle.dumps(None)}

    def _read(self, piece: Piece) -> Iterator[Any]:
        import pyarrow.parquet as pq

        rows, groups = 0, list(range(piece.first, piece.last))
        with pq.ParquetFile(piece.path, buffer_size=BUFFER, pre_buffer=False) as file:
            for batch in file.iter_batches(BATCH_ROWS, groups, list(self.names), use_threads=False):
                rows += batch.num_rows
                yield batch.select(list(self.names))  # not in the order of the file
        if rows != piece.rows:
            raise TableError("The table was changed while it was read.")
