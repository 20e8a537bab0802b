"""Find rows with the same labels in a table of any length, with a few bytes of memory for each.

Rows are hashed batch by batch to 64 bits. Up to `MOST_HELD` hashes are sorted as they are. Of more,
the leading halves are sorted, which shows what halves occur more than once: few, unless rows repeat
others. The table is read again for the whole hashes of just these, and for the first that occurs
twice. Equal hashes are no proof: the rows that have them are read once more and their labels
compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers, Mask
from tallyveil.tables.base import Table
from tallyveil.tables.hashes import Hashes

__all__ = ["CANNOT_HASH", "find_repeat"]

HALF = 32
MOST_HELD = 1 << 24
"""Whole hashes that are held: 128 MiB."""

MOST_BITS = 26
"""Beginnings of hashes are told apart by so many bits: 64 MiB."""

PIECE = 1 << 16
"""Hashes that are compared at once."""

CANNOT_HASH = -2
"""Said of a table whose labels have to be compared as codes."""


def find_repeat(table: Table, names: Sequence[str]) -> int | None:
    """Find the first row that has the labels of an earlier one, from 0; None if there is none.

    `CANNOT_HASH` where a column has a type that is not hashed.
    """
    is_short = table.rows <= MOST_HELD
    kept = _hash_rows(table, names, 0 if is_short else HALF)
    if kept is None:
        return CANNOT_HASH
    suspects = _find_equal(kept)
    del kept
    if not is_short and len(suspects):
        wanted = _mark_beginnings(suspects)
        del suspects
        suspects = _find_whole(table, names, wanted)
    if not len(suspects):
        return None
    first = _find_first(table, names, suspects)
    found = _compare_labels(table, names, suspects[first : first + 1])
    return _compare_labels(table, names, suspects) if found is None else found


def _hash_rows(table: Table, names: Sequence[str], shift: int) -> NDArray[Any] | None:
    """The leading bits of every row's hash, without the last `shift`."""
    kept, start = np.empty(table.rows, np.uint32 if shift else np.uint64), 0
    for hashes in _hash_batches(table, names):
        if hashes is None:
            return None
        part = kept[start : start + len(hashes)]
        np.right_shift(hashes, np.uint64(shift), out=part, casting="unsafe")
        start += len(hashes)
    return kept


def _hash_batches(table: Table, names: Sequence[str]) -> Iterator[Hashes | None]:
    for batch in table.select(names).batches():
        yield batch.hash_labels(names)


def _mark_beginnings(halves: NDArray[Any]) -> Mask:
    """Mark how the shared halves begin, in a few bits more than tell them apart."""
    bits = min(len(halves).bit_length() + 3, MOST_BITS)
    wanted = np.zeros(1 << bits, dtype=bool)
    for start in range(0, len(halves), PIECE):
        wanted[halves[start : start + PIECE] >> np.uint32(HALF - bits)] = True
    return wanted


def _find_whole(table: Table, names: Sequence[str], wanted: Mask) -> Hashes:
    """The whole hashes that occur more than once; enough of them to have that of the first row.

    Hashes that do not begin as a shared half are left out, which leaves few.
    """
    shift = np.uint64(2 * HALF - (len(wanted).bit_length() - 1))
    held, size, checked = np.empty(table.rows, np.uint64), 0, 0
    for hashes in _hash_batches(table, names):
        assert hashes is not None  # as in the first pass
        found = hashes[wanted[hashes >> shift]]
        held[size : size + len(found)] = found  # only what is filled takes memory
        size += len(found)
        if size - checked > MOST_HELD // 2:  # far more than chance gives: rows do repeat others
            repeated = _find_equal(held[:size])
            if len(repeated):
                return repeated.copy()
            checked = size
    return _find_equal(held[:size]).copy()


def _find_equal(values: NDArray[Any]) -> NDArray[Any]:
    """The values that occur more than once, sorted; `values` are sorted in place, then lost.

    What is found takes the place of values that were compared already: it is at most half as much.
    """
    values.sort()
    found = 0
    for start in range(0, len(values), PIECE):
        piece = values[start : start + PIECE + 1]
        equal = np.unique(piece[1:][piece[1:] == piece[:-1]])
        if found and len(equal) and equal[0] == values[found - 1]:
            equal = equal[1:]
        values[found : found + len(equal)] = equal
        found += len(equal)
    return values[:found]


def _find_first(table: Table, names: Sequence[str], suspects: Hashes) -> int:
    """Which of the hashes that occur more than once does so first."""
    seen = np.zeros(len(suspects), dtype=bool)
    for hashes in _hash_batches(table, names):
        assert hashes is not None  # as in the first pass
        order = np.argsort(hashes, kind="stable")  # what is looked up in order is found quickly
        rows, places = _find_suspicious(hashes[order], suspects)
        again = seen[places]
        again[1:] |= places[1:] == places[:-1]
        if again.any():
            first = np.argmin(np.where(again, order[rows], len(hashes)))
            return int(places[first])
        seen[places] = True
    return 0


def _find_suspicious(hashes: Hashes, suspects: Hashes) -> tuple[Integers, Integers]:
    """Rows whose hash is one of these, and which one it is."""
    places = np.minimum(np.searchsorted(suspects, hashes), len(suspects) - 1)
    rows = np.flatnonzero(suspects[places] == hashes)
    return rows, places[rows]


def _compare_labels(table: Table, names: Sequence[str], suspects: Hashes) -> int | None:
    """The first row whose labels occurred before, among rows with suspicious hashes."""
    seen: set[tuple[str, ...]] = set()
    start = 0
    for batch in table.select(names).batches():
        hashes = batch.hash_labels(names)
        if hashes is None:
            return CANNOT_HASH
        rows, _ = _find_suspicious(hashes, suspects)
        if len(rows):
            columns = [np.array(batch.labels(name), dtype=object)[rows] for name in names]
            for row, labels in zip(rows.tolist(), zip(*columns, strict=True), strict=True):
                if labels in seen:
                    return start + int(row)
                seen.add(labels)
        start += batch.rows
    return None
