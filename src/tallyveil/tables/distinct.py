"""Find rows with the same labels in a table of any length, with six bytes of memory for each.

Rows are hashed batch by batch to 64 bits. Of up to `MOST_HELD` rows whole hashes are compared. Of
more, only their stems: hardly any occur more than once, unless rows repeat others. The table is
read again for the whole hashes of just these, and for the first that occurs twice. Equal hashes are
no proof: the rows that have them are read once more and their labels compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tallyveil.arrays import Integers, Mask
from tallyveil.tables.base import Table
from tallyveil.tables.equal import Stems, find_equal, find_marked
from tallyveil.tables.hashes import Hashes

__all__ = ["CANNOT_HASH", "find_repeat"]

MOST_HELD = 1 << 20
"""Whole hashes that are sorted: 8 MiB."""

MOST_COLLECTED = 1 << 21
"""Whole hashes that are compared at once: 16 MiB, more than chance gives. Where rows do repeat
others there may be more, which are compared part by part."""

CANNOT_HASH = -2
"""Said of a table whose labels have to be compared as codes."""


def find_repeat(table: Table, names: Sequence[str]) -> int | None:
    """Find the first row that has the labels of an earlier one, from 0; None if there is none.

    Where millions of rows do, it may be another of them.

    `CANNOT_HASH` where a column has a type that is not hashed.
    """
    rows = _Rows(table, names)
    try:
        suspects = _find_suspects(rows)
    except _HashError:
        return CANNOT_HASH
    if not len(suspects):
        return None
    first = _find_first(rows, suspects)
    found = _compare_labels(rows, suspects[first : first + 1])
    return _compare_labels(rows, suspects) if found is None else found


class _HashError(Exception):
    """A column has a type that is not hashed."""


@dataclass(frozen=True)
class _Rows:
    """Rows by their labels."""

    table: Table
    names: Sequence[str]

    def __len__(self) -> int:
        return self.table.rows

    def batches(self) -> Iterator[Table]:
        """Read the labels, batch by batch."""
        yield from self.table.select(self.names).batches()

    def hash(self, batch: Table) -> Hashes:
        """Hash the labels of a batch."""
        hashes = batch.hash_labels(self.names)
        if hashes is None:
            raise _HashError
        return hashes

    def hashes(self) -> Iterator[Hashes]:
        """Hash all labels, batch by batch."""
        return map(self.hash, self.batches())


def _find_suspects(rows: _Rows) -> Hashes:
    """The hashes that several rows have."""
    if len(rows) <= MOST_HELD:
        return find_equal(np.concatenate([*rows.hashes(), np.zeros(0, np.uint64)]))
    stems = Stems(len(rows))
    for hashes in rows.hashes():
        stems.add(hashes)
    marked = stems.mark_repeated()
    del stems
    return _find_whole(rows, marked) if marked.any() else np.zeros(0, np.uint64)


def _find_whole(rows: _Rows, marked: Mask) -> Hashes:
    """The whole hashes that occur more than once; enough of them to have that of the first row.

    Hashes that do not begin as a repeated stem are left out, which leaves few.
    """
    found, size = _collect(rows, marked)
    if size <= MOST_COLLECTED:
        return find_equal(found)
    parts = 1 << (size // MOST_COLLECTED).bit_length()
    each = (find_equal(_collect(rows, marked, part, parts)[0]) for part in range(parts))
    return next((repeated for repeated in each if len(repeated)), np.zeros(0, np.uint64))


def _collect(rows: _Rows, marked: Mask, part: int = 0, parts: int = 1) -> tuple[Hashes, int]:
    """The hashes of one part that begin as marked, and how many there are.

    Parts are told apart by the last bits, `parts` is a power of two. A part of more than twice the
    hashes that are its share has some of them more than once, and so have those read until then.
    """
    found, size = [np.zeros(0, np.uint64)], 0
    for hashes in rows.hashes():
        own = hashes[find_marked(hashes, marked) & ((hashes & np.uint64(parts - 1)) == part)]
        size += len(own)
        if size <= 2 * MOST_COLLECTED or parts > 1:
            found.append(own)
        if size > 2 * MOST_COLLECTED and parts > 1:
            break
    return np.concatenate(found), size


def _find_first(rows: _Rows, suspects: Hashes) -> int:
    """Which of the hashes that occur more than once does so first."""
    seen = np.zeros(len(suspects), dtype=bool)
    for hashes in rows.hashes():
        order = np.argsort(hashes, kind="stable")  # what is looked up in order is found quickly
        found, places = _find_suspicious(hashes[order], suspects)
        again = seen[places]
        again[1:] |= places[1:] == places[:-1]
        if again.any():
            first = np.argmin(np.where(again, order[found], len(hashes)))
            return int(places[first])
        seen[places] = True
    return 0


def _find_suspicious(hashes: Hashes, suspects: Hashes) -> tuple[Integers, Integers]:
    """Rows whose hash is one of these, and which one it is."""
    places = np.minimum(np.searchsorted(suspects, hashes), len(suspects) - 1)
    rows = np.flatnonzero(suspects[places] == hashes)
    return rows, places[rows]


def _compare_labels(rows: _Rows, suspects: Hashes) -> int | None:
    """The first row whose labels occurred before, among rows with suspicious hashes."""
    seen: set[tuple[str, ...]] = set()
    start = 0
    for batch in rows.batches():
        found, _ = _find_suspicious(rows.hash(batch), suspects)
        if len(found):
            columns = [np.array(batch.labels(name), dtype=object)[found] for name in rows.names]
            for row, labels in zip(found.tolist(), zip(*columns, strict=True), strict=True):
                if labels in seen:
                    return start + int(row)
                seen.add(labels)
        start += batch.rows
    return None
