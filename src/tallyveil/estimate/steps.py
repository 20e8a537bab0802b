"""Counts handed out by rank to rows that nobody holds together: limits on their random words.

Every row has a draw and a random 64-bit word, and ranks are those of (draw, word), as in
`tallyveil.estimate.ranks`. Instead of sorting, the word is found up to which rows of one draw get
one count, digit by digit, from how many words begin with each digit. So one machine needs numbers
that grow with the range of the counts, never with the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers
from tallyveil.errors import ArgumentError
from tallyveil.estimate.cells import Cells

__all__ = ["FIRST_BITS", "CountDigits", "Prefix", "Steps", "find_bins", "find_steps"]

WORD_BITS, FIRST_BITS, NEXT_BITS = 64, 8, 24
"""Bits of a word, of its first digit, and of the digits after it."""

LAST_WORD = (1 << WORD_BITS) - 1

Words: TypeAlias = NDArray[np.uint64]

Prefix: TypeAlias = tuple[int, int, int, int]
"""Rows of one draw whose words begin alike: the draw, the beginning, its bits, bits to count."""

CountDigits: TypeAlias = Callable[[Sequence[Prefix]], Sequence[tuple[Integers, Integers]]]
"""For each prefix, which next digits occur, rising, and in how many rows."""


def find_bins(draws: NDArray[np.integer[Any]], words: Words) -> NDArray[np.int32]:
    """The bin of each row: its draw, below 2^23, then the first digit of its word."""
    bins = draws.astype(np.int32)
    bins <<= FIRST_BITS
    bins |= (words >> np.uint64(WORD_BITS - FIRST_BITS)).astype(np.int32)
    return bins


@dataclass(frozen=True, eq=False)
class Steps:
    """Which count each row gets, by its draw and its word.

    Entry e holds for the `rows[e]` rows with `draws[e]` whose word is above the limit of the
    entry before and at most `limits[e]`. Every draw has at least one entry; they are in order.
    """

    draws: Integers
    limits: Words
    counts: Integers
    rows: Integers

    @cached_property
    def _first(self) -> Integers:
        """The first entry that a row of each bin may have."""
        size = int(self.draws[-1]) + 1
        found = np.empty((size, 1 << FIRST_BITS), np.int64)
        starts = np.searchsorted(self.draws, np.arange(size))
        found[:] = starts[:, None]
        follows = np.flatnonzero(self.draws[1:] == self.draws[:-1]) + 1
        for entry in follows.tolist():
            above = int(self.limits[entry - 1]) + 1
            found[self.draws[entry], -(-above >> (WORD_BITS - FIRST_BITS)) :] = entry
        return found.reshape(-1)

    def hand_out(self, draws: NDArray[np.integer[Any]], words: Words | None) -> Integers:
        """The count of every row."""
        if words is None:
            raise ArgumentError("words", "be given to tell rows of one draw apart")
        entry = self._first[find_bins(draws, words)]
        rows = np.flatnonzero(self.limits[entry] < words)
        while len(rows):
            entry[rows] += 1
            rows = rows[self.limits[entry[rows]] < words[rows]]
        return self.counts[entry]


def find_steps(
    sizes: Integers, cells: Cells, histogram: Integers, count_digits: CountDigits
) -> Steps:
    """Steps that give `histogram` rows to the cells, in the order of draws and words.

    Parameters
    ----------
    sizes : array of int
        How many rows each bin of `find_bins` has.
    cells, histogram : Cells and array of int
        As in `match_ranks`.
    count_digits : callable
        Counts the next digits of words; asked a few times.

    Returns
    -------
    Steps
        Two rows of one draw with one word, which has a chance of rows^2 / 2^64, get one count:
        where a limit falls between them, the cell before it gets both.
    """
    bins = sizes.reshape(-1, 1 << FIRST_BITS)
    ends = np.cumsum(bins.sum(axis=1))
    tops = np.cumsum(histogram)
    wanted = np.unique(tops[(tops > 0) & (tops < ends[-1])])
    draws = np.searchsorted(ends, wanted)
    inside = wanted < ends[draws]  # others fall between two draws
    starts = ends - bins.sum(axis=1)
    searches = [
        _Search(draw, top, int(starts[draw]), bins[draw])
        for draw, top in zip(draws[inside].tolist(), wanted[inside].tolist(), strict=True)
    ]
    while waiting := [search for search in searches if search.limit is None]:
        counted = count_digits([search.prefix for search in waiting])
        for search, digits in zip(waiting, counted, strict=True):
            search.descend(*digits)
    moved = {search.top: search.start + search.rank for search in searches}
    tops = np.array([moved.get(top, top) for top in tops.tolist()], np.int64)
    return _write_steps(searches, starts, ends, tops, cells)


class _Search:
    """The word up to which `rank` rows of a draw lie; `limit` once it is found."""

    limit: int | None = None

    def __init__(self, draw: int, top: int, start: int, first: Integers) -> None:
        self.draw, self.top, self.start, self.rank = draw, top, start, top - start
        self.beginning, self.bits, self.below = 0, 0, 0
        self._step = FIRST_BITS
        self.descend(np.arange(len(first)), first)

    @property
    def prefix(self) -> Prefix:
        """What is to be counted next."""
        return self.draw, self.beginning, self.bits, self._step

    def descend(self, digits: Integers, rows: Integers) -> None:
        """Add the digit in which the rank lies."""
        ends = self.below + np.cumsum(rows)
        place = int(np.searchsorted(ends, self.rank))
        digit = int(digits[place])
        self.bits += self._step
        self.beginning = (self.beginning << self._step) | digit
        if self.bits == WORD_BITS:  # equal words are not told apart
            self.rank = int(ends[place])
        if self.rank == ends[place]:
            shift = WORD_BITS - self.bits
            self.limit = ((self.beginning + 1) << shift) - 1
        self.below = int(ends[place] - rows[place])
        self._step = min(NEXT_BITS, WORD_BITS - self.bits)


def _write_steps(
    searches: Sequence[_Search], starts: Integers, ends: Integers, tops: Integers, cells: Cells
) -> Steps:
    """One entry for every draw and every limit inside it."""
    inner: dict[int, list[tuple[int, int]]] = {}
    for search in searches:
        limit = LAST_WORD if search.limit is None else search.limit
        inner.setdefault(search.draw, []).append((limit, search.rank))
    found: list[tuple[int, int, int, int]] = []
    for draw, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        below = 0
        for limit, rank in (*sorted(set(inner.get(draw, ()))), (LAST_WORD, end - start)):
            if rank == below and rank < end - start:
                continue
            cell = min(int(np.searchsorted(tops, start + below, side="right")), len(cells) - 1)
            count = int(np.clip(draw, cells.low[cell], cells.high[cell]))
            found.append((draw, limit, count, rank - below))
            below = rank
    draws, limits, counts, rows = (list(column) for column in zip(*found, strict=True))
    return Steps(
        np.array(draws), np.array(limits, np.uint64), np.array(counts), np.array(rows, np.int64)
    )
