"""Find rows with the same labels in a table of any length, with a few bytes of memory for each.

Rows are hashed batch by batch to 64 bits. Up to `MOST_HELD` hashes are sorted as they are. Of more,
the leading halves are sorted, which shows what halves occur more than once: few, unless rows repeat
others. The table is read again for the whole hashes of just these. Equal hashes are no proof: the
rows that have them are read once more and their labels compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.tables.base import Table
from tallyveil.tables.hashes import Hashes

__all__ = ["CANNOT_HASH", "find_repeat"]

HALF = 32
MOST_HELD = 1 << 24
"""Whole hashes that are held: 128 MiB."""

PIECE = 1 << 16
"""Hashes that are compared at once."""

CANNOT_HASH = -2
"""Said of a table whose labels have to be compared as codes."""


def find_repeat(table: Table, names: Sequence[str]) -> int | None:
    """Find the first row that has the labels of an earlier one, from 0; None if there is none.

    `CANNOT_HASH` where a column has a type that is not hashed.
    """
    is_short, start = table.rows <= MOST_HELD, 0
    kept = np.empty(table.rows, np.uint64 if is_short else np.uint32)
    shift = np.uint64(0 if is_short else HALF)
    for hashes in _hash_batches(table, names):
        if hashes is None:
            return CANNOT_HASH
        part = kept[start : start + len(hashes)]
        np.right_shift(hashes, shift, out=part, casting="unsafe")
        start += len(hashes)
    suspects = _find_equal(kept)
    if not is_short and len(suspects):
        del kept
        suspects = _find_whole(table, names, suspects)
    return _compare_labels(table, names, suspects) if len(suspects) else None


def _hash_batches(table: Table, names: Sequence[str]) -> Iterator[Hashes | None]:
    for batch in table.select(names).batches():
        yield batch.hash_labels(names)


def _find_whole(table: Table, names: Sequence[str], halves: NDArray[Any]) -> Hashes:
    """The whole hashes that occur more than once; enough of them to have that of the first row.

    Hashes whose beginning is that of no shared half are left out, which leaves few.
    """
    bits = min(len(halves).bit_length() + 3, HALF)
    wanted = np.zeros(1 << bits, dtype=bool)
    wanted[halves >> np.uint32(HALF - bits)] = True
    held: list[Hashes] = []
    size = 0
    for hashes in _hash_batches(table, names):
        assert hashes is not None  # as in the first pass
        held.append(hashes[wanted[hashes >> np.uint64(2 * HALF - bits)]])
        size += len(held[-1])
        if size > MOST_HELD:  # far more than chance gives: rows do repeat others
            found = _find_equal(np.concatenate(held))
            if len(found):
                return found
            size = 0
    return _find_equal(np.concatenate(held))


def _find_equal(values: NDArray[Any]) -> NDArray[Any]:
    """The values that occur more than once, sorted; `values` are sorted in place."""
    values.sort()
    pieces = (values[start : start + PIECE + 1] for start in range(0, len(values) or 1, PIECE))
    return np.unique(np.concatenate([piece[1:][piece[1:] == piece[:-1]] for piece in pieces]))


def _compare_labels(table: Table, names: Sequence[str], suspects: Hashes) -> int | None:
    """The first row whose labels occurred before, among rows with suspicious hashes."""
    seen: set[tuple[str, ...]] = set()
    start = 0
    for batch in table.select(names).batches():
        hashes = batch.hash_labels(names)
        if hashes is None:
            return CANNOT_HASH
        place = np.minimum(np.searchsorted(suspects, hashes), len(suspects) - 1)
        rows = np.flatnonzero(suspects[place] == hashes)
        if len(rows):
            columns = [np.array(batch.labels(name), dtype=object)[rows] for name in names]
            for row, labels in zip(rows.tolist(), zip(*columns, strict=True), strict=True):
                if labels in seen:
                    return start + row
                seen.add(labels)
        start += batch.rows
    return None
