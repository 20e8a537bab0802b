"""Arrow tables, from memory or from Parquet and Feather files: the home of pyarrow."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.errors import TableError
from tallyveil.tables.arrow_bare import require_bare_arrow
from tallyveil.tables.arrow_rebuild import rebuild_table
from tallyveil.tables.arrow_sizes import measure_arrow, page_sizes
from tallyveil.tables.arrow_values import (
    find_nulls,
    hash_column,
    import_pyarrow,
    join_chunks,
    make_counts,
    measure_values,
    read_text,
    view_numbers,
)
from tallyveil.tables.arrow_write import bound_file, require_writable, write_pieces
from tallyveil.tables.bare import require_bare_parquet, require_bare_schema
from tallyveil.tables.base import CountArray, Order, Table
from tallyveil.tables.codes import (
    CodeArray,
    Codes,
    encode_floats,
    encode_objects,
    encode_values,
)
from tallyveil.tables.counts import convert_numbers, convert_objects
from tallyveil.tables.hashes import Hashes, join_hashes
from tallyveil.tables.text_column import TextColumn

__all__ = [
    "ArrowTable",
    "build_arrow",
    "damaged",
    "measure_parquet",
    "read_arrow",
    "read_released_arrow",
    "require_size",
    "require_whole",
    "wrap_arrow",
]

WIDE_DECIMAL = (19, 0)
"""Precision and scale of the narrowest decimal that Arrow converts 64-bit integers to."""

LARGEST_UNPACKED, UNPACKED_EACH = 48 * 2**20, 8
"""Bytes that somebody else's file may unpack to, and how many more for each of its own."""

MOST_PARTS = 10_000
"""Columns, or groups of rows, of somebody else's file."""


def wrap_arrow(source: Any) -> ArrowTable:
    """Wrap a pyarrow Table or RecordBatch."""
    import pyarrow as pa

    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    return ArrowTable(source)


def read_arrow(path: Path, kind: str) -> ArrowTable:
    """Read a Parquet file (kind "parquet") or a Feather file (kind "arrow")."""
    pa = import_pyarrow()
    if path.stat().st_size == 0:
        raise TableError("The table is empty: the file holds no bytes.")
    try:
        if kind == "parquet":
            import pyarrow.parquet as pq

            table = pq.ParquetFile(path).read()
        else:
            from pyarrow import feather

            table = feather.read_table(path, memory_map=False)
    except (pa.ArrowException, OSError) as problem:
        raise damaged(kind) from problem
    return ArrowTable(table, kind, from_file=True)


def read_released_arrow(
    content: bytes, kind: str, counts: Sequence[str], labels: Sequence[str] = ()
) -> ArrowTable:
    """Read columns of counts and of labels of somebody else's file, names and types of all.

    What the file unpacks to is added up from its headers first: `LARGEST_UNPACKED` bounds it.
    """
    pa = import_pyarrow()
    try:
        if kind == "parquet":
            read, schema, size = _open_parquet(content, counts, labels)
        else:
            _, size = measure_arrow(content)
            require_bare_arrow(content)
            reader = pa.ipc.open_file(
                pa.BufferReader(content),
                options=pa.ipc.IpcReadOptions(
                    included_fields=_place_columns(content, counts, labels)
                ),
            )
            read, schema = reader.read_all, pa.ipc.open_file(pa.BufferReader(content)).schema
            require_bare_schema(schema)
        require_size(size, len(content))
        return ArrowTable(read(), kind, from_file=True, schema=schema)
    except (pa.ArrowException, OSError, ValueError, KeyError) as problem:
        if isinstance(problem, TableError):
            raise
        raise TableError(f"The file cannot be read as {kind.capitalize()}.") from problem


def _place_columns(content: bytes, counts: Sequence[str], labels: Sequence[str]) -> list[int]:
    """Where columns stand in a Feather file; counts must be whole numbers."""
    import pyarrow as pa

    schema = pa.ipc.open_file(pa.BufferReader(content)).schema
    require_whole(schema, counts)
    return [schema.get_field_index(name) for name in (*labels, *counts)]


