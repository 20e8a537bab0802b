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

from tallyveil.arrays import MOST_COUNTED, Integers, Tally
from tallyveil.errors import ArgumentError
from tallyveil.estimate.draws import Cells

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
    entry before and at most `limits[e]`. Every draw that occurs has an entry; they are in order.
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
        if self.draws[-1] < MOST_COUNTED:
            entry = self._first[find_bins(draws, words)]
        else:
            entry = np.searchsorted(self.draws, draws)
        rows = np.flatnonzero(self.limits[entry] < words)
        while len(rows):
            entry[rows] += 1
            rows = rows[self.limits[entry[rows]] < words[rows]]
        return self.counts[entry]


def find_steps(
    drawn: Tally,
    bins: Integers | None,
    cells: Cells,
    histogram: Integers,
    count_digits: CountDigits,
) -> Steps:
    """Steps that give `histogram` rows to the cells, in the order of draws and words.

    Parameters
    ----------
    drawn : Tally
        How many rows have each draw.
    bins : array of int or None
        How many rows each bin of `find_bins` has, where that was counted already.
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
    ends, tops = np.cumsum(drawn.rows), np.cumsum(histogram)
    starts = ends - drawn.rows
    wanted = np.unique(tops[(tops > 0) & (tops < ends[-1])])
    places = np.searchsorted(ends, wanted)
    inside = wanted < ends[places]  # others fall between two draws
    searches = [
        _Search(place, int(drawn.values[place]), int(starts[place]), top)
        for place, top in zip(places[inside].tolist(), wanted[inside].tolist(), strict=True)
    ]
    if bins is not None:
        for search in searches:
            first = bins.reshape(-1, 1 << FIRST_BITS)[search.draw]
            search.descend(np.arange(len(first)), first)
    while waiting := [search for search in searches if search.limit is None]:
        counted = count_digits([search.prefix for search in waiting])
        for search, digits in zip(waiting, counted, strict=True):
            search.descend(*digits)
    moved = {search.top: search.reached for search in searches}
    tops = np.array([moved.get(top, top) for top in tops.tolist()], np.int64)
    return _write_steps(searches, drawn, tops, cells)


class _Search:
    """The word up to which `rank` rows of a draw lie; `limit` once it is found."""

    limit: int | None = None

    def __init__(self, place: int, draw: int, start: int, top: int) -> None:
        self.place, self.draw, self.start, self.top, self.rank = (
            place,
            draw,
            start,
            top,
            top - start,
        )
        self.beginning, self.bits, self.below = 0, 0, 0
        self._step = FIRST_BITS

    @property
    def reached(self) -> int:
        """How many rows lie up to the word, those with smaller draws among them."""
        return self.start + self.rank

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


def _write_steps(searches: Sequence[_Search], drawn: Tally, tops: Integers, cells: Cells) -> Steps:
    """One entry for every draw and every limit inside it."""
    ends = np.cumsum(drawn.rows)
    inner = np.array([search.limit for search in searches], np.uint64)
    place = np.append(np.array([s.place for s in searches], np.int64), np.arange(len(ends)))
    limits = np.append(inner, np.full(len(ends), LAST_WORD, np.uint64))
    reached = np.append(np.array([s.reached for s in searches], np.int64), ends)
    order = np.lexsort((limits, place))
    place, limits, reached = place[order], limits[order], reached[order]
    rows = np.diff(reached, prepend=0)
    kept = (rows > 0) | (limits == LAST_WORD)
    place, limits, reached, rows = (part[kept] for part in (place, limits, reached, rows))
    cell = np.minimum(np.searchsorted(tops, reached - rows, side="right"), len(cells) - 1)
    draws = drawn.values[place]
    return Steps(draws, limits, np.clip(draws, cells.low[cell], cells.high[cell]), rows)
