"""A published folder of Parquet files, read batch by batch as one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tallyveil.errors import TableError
from tallyveil.tables.arrow import ArrowTable, damaged, read_arrow
from tallyveil.tables.arrow_file import ArrowFile
from tallyveil.tables.arrow_released import open_released_parquet
from tallyveil.tables.arrow_values import import_pyarrow
from tallyveil.tables.base import BATCH_ROWS
from tallyveil.tables.distributed import name_parts

__all__ = ["PartedFile", "describe_parts", "list_parts", "load_parts", "open_parts"]


@dataclass(frozen=True, eq=False)
class PartedFile(ArrowFile):
    """Several Parquet files of one schema, one after the other."""

    files: tuple[ArrowFile, ...] = ()

    def select(self, names: Sequence[str]) -> PartedFile:
        """Give the same files, of which only some columns are read."""
        files = tuple(file.select(names) for file in self.files)
        return replace(self, wanted=files[0].wanted, files=files)

    def batches(self, size: int = BATCH_ROWS) -> Iterator[ArrowTable]:
        """Read the files in pieces of at most `size` rows."""
        for file in self.files:
            yield from file.batches(size)

    def load(self) -> ArrowTable:
        """Read all files into memory."""
        return load_parts(self.identity.path.parent)


def list_parts(folder: Path) -> tuple[Path, ...]:
    """The files of a published folder: exactly those that are numbered from 0 on, and plain."""
    present = sorted(path.name for path in folder.iterdir())
    if not present or present != list(name_parts(len(present))):
        raise TableError(f"{folder.name} holds other files than numbered parts of one table.")
    return tuple(folder / name for name in present)


def load_parts(folder: Path) -> ArrowTable:
    """Read a published folder into memory."""
    import pyarrow as pa

    tables = [read_arrow(path, "parquet").table for path in list_parts(folder)]
    return ArrowTable(pa.concat_tables(tables), "parquet", from_file=True)


def describe_parts(folder: Path) -> tuple[ArrowTable, int]:
    """The columns of a folder of Parquet files, as a table without rows, and how many it has."""
    pa = import_pyarrow()
    import pyarrow.parquet as pq

    paths = sorted(path for path in folder.glob("[!._]*.parquet") if path.is_file())
    if not paths:
        raise TableError(f"{str(folder)!r} is a folder without Parquet files; a table is one file.")
    schemas, rows = [], 0
    for path in paths:
        try:
            with pq.ParquetFile(path) as file:
                schemas.append(file.schema_arrow)
                rows += file.metadata.num_rows
        except (pa.ArrowException, OSError) as problem:
            raise damaged("parquet") from problem
    if any(not schema.equals(schemas[0]) for schema in schemas):
        raise TableError(f"The files of {folder.name} have different columns.")
    return ArrowTable(schemas[0].empty_table(), "parquet", from_file=True), rows


def open_parts(folder: Path, counts: Sequence[str]) -> PartedFile:
    """Open columns of counts of a folder that somebody else published."""
    paths = list_parts(folder)
    files: list[Any] = [open_released_parquet(path, counts, part=True) for path in paths]
    schema = files[0].schema
    if any(not file.schema.equals(schema, check_metadata=True) for file in files):
        raise TableError(f"The files of {folder.name} have different columns.")
    rows = sum(file.rows for file in files)
    first = files[0]
    whole = replace(first, rows=rows)
    return PartedFile(**vars(whole), files=tuple(files))