def _open_parquet(
    content: bytes, counts: Sequence[str], labels: Sequence[str]
) -> tuple[Callable[[], Any], Any, int]:
    """How to read columns of a Parquet file, its schema, and what they unpack to.

    Labels stay in dictionaries: one long label may stand in every row. Lists and structs are no
    labels, and not read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    limit = {"thrift_container_size_limit": MOST_PARTS}
    schema = pq.ParquetFile(pa.BufferReader(content), **limit).schema_arrow
    labels = [name for name in labels if not pa.types.is_nested(schema.field(name).type)]
    file = pq.ParquetFile(pa.BufferReader(content), read_dictionary=list(labels), **limit)
    names = [*labels, *counts]
    require_whole(schema, counts)
    require_bare_parquet(schema, file.metadata, len(content))
    size = measure_parquet(file, content, names)
    return lambda: file.read(columns=names, use_threads=False), schema, size


def measure_parquet(file: Any, content: Sequence[int], names: Sequence[str]) -> int:
    """Add up what columns of a Parquet file unpack to, from the headers of its pages."""
    meta = file.metadata
    paths = [meta.schema.column(at).path for at in range(meta.num_columns)]
    wanted = [paths.index(name) for name in names]
    size = 0
    for group in range(meta.num_row_groups):
        part = meta.row_group(group)
        for at in wanted:
            chunk = part.column(at)
            starts = (chunk.dictionary_page_offset, chunk.data_page_offset)
            start = min(offset for offset in starts if offset is not None)
            size += sum(page_sizes(content, start, chunk.total_compressed_size))
            size += 8 * max(part.num_rows, chunk.num_values, 0)
    return size


def require_size(size: int, length: int) -> None:
    """Refuse somebody else's file of `length` bytes that unpacks to far more."""
    if size > LARGEST_UNPACKED + UNPACKED_EACH * length:
        raise TableError("The data unpack to far more than a file of that size should hold.")


def require_whole(schema: Any, counts: Sequence[str]) -> None:
    """Refuse a released file whose count columns are not there or not whole numbers."""
    import pyarrow as pa

    repeated = len(set(schema.names)) != len(schema.names)
    if repeated or not all(pa.types.is_int64(schema.field(name).type) for name in counts):
        raise TableError("A released count must be a column of whole numbers of its own name.")


def build_arrow(columns: Mapping[str, Sequence[str]], types: Mapping[str, str]) -> Any:
    """Build a pyarrow table from columns of text and their types: integer, number or string.

    An empty cell of a column of numbers becomes null. Whole numbers that are too large for 64 bits
    stay text.
    """
    pa = import_pyarrow()
    convert = {"integer": (int, pa.int64()), "number": (float, pa.float64())}
    arrays = {}
    for name, cells in columns.items():
        if types[name] == "string":
            arrays[name] = pa.array(cells, pa.string())
            continue
        read, wanted = convert[types[name]]
        try:
            arrays[name] = pa.array([read(cell) if cell else None for cell in cells], wanted)
        except OverflowError:
            arrays[name] = pa.array(cells, pa.string())
    return pa.table(arrays)


