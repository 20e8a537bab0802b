"""Columns of counts of Parquet and Feather files that somebody else released, read in batches."""

from __future__ import annotations

from collections.abc import Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

from tallyveil.errors import TableError
from tallyveil.tables.arrow import MOST_PARTS, measure_parquet, require_size, require_whole
from tallyveil.tables.arrow_bare import require_bare_arrow
from tallyveil.tables.arrow_file import ArrowFile
from tallyveil.tables.arrow_sizes import measure_arrow
from tallyveil.tables.arrow_values import import_pyarrow
from tallyveil.tables.bare import require_bare_parquet, require_bare_schema
from tallyveil.tables.base import Table
from tallyveil.tables.identity import FileIdentity
from tallyveil.untrusted import open_file

__all__ = ["open_released_feather", "open_released_parquet"]

WINDOW = 1 << 12


def open_released_parquet(path: Path, counts: Sequence[str]) -> Table:
    """Open columns of counts of somebody else's Parquet file, to be read in batches.

    What they unpack to is added up from headers first, as `read_released_arrow` does.
    """
    pa = import_pyarrow()
    import pyarrow.parquet as pq

    try:
        identity = FileIdentity.of(path)
        with (
            FileBytes(path) as content,
            pq.ParquetFile(path, thrift_container_size_limit=MOST_PARTS) as file,
        ):
            schema, meta = file.schema_arrow, file.metadata
            require_whole(schema, counts)
            require_bare_parquet(schema, meta, len(content))
            require_size(measure_parquet(file, content, counts), len(content))
            rows = sum(meta.row_group(at).num_rows for at in range(meta.num_row_groups))
    except (pa.ArrowException, OSError, ValueError, KeyError) as problem:
        if isinstance(problem, TableError):
            raise
        raise TableError("The file cannot be read as Parquet.") from problem
    return ArrowFile(identity, schema, tuple(counts), "parquet", rows)


def open_released_feather(path: Path, counts: Sequence[str]) -> Table:
    """Open columns of counts of somebody else's Feather file, to be read in batches.

    Everything that `read_released_arrow` refuses is refused, some of it when the batches are read.
    """
    pa = import_pyarrow()
    try:
        identity = FileIdentity.of(path)
        with open_file(path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            rows, size = measure_arrow(content)
            require_bare_arrow(content)
            length = len(content)
        with pa.OSFile(str(path)) as source:
            schema = pa.ipc.open_file(source).schema
        require_whole(schema, counts)
        require_bare_schema(schema)
        require_size(size, length)
        identity.require_same()
    except (pa.ArrowException, OSError, ValueError, KeyError) as problem:
        if isinstance(problem, TableError):
            raise
        raise TableError("The file cannot be read as Arrow.") from problem
    return ArrowFile(identity, schema, tuple(counts), "arrow", rows)


class FileBytes(Sequence[int]):
    """The bytes of a file, read where they are looked at."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("rb")
        self.size = path.stat().st_size
        self.start, self.window = 0, b""

    def __enter__(self) -> FileBytes:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, at: Any) -> Any:
        if not 0 <= at - self.start < len(self.window):
            self.file.seek(at)
            self.start, self.window = at, self.file.read(WINDOW)
        return self.window[at - self.start]
