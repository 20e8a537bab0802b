"""Parquet and Feather files that are read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, Any

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.errors import TableError
from tallyveil.tables.arrow import ArrowTable, damaged, read_arrow
from tallyveil.tables.arrow_sizes import measure_arrow
from tallyveil.tables.arrow_values import (
    import_pyarrow,
    make_empty,
    measure_values,
    measure_width,
)
from tallyveil.tables.arrow_write import bound_file, choose_rows, require_writable, write_pieces
from tallyveil.tables.base import BATCH_ROWS, CountArray, Table
from tallyveil.tables.codes import Codes
from tallyveil.tables.identity import FileIdentity
from tallyveil.tables.streamed import FileTable
from tallyveil.untrusted import SMALL, UNLIKELY

__all__ = ["ArrowFile", "count_rows", "is_plain", "open_arrow"]

UNPACKED_LEAST, UNPACKED_EACH = 300 << 20, 20
"""Bytes that a file may take in memory at once, and how many more for each of its own."""

MOST_ROWS, ROWS_EACH = 50_000_000, 16
"""Rows that a small file may have, and how many a larger one may have for each of its bytes."""

NESTED = 24
"""Bytes that a value inside of a list takes at the least while it is built anew."""

AS_PARQUET = "write it as Parquet without categories and lists: that is read in batches"
BUFFER = 1 << 20
"""Bytes read at once from each column of a Parquet file."""


def open_arrow(path: Path, kind: str, *, is_ours: bool = False) -> Table:
    """Open a Parquet (kind "parquet") or Feather file (kind "arrow"), to be read in batches.

    One of a single batch, or with columns that cannot be published batch by batch (such as
    categories, whose levels are known only at the end), is read into memory. A file that holds far
    more than its size makes likely is refused, unless it `is_ours`: one that was just written.
    """
    pa = import_pyarrow()
    identity = FileIdentity.of(path)
    if not path.stat().st_size:
        raise TableError("The table is empty: the file holds no bytes.")
    try:
        if kind == "parquet":
            import pyarrow.parquet as pq

            with pq.ParquetFile(path) as file:
                rows, schema = file.metadata.num_rows, file.schema_arrow
            if not is_ours:
                _require_short_text(path, schema)
        else:
            with pa.memory_map(str(path)) as source:
                schema = pa.ipc.open_file(source).schema
            with open(path, "rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
                rows, size = measure_arrow(content)
            _require_likely(size, path, is_ours)
    except (pa.ArrowException, OSError, ValueError) as problem:
        if isinstance(problem, TableError):
            raise
        return read_arrow(path, kind)  # an old format, or words about what is wrong
    _require_rows(rows, path, is_ours)
    if rows <= BATCH_ROWS or not all(map(is_plain, schema.types)):
        coded = sum(map(pa.types.is_dictionary, schema.types))
        _require_likely(rows * (8 * len(schema.names) - 4 * coded), path, is_ours)
        if kind == "parquet":
            _require_likely(NESTED * _count_nested(path), path, is_ours, "leave its lists out")
        found = read_arrow(path, kind)
        views = (c for c in found.table.columns if c.type in (pa.string_view(), pa.binary_view()))
        _require_likely(sum(map(measure_values, views)), path, is_ours, "shorten its texts")
        return found
    return ArrowFile(identity, schema, tuple(schema.names), kind, rows)


def _count_nested(path: Path) -> int:
    """How many values a Parquet file says are inside of lists."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        meta = file.metadata
        inner = [
            at for at in range(meta.num_columns) if meta.schema.column(at).max_repetition_level
        ]
        groups = map(meta.row_group, range(meta.num_row_groups) if inner else ())
        return sum(group.column(at).num_values for group in groups for at in inner)


