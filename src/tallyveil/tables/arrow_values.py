"""Arrow arrays as NumPy arrays and back, by their buffers.

pyarrow's own conversions import pandas wherever it is installed, which takes longer than a table
of a million rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Mask
from tallyveil.errors import MissingExtraError
from tallyveil.tables.hashes import EMPTY, Hashes, hash_numbers, hash_text
from tallyveil.tables.text_column import TextColumn

__all__ = [
    "find_nulls",
    "hash_column",
    "import_pyarrow",
    "join_chunks",
    "make_counts",
    "make_empty",
    "measure_values",
    "measure_width",
    "read_text",
    "view_numbers",
]

TYPES = {"halffloat": "float16", "float": "float32", "double": "float64"}
"""What Arrow's floating types are called in NumPy; whole numbers have the same names."""

NOTHING = np.zeros(0, np.uint8)


def import_pyarrow() -> Any:
    """Import pyarrow, or say what to install."""
    try:
        import pyarrow as pa
    except ImportError as missing:
        raise MissingExtraError("pyarrow", "tables") from missing
    return pa


def view_numbers(column: Any) -> NDArray[Any]:
    """View whole or floating numbers; one chunk is not copied. Nulls hold any number."""
    chunks = getattr(column, "chunks", [column])
    views = [_view_chunk(chunk) for chunk in chunks]
    if len(views) == 1:
        return views[0]
    kind = str(column.type)
    return np.concatenate(views) if views else np.zeros(0, TYPES.get(kind, kind))


def _view_chunk(chunk: Any) -> NDArray[Any]:
    kind = str(chunk.type)
    dtype = np.dtype(TYPES.get(kind, kind))
    if not len(chunk):
        return np.zeros(0, dtype)
    found: NDArray[Any] = np.frombuffer(
        chunk.buffers()[1], dtype, len(chunk), chunk.offset * dtype.itemsize
    )
    return found


def find_nulls(column: Any) -> Mask:
    """Find the rows of a column that hold no value."""
    import pyarrow as pa

    if not column.null_count:
        return np.zeros(len(column), dtype=bool)
    return view_numbers(column.is_null().cast(pa.uint8())).view(bool)


def make_counts(values: NDArray[Any]) -> Any:
    """Make an Arrow array of 64-bit whole numbers."""
    import pyarrow as pa

    wide = np.ascontiguousarray(values, dtype=np.int64)
    return pa.Array.from_buffers(pa.int64(), len(wide), [None, pa.py_buffer(wide)])


def make_empty(schema: Any) -> Any:
    """Make a table without rows."""
    import pyarrow as pa

    return pa.Table.from_batches([], schema)


def measure_width(kind: Any) -> int | None:
    """Give the bits that every value of a type takes; None where values differ in length."""
    try:
        return int(kind.bit_width)
    except ValueError:
        return None


def measure_values(column: Any) -> int:
    """Add up the bytes of a column's values, each written out; nothing is written out for that."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if kind in (pa.string_view(), pa.binary_view()):
        return sum(_measure_views(chunk) for chunk in column.chunks)
    if not pa.types.is_dictionary(kind):
        return int(column.nbytes)
    words = kind.value_type
    if pa.types.is_string(words) or pa.types.is_large_string(words):
        sizes = (pc.take(pc.binary_length(c.dictionary), c.indices) for c in column.chunks)
        return 8 * len(column) + sum(pc.sum(size).as_py() or 0 for size in sizes)
    width = measure_width(words)
    return int(column.cast(words).nbytes) if width is None else len(column) * (width // 8 + 1)


def _measure_views(chunk: Any) -> int:
    """Add up the bytes of views: each begins with its length, and one text may be viewed often."""
    if not len(chunk):
        return 0
    views = np.frombuffer(chunk.buffers()[1], np.int32, 4 * len(chunk), 16 * chunk.offset)
    return 16 * len(chunk) + int(np.maximum(views[::4], 0).sum(dtype=np.int64))


def hash_column(column: Any) -> Hashes | None:
    """Hash the labels of a column by its type; None for a type that is not hashed.

    Labels are equal exactly if the values are: text (no value is the empty text), whole numbers,
    doubles by their bits, days, true and false.
    """
    import pyarrow as pa

    types, kind = pa.types, column.type
    if types.is_string(kind) or types.is_large_string(kind):
        pieces = [hash_text(read_text(chunk)) for chunk in column.chunks]
    elif types.is_integer(kind) or kind in (pa.float32(), pa.float64()):
        pieces = [_hash_values(chunk) for chunk in column.chunks]
    elif types.is_date32(kind):
        pieces = [_hash_values(chunk.view(pa.int32())) for chunk in column.chunks]
    elif types.is_boolean(kind):
        pieces = [_hash_values(chunk.cast(pa.uint8())) for chunk in column.chunks]
    else:
        return None
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate(pieces) if pieces else np.zeros(0, np.uint64)


def _hash_values(chunk: Any) -> Hashes:
    if not chunk.null_count:
        return hash_numbers(view_numbers(chunk))
    found = hash_numbers(view_numbers(chunk.fill_null(0)))
    found[find_nulls(chunk)] = EMPTY
    return found


def read_text(chunk: Any) -> TextColumn:
    """Read an array of strings as bytes; no value is the empty text."""
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


def join_chunks(encoded: Any) -> tuple[NDArray[Any], Any]:
    """Join chunks that share a dictionary: the code of each row (-1 for null), the dictionary."""
    import pyarrow as pa

    if not encoded.num_chunks:
        return np.zeros(0, dtype=np.int64), pa.array([], encoded.type.value_type)
    pieces = [
        piece.cast(pa.int64()).fill_null(-1) if piece.null_count else piece
        for piece in (chunk.indices for chunk in encoded.chunks)
    ]
    return np.concatenate(list(map(view_numbers, pieces))), encoded.chunk(0).dictionary