@dataclass(frozen=True, eq=False)
class ArrowTable(Table):
    """A pyarrow table, from memory or from a Parquet or Feather file."""

    table: Any
    kind: str = "arrow"
    from_file: bool = False
    schema: Any = None  # of all columns, where only some were read

    @property
    def extension(self) -> str:
        """The ending of the file: arrow for what came from a Feather file, else parquet."""
        return "arrow" if self.kind == "arrow" and self.from_file else "parquet"

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in order."""
        return tuple((self.schema or self.table.schema).names)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.table.num_rows)

    def slice(self, start: int, stop: int) -> ArrowTable:
        """Give the rows `start` to `stop` as a view."""
        return replace(self, table=self.table.slice(start, stop - start))

    def counts(self, name: str) -> Integers:
        """Read a column as counts."""
        import pyarrow as pa

        column = self.table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            missing = find_nulls(column) if column.null_count else None
            filled = column if missing is None else column.fill_null(0)
            return convert_numbers(view_numbers(filled), name, missing)
        if pa.types.is_decimal(column.type) and column.null_count == 0:
            try:
                whole = view_numbers(column.cast(pa.int64()))
            except pa.ArrowInvalid:  # a fraction, or too large
                whole = np.array([-1])
            if (whole >= 0).all():
                return convert_numbers(whole, name)
        return convert_objects(_list_values(column, name), name)

    def codes(self, name: str) -> Codes:
        """Encode the labels of a column."""
        import pyarrow as pa

        column = self.table.column(name)
        kind, has_null = column.type, column.null_count > 0
        if kind in (pa.float32(), pa.float64()) and not has_null:
            return encode_floats(view_numbers(column))
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if is_text and has_null:
            column = column.fill_null("")
        try:
            encoded = column.dictionary_encode()
            if pa.types.is_dictionary(kind):  # else the chunks share one already
                encoded = encoded.unify_dictionaries()
        except pa.ArrowException:  # a type that Arrow cannot encode, or null in a dictionary
            return encode_objects(_list_values(column, name), find_nulls(column))
        codes, values = join_chunks(encoded)
        if is_text:
            return Codes(codes, values)
        if pa.types.is_integer(kind) and not has_null:
            return Codes(codes, view_numbers(values))
        return _encode_used(codes, _list_values(values, name))

    def type_of(self, name: str) -> str:
        """Give the Frictionless type of a column."""
        import pyarrow as pa

        found = (self.schema or self.table.schema).field(name).type
        for test, word in (
            (pa.types.is_integer, "integer"),
            (pa.types.is_floating, "number"),
            (pa.types.is_decimal, "number"),
            (pa.types.is_boolean, "boolean"),
            (pa.types.is_date, "date"),
            (pa.types.is_timestamp, "datetime"),
            (pa.types.is_nested, "any"),
        ):
            if test(found):
                return word
        return "string"

    def build_released(
        self, counts: Mapping[str, CountArray], keep: Sequence[str], order: Order = None
    ) -> ArrowTable:
        """Build the table that is published."""
        return ArrowTable(
            rebuild_table(self.build_piece(counts, keep), order), self.kind, self.from_file
        )

    def build_piece(self, counts: Mapping[str, CountArray], keep: Sequence[str]) -> Any:
        """Put counts into the columns `keep`, new ones last, in the memory there is."""
        import pyarrow as pa

        made = {name: make_counts(values) for name, values in counts.items()}
        names = (*keep, *(name for name in counts if name not in keep))
        columns = [made[name] if name in made else self.table.column(name) for name in names]
        fields = [
            pa.field(name, pa.int64())
            if name in made
            else self.table.schema.field(name).remove_metadata()
            for name in names
        ]
        return pa.table(columns, schema=pa.schema(fields))

    def build_grouped(
        self, by: Sequence[str], labels: Sequence[tuple[Any, ...]], counts: Mapping[str, CountArray]
    ) -> ArrowTable:
        """Build a table with one row for each category."""
        import pyarrow as pa

        columns = {name: pa.array([label[at] for label in labels]) for at, name in enumerate(by)}
        columns |= {name: make_counts(values) for name, values in counts.items()}
        return ArrowTable(pa.table(columns), self.kind, self.from_file)

    def native(self) -> Any:
        """Give the pyarrow table."""
        return self.table

    def to_bytes(self) -> bytes:
        """Write the table as Parquet or Feather."""
        buffer = io.BytesIO()
        self.write(buffer)
        return buffer.getvalue()

    def write(self, file: IO[bytes]) -> None:
        """Write the table as Parquet or Feather to an open file."""
        write_pieces(file, self.extension, self.table.schema, [self.table])

    def hash_labels(self, names: Sequence[str]) -> Hashes | None:
        """Hash text, whole numbers, doubles, dates and truth values; None for other types."""
        found = None
        for name in names:
            own = hash_column(self.table.column(name))
            if own is None:
                return None
            found = own if found is None else join_hashes(found, own)
        return found

    def text(self, name: str) -> TextColumn | None:
        """Give a column of strings as bytes."""
        import pyarrow as pa

        column = self.table.column(name)
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            return None
        whole = column.combine_chunks()
        if isinstance(whole, pa.ChunkedArray):  # no chunk at all
            whole = pa.array([], column.type)
        return read_text(whole)

    def largest_size(self) -> int:
        """Bound the size of the file by that of the columns in memory."""
        require_writable(self.extension, self.table.schema)
        size = sum(map(measure_values, self.table.columns))
        return bound_file(size, self.rows, self.table.num_columns)


def damaged(kind: str) -> TableError:
    """Give the error for a file that cannot be read."""
    return TableError(
        f"The file cannot be read as {kind.capitalize()}: it is damaged or cut short."
    )


def _list_values(column: Any, name: str) -> list[Any]:
    """The values of a column, without a word about those that Python cannot hold."""
    try:
        found: list[Any] = column.to_pylist()
    except (OverflowError, ValueError, LookupError):
        raise TableError(
            f"Column {name!r} holds a value out of all bounds, or in no known time zone."
        ) from None
    return found


def _encode_used(codes: CodeArray, values: list[Any]) -> Codes:
    """Encode by the part of a dictionary that occurs; the code -1 stands for no value."""
    codes = codes.astype(np.int64)
    occurs = np.bincount(codes + 1, minlength=len(values) + 1) > 0
    used = [value for value, found in zip([None, *values], occurs.tolist(), strict=True) if found]
    return encode_values((np.cumsum(occurs) - 1)[codes + 1], used)
