"""Arrow columns built anew from their values, so that nothing else of their memory goes along."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.errors import TableError
from tallyveil.tables.arrow_values import make_counts, view_numbers
from tallyveil.tables.base import Order

__all__ = ["read_storage", "rebuild_array", "rebuild_table"]


def rebuild_table(table: Any, order: Order) -> Any:
    """Build `table` anew in one chunk: its rows in `order`, and nothing else its memory held.

    Chunks, metadata (pandas notes dropped columns there), buffers (rows that are not published,
    values beneath nulls) and dictionaries (unused values, order of first appearance) may tell of
    the confidential table.
    """
    import pyarrow as pa

    columns, fields = [], []
    for field in table.schema:
        column = rebuild_array(table.column(field.name), field.name, order)
        columns.append(column)
        fields.append(pa.field(field.name, column.type, field.nullable))
    return pa.table(columns, schema=pa.schema(fields))


def rebuild_array(column: Any, name: str, order: Order = None) -> Any:
    """Build a column anew, in buffers of its own; a `TableError` names one that cannot be."""
    import pyarrow as pa

    chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    try:
        whole = _join(chunked)
        return _rebuild(whole, np.arange(len(whole)) if order is None else order)
    except (pa.ArrowException, TypeError):
        raise TableError(
            f"Column {name!r} has the type {column.type}, whose memory may hold more than its "
            "rows. Convert it to a plain type first."
        ) from None


def _join(chunked: Any) -> Any:
    """Join chunks into one array."""
    import pyarrow as pa

    if pa.types.is_dictionary(chunked.type):
        chunked = chunked.unify_dictionaries()
    if chunked.num_chunks == 1:
        return chunked.chunk(0)
    return pa.concat_arrays(chunked.chunks) if chunked.num_chunks else pa.array([], chunked.type)


def _rebuild(array: Any, order: Integers) -> Any:
    """Build an array anew, in `order`; a type that is not known raises a TypeError."""
    import pyarrow as pa

    kind, types = array.type, pa.types
    if types.is_dictionary(kind):
        return _rebuild_dictionary(array, order)
    if kind in (pa.string_view(), pa.binary_view()):
        plain = pa.large_string() if kind == pa.string_view() else pa.large_binary()
        return _rebuild(array.cast(plain), order).cast(kind)
    if types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
        return _rebuild_nested(array.take(make_counts(order)))
    if types.is_null(kind):
        return pa.nulls(len(array))
    taken = array.take(make_counts(order))  # copies rows, and zeros for nulls
    if taken.null_count:
        return taken
    return pa.Array.from_buffers(kind, len(taken), [None, *taken.buffers()[1:]])


def _rebuild_nested(array: Any) -> Any:
    """Build structs and lists anew, part by part."""
    import pyarrow as pa

    kind, types = array.type, pa.types
    mask = array.is_null() if array.null_count else None
    if types.is_struct(kind):
        rows = np.arange(len(array))
        parts = [_rebuild(part, rows) for part in array.flatten()]  # with the nulls of the whole
        named = zip(kind, parts, strict=True)
        fields = [pa.field(field.name, part.type, field.nullable) for field, part in named]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)
    builders = {"list": (pa.ListArray, pa.int32()), "large_list": (pa.LargeListArray, pa.int64())}
    word = str(kind).partition("<")[0]
    if word not in builders:
        raise TypeError(kind)
    builder, width = builders[word]
    lengths = view_numbers(array.value_lengths().fill_null(0))
    offsets = pa.array(np.append(0, np.cumsum(lengths)), width)
    values = array.flatten()
    return builder.from_arrays(offsets, _rebuild(values, np.arange(len(values))), mask=mask)


def _rebuild_dictionary(coded: Any, order: Integers) -> Any:
    """Rebuild a dictionary from what occurs: sorted, or in its own order where it is ordered."""
    import pyarrow as pa
    import pyarrow.compute as pc

    used = coded.dictionary.take(pc.drop_null(pc.unique(coded.indices)))
    levels = pc.drop_null(pc.unique(used))
    if coded.type.ordered:
        levels = coded.dictionary.filter(pc.is_in(coded.dictionary, value_set=levels))
    else:
        levels = levels.take(pc.sort_indices(levels))
    # no value is written out for every row: one long text may stand in all of them
    codes = pc.index_in(coded.dictionary, value_set=levels).cast(pa.int32()).take(coded.indices)
    return pa.DictionaryArray.from_arrays(
        _rebuild(codes, order),
        _rebuild(levels, np.arange(len(levels))),
        ordered=coded.type.ordered,
    )


def read_storage(table: Any) -> Any:
    """The same table, where types that only a database knows are read as what stores them.

    PostgreSQL's numeric, an Arrow extension, becomes text for instance.
    """
    import pyarrow as pa

    columns = [
        column.cast(column.type.storage_type)
        if isinstance(column.type, pa.BaseExtensionType)
        else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)
