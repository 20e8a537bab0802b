"""Find rows with the same labels in a table of any length, with bounded memory.

Rows are hashed batch by batch. Up to `MOST_HELD` hashes are sorted in memory; more go to a
temporary file without a name, which the system removes even if the program is killed.
Equal hashes are no proof: the rows that have them are read again and their labels compared.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import IO

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.errors import TableError
from tallyveil.tables.base import Table
from tallyveil.tables.hashes import Hashes

__all__ = ["CANNOT_HASH", "find_repeat"]

MOST_HELD = 1 << 23
"""Hashes that are sorted at once: 64 MiB."""

MOST_BITS = 16
"""Leading bits by which longer tables are parted, at the most."""

CANNOT_HASH = -2
"""Said of a table whose labels have to be compared as codes."""


def find_repeat(table: Table, names: Sequence[str]) -> int | None:
    """Find the first row that has the labels of an earlier one, from 0; None if there is none.

    `CANNOT_HASH` where a column has a type that is not hashed.
    """
    runs = _Runs(table.rows)
    try:
        with runs.file:
            for hashes in _hash_batches(table, names):
                if hashes is None:
                    return CANNOT_HASH
                runs.add(hashes)
            suspects = runs.find_equal()
    except OSError as problem:
        raise TableError(
            f"The rows of so long a table are compared with temporary files, and those cannot be "
            f"written to {tempfile.gettempdir()!r}: {problem.strerror}."
        ) from problem
    return _compare_labels(table, names, suspects) if len(suspects) else None


def _hash_batches(table: Table, names: Sequence[str]) -> Iterator[Hashes | None]:
    for batch in table.select(names).batches():
        yield batch.hash_labels(names)


class _Runs:
    """Hashes of batches: all in memory, or in a file where each batch is ordered by leading bits.

    Equal hashes have equal leading bits, so a part of every batch is sorted at a time.
    """

    def __init__(self, rows: int) -> None:
        self.file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
        self.bits = min((rows // MOST_HELD * 2).bit_length(), MOST_BITS)
        self.held: list[Hashes] = []
        self.cuts: list[Integers] = []
        """For every batch in the file, where its parts start and where the last one ends."""

    def add(self, hashes: Hashes) -> None:
        """Take the hashes of a batch."""
        if not self.bits:
            self.held.append(hashes)
            return
        part = (hashes >> np.uint64(64 - self.bits)).astype(
            np.uint16 if self.bits > 8 else np.uint8
        )
        self.file.write(hashes[np.argsort(part, kind="stable")].data)  # counts, does not compare
        start = self.cuts[-1][-1] if self.cuts else 0
        sizes = np.bincount(part, minlength=1 << self.bits)
        self.cuts.append(np.cumsum(np.append(start, sizes)))

    def find_equal(self) -> Hashes:
        """The hashes that occur more than once, sorted."""
        if not self.bits:
            return _repeated(self.held)
        self.file.flush()
        return np.concatenate([_repeated(self._read(part)) for part in range(1 << self.bits)])

    def _read(self, part: int) -> list[Hashes]:
        """The hashes of one part, of every batch."""
        found = []
        for cuts in self.cuts:
            start, stop = 8 * int(cuts[part]), 8 * int(cuts[part + 1])
            self.file.seek(start)
            found.append(np.frombuffer(self.file.read(stop - start), np.uint64))
        return found


def _repeated(pieces: Sequence[Hashes]) -> Hashes:
    ordered = np.concatenate(pieces) if pieces else np.zeros(0, np.uint64)
    ordered.sort()
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


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
