"""Rows that repeat the public labels of earlier ones, in a table of any length.

Rows are hashed batch by batch to 64 bits, with a key that is new for every run. The hashes of at
most `MOST_HELD` rows are sorted at once; longer tables are read several times, each time for some
of the hashes. Equal hashes are no proof: the rows that have them are compared label by label.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers
from tallyveil.errors import TableError
from tallyveil.tables.labels import fill_empty, view_numbers, write_texts
from tallyveil.tables.table import Table

Hashes = NDArray[np.uint64]

MOST_HELD = 1 << 26
"""Hashes that are sorted at once: 512 MiB."""

MOST_SUSPECTS = 1000
"""Repeated hashes whose rows are compared; chance gives hardly any."""

WORD = 8
LONG = 16 * WORD
"""Longer labels are hashed one by one: a single one must not cost all others its length."""

KEY = np.uint64(hash("labels") & (2**64 - 1) | 1)
"""New for every run, as hashes of text are, so that nobody can prepare labels that collide."""

FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
MASKS = np.array([(1 << 8 * size) - 1 for size in range(WORD)] + [2**64 - 1], dtype=np.uint64)


def require_distinct(table: Table, names: Sequence[str]) -> None:
    """Raise a `TableError` that names the first row with the same public labels as an earlier one.

    In a table of more than `MOST_HELD` rows, and where very many rows repeat others, it may be
    another of them.
    """
    suspects = _find_suspects(table, names) if names else ()
    if not len(suspects):
        return
    seen: set[tuple[str, ...]] = set()
    start = 0
    for batch in table.batches(names):
        rows = np.flatnonzero(np.isin(_hash_rows(batch, names), suspects))
        columns = [batch.codes(name) for name in names] if len(rows) else []
        for row in rows.tolist():
            labels = tuple(column.labels[column.codes[row]] for column in columns)
            if labels in seen:
                raise describe_repeat(start + row, names)
            seen.add(labels)
        start += batch.rows


def describe_repeat(row: int, names: Sequence[str]) -> TableError:
    """Describe the error of a row, from 0, with the same public labels as an earlier one."""
    return TableError(
        f"Row {row + 1} repeats the category of an earlier row "
        f"({', '.join(names[:4])}{', ...' if len(names) > 4 else ''}): one person could be in "
        "both. Merge the rows, or set counts.allow_duplicates=True if no person is in two "
        "rows."
    )


def _find_suspects(table: Table, names: Sequence[str]) -> Hashes:
    """Find hashes that rows share; none where a column of whole numbers rises from row to row."""
    parts = -(-table.rows // MOST_HELD)
    for part in range(parts):
        hashes = np.empty(min(table.rows, MOST_HELD + MOST_HELD // 8), np.uint64)
        size, rising = 0, dict.fromkeys(names, -np.inf)
        for batch in table.batches(names):
            _keep_rising(batch, rising)
            piece = _hash_rows(batch, names)
            piece = piece[piece % np.uint64(parts) == part] if parts > 1 else piece
            piece = piece[: len(hashes) - size]  # a part this large repeats hashes
            hashes[size : size + len(piece)] = piece
            size += len(piece)
        if rising:
            break
        hashes = hashes[:size]
        hashes.sort()
        repeated = np.flatnonzero(hashes[1:] == hashes[:-1])[:MOST_SUSPECTS]
        if len(repeated):
            return hashes[repeated]
    return np.zeros(0, np.uint64)


def _keep_rising(batch: Table, rising: dict[str, float]) -> None:
    """Forget the columns whose whole numbers do not rise."""
    import pyarrow as pa

    for name in list(rising):
        last, column = rising.pop(name), batch.column(name)
        if not pa.types.is_integer(column.type) or column.null_count:
            continue
        numbers = view_numbers(column.combine_chunks())
        if not len(numbers):
            rising[name] = last
        elif numbers[0] > last and (numbers[1:] > numbers[:-1]).all():
            rising[name] = int(numbers[-1])


def _hash_rows(batch: Table, names: Sequence[str]) -> Hashes:
    """Hash the labels of every row; rows with the same labels have the same hash."""
    hashes = np.zeros(batch.rows, np.uint64)
    for name in names:
        pieces = [_hash_column(chunk) for chunk in batch.column(name).chunks]
        hashes = _mix(hashes * SECOND + np.concatenate([np.zeros(0, np.uint64), *pieces]))
    return hashes


def _hash_column(column: Any) -> Hashes:
    """Hash an Arrow array: whole numbers by their value, everything else by its text."""
    import pyarrow as pa

    if pa.types.is_integer(column.type) and not column.null_count:
        numbers = view_numbers(column)
        return _mix(
            numbers.astype(np.int64 if numbers.dtype.kind == "i" else np.uint64).view(np.uint64)
        )
    return _hash_text(fill_empty(write_texts(column)))


def _hash_text(texts: Any) -> Hashes:
    """Hash text, eight bytes at a time; what is very long, piece by piece.

    >>> import pyarrow as pa
    >>> hashes = _hash_text(pa.array(["ab", "ab", "ba", "x" * 200, "x" * 200]))
    >>> [bool(hashes[a] == hashes[b]) for a, b in ((0, 1), (0, 2), (3, 4))]
    [True, False, True]
    """
    if not len(texts):
        return np.zeros(0, np.uint64)
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets, np.int32, len(texts) + 1, 4 * texts.offset).astype(np.int64)
    starts, lengths = ends[:-1], np.diff(ends)
    size = 0 if content is None else int(ends[-1])
    padded = np.zeros(-(-size // WORD) * WORD + 2 * WORD, np.uint8)
    padded[:size] = np.frombuffer(content, np.uint8, size) if size else ()
    words = padded.view(np.uint64)
    hashes = _mix(lengths.astype(np.uint64) * SECOND + _load(words, starts, lengths))
    rows = np.arange(len(texts))
    for offset in range(WORD, min(int(lengths.max()), LONG), WORD):
        rows = rows[lengths[rows] > offset]
        more = _load(words, starts[rows] + offset, lengths[rows] - offset)
        hashes[rows] = _mix(hashes[rows] * SECOND + more)
    for row in np.flatnonzero(lengths > LONG).tolist():
        piece = padded[starts[row] : starts[row] + lengths[row]].tobytes()
        digest = hashlib.blake2b(piece, digest_size=WORD, key=KEY.tobytes()).digest()
        hashes[row] = int.from_bytes(digest, "little")
    return hashes


def _load(words: Hashes, starts: Integers, lengths: Integers) -> Hashes:
    """Load up to eight bytes from each start, the first one lowest."""
    shift = (starts & 7).astype(np.uint64) << np.uint64(3)
    first = starts >> 3
    low = words.take(first) >> shift
    high = (words.take(first + 1) << np.uint64(1)) << (np.uint64(63) - shift)
    loaded: Hashes = (low | high) & MASKS.take(np.minimum(lengths, WORD))
    return loaded


def _mix(values: Hashes) -> Hashes:
    """Spread every bit over all others; no two words become one."""
    mixed = values ^ KEY
    mixed ^= mixed >> np.uint64(30)
    mixed *= FIRST
    mixed ^= mixed >> np.uint64(27)
    mixed *= SECOND
    mixed ^= mixed >> np.uint64(31)
    return mixed
