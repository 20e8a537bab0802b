"""Rows of a long released table tallied by group and published count, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.tables.conditions import Condition, RowChooser
from tallyveil.tables.counts import RowError
from tallyveil.tables.labels import number_together
from tallyveil.tables.table import Table

__all__ = ["GroupTally", "tally_groups"]

FEW_PAIRS = 1 << 20
"""Up to so many pairs of a group and a count are tallied in one array; waiting ones are joined."""


@dataclass(frozen=True, eq=False)
class GroupTally:
    """The published counts of a group that differ, ascending, and how many rows have each."""

    counts: Integers
    times: Integers


def tally_groups(
    table: Table,
    by: Sequence[str],
    where: Sequence[Condition],
    names: Sequence[str],
    read: Callable[[Table], Integers],
) -> dict[tuple[str, ...], GroupTally]:
    """Tally the rows that meet all conditions, by their labels in the columns `by`.

    Groups come in the order in which they occur first. Takes one batch of memory, and a few numbers
    for every pair of a group and a count that occurs.

    Parameters
    ----------
    table : Table
        A released table, whose batches are read once.
    by : sequence of str
        The columns that make groups; without any there is one group, if it has a row.
    where : sequence of Condition
        Conditions that rows meet.
    names : sequence of str
        The columns that `read` reads.
    read : callable
        Gives the published count of every row of a batch.

    Examples
    --------
    >>> from tallyveil.tables.read import read_table
    >>> counts = read_table([3, 0, 3])
    >>> tallied = tally_groups(counts, [], [], ["count"], lambda batch: batch.counts("count"))
    >>> tallied[()].counts.tolist(), tallied[()].times.tolist()
    ([0, 3], [1, 2])
    """
    chooser, tallies, start = RowChooser(where), _Tallies(), 0
    needed = dict.fromkeys((*by, *(condition.column for condition in where), *names))
    for condition in where:
        condition.require_column(table)
    for batch in table.batches(list(needed)):
        try:
            counts = read(batch)
        except RowError as error:
            raise RowError(error.column, start + error.row, error.what) from None
        tallies.add(batch, by, np.flatnonzero(chooser.choose(batch)), counts)
        start += batch.rows
    chooser.require_types()
    return tallies.join()


@dataclass
class _Tallies:
    """How often every pair of a group and a count has occurred so far."""

    groups: dict[tuple[str, ...], int] = field(default_factory=dict)
    parts: list[Integers] = field(default_factory=list)  # shape (3, pairs): group, count, times
    waiting: int = 0

    def add(self, batch: Table, by: Sequence[str], rows: Integers, counts: Integers) -> None:
        """Count the chosen rows of a batch."""
        if not len(rows):
            return
        columns = [batch.codes(name) for name in by]
        codes = [column.codes[rows] for column in columns]
        numbers = _number(codes, len(rows))
        first = np.full(int(numbers.max()) + 1, len(rows))
        first[numbers[::-1]] = np.arange(len(rows))[::-1]  # the last to be assigned is the first
        group_of = np.zeros(len(first), np.int64)
        for number in np.argsort(first, kind="stable").tolist():
            if (row := first[number]) == len(rows):
                break  # this number and all others do not occur
            parts = zip(columns, codes, strict=True)
            key = tuple(column.labels[group_codes[row]] for column, group_codes in parts)
            group_of[number] = self.groups.setdefault(key, len(self.groups))
        present, values, times = _count_pairs(numbers, counts[rows])
        self.parts.append(np.stack([group_of[present], values, times]))
        self.waiting += len(times)
        if self.waiting > max(FEW_PAIRS, self.parts[0].shape[1]):
            self._merge()

    def _merge(self) -> None:
        """Add up what was counted of every pair, sorted by group and then by count."""
        pairs = np.concatenate(self.parts, axis=1)
        pairs = pairs[:, np.lexsort((pairs[1], pairs[0]))]
        changes = (np.diff(pairs[:2], prepend=-1) != 0).any(axis=0)
        starts = np.flatnonzero(changes)
        self.parts = [np.stack([*pairs[:2, starts], np.add.reduceat(pairs[2], starts)])]
        self.waiting = 0

    def join(self) -> dict[tuple[str, ...], GroupTally]:
        """The tally of every group."""
        if not self.groups:
            return {}
        self._merge()
        groups, counts, times = self.parts[0]
        ends = np.flatnonzero(np.diff(groups)) + 1
        pieces = zip(np.split(counts, ends), np.split(times, ends), strict=True)
        return dict(zip(self.groups, (GroupTally(*piece) for piece in pieces), strict=True))


def _number(codes: Sequence[Integers], rows: int) -> Integers:
    """Number rows by what they hold in columns of codes."""
    if not codes:
        return np.zeros(rows, np.int64)
    return codes[0] if len(codes) == 1 else number_together(codes)


def _count_pairs(numbers: Integers, counts: Integers) -> tuple[Integers, Integers, Integers]:
    """The pairs of a number and a count that occur, and how often each does."""
    values = None
    top = int(counts.max()) + 1
    if (int(numbers.max()) + 1) * top > FEW_PAIRS:
        values, counts = np.unique(counts, return_inverse=True)
        top = len(values)
    pairs = numbers.astype(np.int64) * top + counts
    if (int(numbers.max()) + 1) * top > FEW_PAIRS:
        pairs_present, times = np.unique(pairs, return_counts=True)
    else:
        tallied = np.bincount(pairs)
        pairs_present = np.flatnonzero(tallied)
        times = tallied[pairs_present]
    position = pairs_present % top
    return pairs_present // top, position if values is None else values[position], times