def _require_short_text(path: Path, schema: Any) -> None:
    """Refuse a file in which many rows refer to long texts: a batch of them fills the memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [
        f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)
    ]
    with pq.ParquetFile(path, read_dictionary=names, pre_buffer=False) as file:
        for group in range(file.num_row_groups) if names else ():
            part = {"row_groups": [group], "columns": names, "use_threads": False}
            if (
                _measure_texts(next(file.iter_batches(1, **part), None), at_most=True)
                > UNPACKED_LEAST
            ):
                for batch in file.iter_batches(BATCH_ROWS, **part):
                    _require_likely(_measure_texts(batch), path, False, "shorten its texts")


def _measure_texts(batch: Any, *, at_most: bool = False) -> int:
    """The bytes that the texts of a batch take, or as many as those of a full one take at most."""
    import pyarrow.compute as pc

    size = 0
    for column in () if batch is None else batch.columns:
        lengths = pc.binary_length(column.dictionary)  # not as NumPy's: that would import pandas
        if at_most:
            size += BATCH_ROWS * (pc.max(lengths).as_py() or 0)
        else:
            size += pc.sum(pc.take(lengths, column.indices)).as_py() or 0
    return size


def count_rows(path: Path, kind: str) -> int:
    """How many rows a file says that it has; 0 if it cannot be read."""
    pa = import_pyarrow()
    try:
        if kind == "parquet":
            import pyarrow.parquet as pq

            with pq.ParquetFile(path) as file:
                return int(file.metadata.num_rows)
        with open(path, "rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            return measure_arrow(content)[0]
    except (pa.ArrowException, OSError, ValueError):
        return 0


def _require_likely(size: int, path: Path, is_ours: bool, hint: str = AS_PARQUET) -> None:
    """Refuse a file that would fill the memory with far more than it seems to hold."""
    if size > UNPACKED_LEAST + UNPACKED_EACH * path.stat().st_size and not is_ours:
        raise TableError(f"{UNLIKELY} If that is right, {hint}.")


def _require_rows(rows: int, path: Path, is_ours: bool) -> None:
    """Refuse a file with far more rows than it seems to hold: a row takes some bytes of memory."""
    size = path.stat().st_size
    if rows > (MOST_ROWS if size <= SMALL else ROWS_EACH * size) and not is_ours:
        hint = "write it as Parquet without compression and dictionaries"
        raise TableError(f"{UNLIKELY} If that is right, {hint}.")


def is_plain(kind: Any) -> bool:
    """Whether a column of this type can be written batch by batch."""
    import pyarrow as pa

    types = pa.types
    text = types.is_string(kind) or types.is_large_string(kind)
    raw = types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    extended = isinstance(kind, pa.BaseExtensionType)
    return (text or raw or number or types.is_boolean(kind) or types.is_temporal(kind)) and (
        not extended
    )


@dataclass(frozen=True, eq=False)
class ArrowFile(FileTable):
    """A Parquet or Feather file; `wanted` are the columns that are read.

    `sizes` says what columns of text take in memory, as far as they were read.
    """

    identity: FileIdentity
    schema: Any
    wanted: tuple[str, ...]
    kind: str = "parquet"
    rows: int = 0
    sizes: dict[str, int] = field(default_factory=dict)
    stored: str = ""  # the kind of this file, where that of the published one is another
    keeper: object = None  # what a file that goes with the table goes with

    @property
    def extension(self) -> str:
        """The ending of the file."""
        return self.kind

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in order."""
        return tuple(self.schema.names)

    def select(self, names: Sequence[str]) -> ArrowFile:
        """Give the same file, of which only some columns are read."""
        return replace(self, wanted=tuple(name for name in self.names if name in set(names)))

    def batches(self, size: int = BATCH_ROWS) -> Iterator[ArrowTable]:
        """Read the file in pieces of at most `size` rows."""
        import pyarrow as pa

        found, sizes = 0, {name: 0 for name in self.wanted if self._width(name) is None}
        try:
            for batch in self._scan(size):
                found += batch.num_rows
                for name in sizes:
                    sizes[name] += batch.column(name).nbytes
                yield ArrowTable(pa.Table.from_batches([batch]), self.kind, from_file=True)
        except (pa.ArrowException, OSError) as problem:
            self.identity.require_same()
            raise damaged(self.kind) from problem
        if found != self.rows:
            raise damaged(self.kind)
        self.identity.require_same()
        self.sizes.update(sizes)

    def _width(self, name: str) -> int | None:
        return measure_width(self.schema.field(name).type)

    def _scan(self, size: int) -> Iterator[Any]:
        import pyarrow as pa

        if (self.stored or self.kind) == "parquet":
            import pyarrow.parquet as pq

            with pq.ParquetFile(self.identity.path, buffer_size=BUFFER, pre_buffer=False) as file:
                yield from file.iter_batches(size, columns=list(self.wanted), use_threads=False)
            return
        wanted = [self.names.index(name) for name in self.wanted]
        options = pa.ipc.IpcReadOptions(included_fields=wanted, use_threads=False)
        with pa.OSFile(str(self.identity.path)) as source:
            reader = pa.ipc.open_file(source, options=options)
            for at in range(reader.num_record_batches):
                batch = reader.get_batch(at)
                for start in range(0, batch.num_rows, size):
                    yield batch.slice(start, size)

    def load(self) -> ArrowTable:
        """Read the whole table into memory."""
        found = read_arrow(self.identity.path, self.stored or self.kind)
        return replace(found, kind=self.kind)

    def open_released(self, path: Path) -> Table:
        """Open a published file of the same kind."""
        return open_arrow(path, self.kind, is_ours=True)

    def counts(self, name: str) -> Integers:
        """Read a column as counts."""
        return np.concatenate([batch.counts(name) for batch in self.select([name]).batches()])

    def codes(self, name: str) -> Codes:
        """Encode the labels of a column, which is read into memory."""
        import pyarrow as pa

        pieces = [batch.table for batch in self.select([name]).batches()]
        return ArrowTable(pa.concat_tables(pieces)).codes(name)

    def type_of(self, name: str) -> str:
        """Give the Frictionless type of a column."""
        return self._empty.type_of(name)

    def build_grouped(
        self, by: Sequence[str], labels: Sequence[tuple[Any, ...]], counts: Mapping[str, CountArray]
    ) -> ArrowTable:
        """Build a table with one row for each category."""
        return self._empty.build_grouped(by, labels, counts)

    def bound_released(self, counts: Mapping[str, CountArray], keep: Sequence[str]) -> int:
        """Bound the size of the published file by that of its columns in memory."""
        widths = {name: self._width(name) for name in keep if name not in counts}
        require_writable(self.extension, map(self.schema.field, widths))
        unread = [name for name, bits in widths.items() if bits is None and name not in self.sizes]
        for _ in self.select(unread).batches() if unread else ():
            pass  # which measures them
        size = sum(
            self.sizes[name] if bits is None else self.rows * bits // 8 + self.rows // 8 + 1
            for name, bits in widths.items()
        )
        return bound_file(size + 8 * self.rows * len(counts), self.rows, len(keep) + len(counts))

    def write_released(
        self, file: IO[bytes], counts: Mapping[str, CountArray], keep: Sequence[str]
    ) -> None:
        """Write the published table."""
        pieces = self._build_pieces(counts, keep)
        first = next(pieces)
        write_pieces(file, self.extension, first.schema, chain([first], pieces))

    def _build_pieces(self, counts: Mapping[str, CountArray], keep: Sequence[str]) -> Iterator[Any]:
        """The published table, batch by batch."""
        others, start = [name for name in keep if name not in counts], 0
        size = choose_rows(self.extension, len(others) + len(counts))
        for batch in self._read_others(others, size):
            part = slice(start, start + batch.rows)
            yield batch.build_piece({name: values[part] for name, values in counts.items()}, keep)
            start = part.stop

    def _read_others(self, names: Sequence[str], size: int) -> Iterator[ArrowTable]:
        """The batches of the other columns; without any, batches of no columns."""
        if names:
            yield from self.select(names).batches(size)
            return
        import pyarrow as pa

        for start in range(0, self.rows, size):
            nothing = pa.nulls(min(size, self.rows - start))
            yield ArrowTable(pa.table({"": nothing}), self.kind, from_file=True)

    @cached_property
    def _empty(self) -> ArrowTable:
        return ArrowTable(make_empty(self.schema), self.kind, from_file=True)
