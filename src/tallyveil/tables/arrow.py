"""Arrow tables, from memory or from Parquet and Feather files: the home of pyarrow."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.errors import MissingExtraError, TableError
from tallyveil.tables.counts import Counts, counts_of_numbers, counts_of_objects, require_fits
from tallyveil.tables.delimited import DelimitedTable

__all__ = ["arrow_from_delimited", "arrow_table", "read_arrow"]

Order = NDArray[Any] | None


def arrow_table(source: Any) -> ArrowTable:
    """A pyarrow Table or RecordBatch from memory."""
    import pyarrow as pa

    return ArrowTable(
        pa.Table.from_batches([source]) if isinstance(source, pa.RecordBatch) else source, "arrow"
    )


def read_arrow(path: Path, kind: str) -> ArrowTable:
    """The Parquet or Feather file at `path`, or a `TableError` where it is damaged."""
    pa = _pyarrow()
    if path.stat().st_size == 0:
        raise TableError("The table is empty: the file holds no bytes.")
    try:
        if kind == "parquet":
            import pyarrow.parquet as pq

            table = pq.read_table(path, partitioning=None)
        else:
            from pyarrow import feather

            table = feather.read_table(path, memory_map=False)
    except (pa.ArrowException, OSError) as problem:
        raise TableError(
            f"The file cannot be read as {kind.capitalize()}: it is damaged or cut short."
        ) from problem
    return ArrowTable(table, kind, from_file=True)


def arrow_from_delimited(table: DelimitedTable) -> Any:
    """A pyarrow table of a CSV, integers and numbers typed, codes and text left as text."""
    pa = _pyarrow()
    types = {"integer": pa.int64(), "number": pa.float64(), "string": pa.string()}
    columns = {}
    for name in table.names:
        wanted = table.type_of(name)
        cells = [None if wanted != "string" and not cell else cell for cell in table.labels(name)]
        convert = {"integer": int, "number": float, "string": str}[wanted]
        typed = [None if cell is None else convert(cell) for cell in cells]
        columns[name] = pa.array(typed, types[wanted])
    return pa.table(columns)


def _pyarrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError as missing:
        raise MissingExtraError("pyarrow", "tables") from missing
    return pa


@dataclass(frozen=True, eq=False)
class ArrowTable:
    """A pyarrow table, from memory or from a Parquet or Feather file."""

    table: Any
    kind: str
    from_file: bool = False

    @property
    def extension(self) -> str:
        return "arrow" if self.kind == "arrow" and self.from_file else "parquet"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.table.column_names)

    @property
    def index_names(self) -> tuple[str, ...]:
        return ()

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    def counts(self, name: str) -> Counts:
        import pyarrow as pa

        column = self.table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.combine_chunks().dictionary_decode()
        missing = np.asarray(column.is_null())
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            filled = column.fill_null(0) if missing.any() else column
            return counts_of_numbers(filled.to_numpy(), name, missing)
        return counts_of_objects(column.to_pylist(), name)

    def labels(self, name: str) -> Sequence[str]:
        return ["" if v is None else str(v) for v in self.table.column(name).to_pylist()]

    def type_of(self, name: str) -> str:
        import pyarrow as pa

        found = self.table.schema.field(name).type
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

    def require_room(self, name: str, upper: int) -> None:
        import pyarrow as pa

        wanted = self._value_type(name)
        try:
            held = _as_type([0, upper], wanted).cast(pa.int64()).to_numpy()
        except pa.ArrowException:
            held = np.zeros(1, dtype=np.int64)
        require_fits(held, name, str(wanted), upper)

    def _value_type(self, name: str) -> Any:
        import pyarrow as pa

        found = self.table.schema.field(name).type
        return found.value_type if pa.types.is_dictionary(found) else found

    def released(
        self, counts: Mapping[str, Counts], keep: Sequence[str], order: Order = None
    ) -> ArrowTable:

        table = self.table.select(list(keep))
        for name, values in counts.items():
            at = table.schema.get_field_index(name)
            field = table.schema.field(at).with_type(self._value_type(name))
            table = table.set_column(at, field, _as_type(values.tolist(), field.type))
        if order is not None:
            table = table.take(order)
        return ArrowTable(_bare(table), self.kind, self.from_file)

    def grouped(
        self, by: Sequence[str], labels: Sequence[tuple[str, ...]], counts: Mapping[str, Counts]
    ) -> ArrowTable:
        import pyarrow as pa

        columns: dict[str, Any] = {}
        for at, name in enumerate(by):
            text = pa.array([label[at] for label in labels], pa.string())
            columns[name] = text.cast(self._value_type(name))
        columns |= {name: pa.array(values, pa.int64()) for name, values in counts.items()}
        return ArrowTable(pa.table(columns), self.kind, self.from_file)

    def native(self) -> Any:
        return self.table

    def to_bytes(self) -> bytes:
        buffer = io.BytesIO()
        if self.extension == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(self.table, buffer)
        else:
            from pyarrow import feather

            feather.write_feather(self.table, buffer)
        return buffer.getvalue()


def _as_type(values: Sequence[int], wanted: Any) -> Any:
    """Whole numbers as an Arrow array of any type that can hold them."""
    import pyarrow as pa

    if pa.types.is_decimal(wanted):  # Arrow casts only 64-bit widths of decimals directly
        return pa.array([Decimal(value) for value in values], wanted)
    return pa.array(values, pa.int64()).cast(wanted)


def _bare(table: Any) -> Any:
    """`table` in one chunk, without metadata, dictionaries made again from what is in it.

    Chunks, metadata (pandas keeps notes and names of dropped columns there) and dictionaries
    (unused values, order of first appearance) may tell of the confidential table.
    """
    import pyarrow as pa

    whole = table.combine_chunks()
    columns = [_recoded(whole.column(name)) for name in whole.column_names]
    fields = [field.remove_metadata() for field in whole.schema]
    return pa.table(columns, schema=pa.schema(fields))


def _recoded(column: Any) -> Any:
    """A column whose dictionary, if it has one, holds only what occurs, in order of value.

    An ordered dictionary keeps its own order, which means something.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return column
    coded = pa.chunked_array(column.chunks, column.type).combine_chunks()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    values = coded.dictionary_decode()
    levels = pc.drop_null(pc.unique(values))
    if coded.type.ordered:
        levels = coded.dictionary.filter(pc.is_in(coded.dictionary, value_set=levels))
    else:
        levels = levels.take(pc.sort_indices(levels))
    codes = pc.index_in(values, value_set=levels).cast(coded.type.index_type)
    return pa.DictionaryArray.from_arrays(codes, levels, ordered=coded.type.ordered)
