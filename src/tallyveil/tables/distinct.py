"""Find rows with the same labels in a table of any length, with bounded memory.

Rows are hashed batch by batch. Up to `MOST_HELD` hashes are sorted in memory; more go as sorted
runs to a temporary file without a name, which the system removes even if the program is killed.
Equal hashes are no proof: the rows that have them are read again and their labels compared.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import IO

import numpy as np

from tallyveil.errors import TableError
from tallyveil.tables.base import Table
from tallyveil.tables.hashes import Hashes

__all__ = ["CANNOT_HASH", "find_repeat"]

MOST_HELD = 1 << 23
"""Hashes that are sorted at once: 64 MiB."""

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
    """Hashes in sorted runs: one in memory, or several in a file."""

    def __init__(self, rows: int) -> None:
        self.room = np.empty(min(rows, MOST_HELD), np.uint64)
        self.filled = 0
        self.file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
        parts = -(-rows // MOST_HELD) * 2
        self.edges = np.array([part * 2**64 // parts for part in range(1, parts)], np.uint64)
        self.cuts: list[list[int]] = []
        """For every run in the file, where its part between two edges starts."""

    def add(self, hashes: Hashes) -> None:
        """Take the hashes of a batch."""
        while len(hashes):
            taken = min(len(hashes), len(self.room) - self.filled)
            self.room[self.filled : self.filled + taken] = hashes[:taken]
            self.filled, hashes = self.filled + taken, hashes[taken:]
            if self.filled == len(self.room) and len(hashes):
                self._write()

    def _write(self) -> None:
        run = self.room[: self.filled]
        run.sort()
        start = sum(cuts[-1] - cuts[0] for cuts in self.cuts)
        inner = np.searchsorted(run, self.edges).tolist()
        self.cuts.append([start, *(start + cut for cut in inner), start + len(run)])
        self.file.write(run.data)
        self.filled = 0

    def find_equal(self) -> Hashes:
        """The hashes that occur more than once, sorted."""
        if not self.cuts:
            run = self.room[: self.filled]
            run.sort()
            return _repeated(run)
        self._write()
        self.room = np.empty(0, np.uint64)
        found = []
        for part in range(len(self.edges) + 1):
            pieces = [self._read(cuts[part], cuts[part + 1]) for cuts in self.cuts]
            joined = np.concatenate(pieces)
            joined.sort()
            found.append(_repeated(joined))
        return np.concatenate(found)

    def _read(self, start: int, stop: int) -> Hashes:
        self.file.seek(8 * start)
        found: Hashes = np.frombuffer(self.file.read(8 * (stop - start)), np.uint64)
        return found


def _repeated(ordered: Hashes) -> Hashes:
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
