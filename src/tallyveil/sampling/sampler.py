"""Draw exactly from integer weights, at memory speed.

A draw is the inverse of the integer cumulative sum at a uniform 62-bit word: output j comes
up for exactly w[j] of the 2^62 words. The first bits of the word index a table that holds
the answer wherever all words of that cell agree; elsewhere a mark sends the draw to a
search with the remaining bits. The table only saves time: the map from words to outputs is
the inverse cumulative sum itself.

How long a draw takes depends on the true answer and on the random word. Nobody who can time
single draws should be let near them; arrays are timed as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers
from tallyveil.proof.rounding import TOTAL_BITS
from tallyveil.sampling.entropy import Entropy

__all__ = ["Sampler", "search_words"]

CHUNK = 1 << 18
"""Rows drawn at once: a few megabytes of working memory."""

LARGEST_TABLE = 1 << 25
"""Most bytes of a lookup table."""

CELLS_PER_ROW_DRAWN = 16
"""A lookup table is built only for draws of at least one row per this many cells."""


class Sampler:
    """Draws output indices for row indices of a table of integer weights, shape (n, m).

    Every row of the weights totals 2^bits; fewer bits than 62 serve to try every word.

    >>> sure = Sampler(np.array([[0, 2**62], [2**62, 0]]))
    >>> sure.draw(np.array([0, 1, 0]), Entropy()).tolist()
    [1, 0, 1]
    """

    def __init__(self, weights: Integers, bits: int = TOTAL_BITS) -> None:
        self.bits = bits
        self.shape: tuple[int, int] = (len(weights), weights.shape[1])
        self.dtype = np.min_scalar_type(self.shape[1])
        self.first_bits = _choose_first_bits(self.shape, self.dtype.itemsize, bits)
        self._ends = np.cumsum(weights, axis=1)
        self._lookup: _Lookup | None = None  # built by the first long draw

    def draw(self, rows: NDArray[Any], entropy: Entropy) -> NDArray[Any]:
        """Draw one output index per row index, in order; memory beside the result is O(CHUNK).

        Row indices lie in 0..n-1; the caller checks that before anything is drawn.
        """
        drawn = np.empty(len(rows), dtype=self.dtype)
        if len(rows) * CELLS_PER_ROW_DRAWN < self.shape[0] << self.first_bits:
            for start in range(0, len(rows), CHUNK):
                part = rows[start : start + CHUNK].astype(np.intp)
                words = entropy.numbers(len(part), self.bits)
                drawn[start : start + CHUNK] = self.outputs(part, words)
            return drawn
        if self._lookup is None:
            self._lookup = _Lookup.build(self._ends, self.bits, self.first_bits, self.dtype)
        place = np.empty(min(CHUNK, len(rows)), dtype=np.intp)
        for start in range(0, len(rows), CHUNK):
            part = rows[start : start + CHUNK]
            out = drawn[start : start + CHUNK]
            self._draw_chunk(part, self._lookup.table, place[: len(part)], out, entropy)
        return drawn

    def _draw_chunk(
        self,
        rows: NDArray[Any],
        table: NDArray[Any],
        place: NDArray[np.intp],
        out: NDArray[Any],
        entropy: Entropy,
    ) -> None:
        """Draw into `out` by the table, and by a search where it holds the mark."""
        first = entropy.octets(2 * len(rows)).view(np.uint16) >> np.uint16(16 - self.first_bits)
        place[:] = rows
        place <<= self.first_bits
        place += first
        np.take(table, place, out=out, mode="clip")
        undecided = np.flatnonzero(out == self.shape[1])
        if len(undecided):
            rest = self.bits - self.first_bits
            more = entropy.numbers(len(undecided), rest)
            words = (first[undecided].astype(np.int64) << rest) | more
            out[undecided] = self.outputs(rows[undecided].astype(np.intp), words)

    def outputs(self, rows: NDArray[np.intp], words: Integers) -> Integers:
        """Return the output of each word: the number of cumulative sums not above it."""
        base = rows * self.shape[1]
        if self._lookup is None:
            low, high = base, base + (self.shape[1] - 1)
        else:
            cell = words >> (self.bits - self.first_bits)
            low = base + self._lookup.lowest[rows, cell]
            high = base + self._lookup.lowest[rows, cell + 1]
        return search_words(self._ends.reshape(-1), words, low, high) - base


def search_words(ends: Integers, words: Integers, low: Integers, high: Integers) -> Integers:
    """Find the first place in low..high whose cumulative sum exceeds the word, by bisection.

    ``ends`` does not decrease within any low[i]..high[i], and words are below ``ends[high]``.

    >>> first, last = np.array([0, 0]), np.array([2, 2])
    >>> search_words(np.array([2, 2, 5]), np.array([1, 2]), first, last).tolist()
    [0, 2]
    """
    low, high = low.astype(np.int64), high.astype(np.int64)
    active = np.flatnonzero(low < high)
    while len(active):
        middle = (low[active] + high[active]) >> 1
        passed = ends[middle] <= words[active]
        low[active] = np.where(passed, middle + 1, low[active])
        high[active] = np.where(passed, high[active], middle)
        active = active[low[active] < high[active]]
    return low


@dataclass(frozen=True, eq=False)
class _Lookup:
    """What the first bits of a word say about its output.

    `lowest[row, cell]` is the output of the cell's first word, and m - 1 past the last cell;
    shape (n, cells + 1). `table` holds the output of each cell where all its words agree, else
    m; flat, length n * cells.
    """

    lowest: NDArray[Any]
    table: NDArray[Any]

    @classmethod
    def build(cls, ends: Integers, bits: int, first_bits: int, dtype: np.dtype[Any]) -> _Lookup:
        n, m = ends.shape
        cells, step = 1 << first_bits, 1 << (bits - first_bits)
        starts = np.arange(cells, dtype=np.int64) * step
        lasts = starts + (step - 1)
        lowest = np.full((n, cells + 1), m - 1, dtype=dtype)
        table = np.empty((n, cells), dtype=dtype)
        for low, row, sums in zip(lowest, table, ends, strict=True):
            low[:cells] = np.searchsorted(sums, starts, side="right")
            highest = np.searchsorted(sums, lasts, side="right")
            row[:] = np.where(low[:-1] == highest, low[:-1], m)
        return cls(lowest, table.reshape(-1))


def _choose_first_bits(shape: tuple[int, int], itemsize: int, bits: int) -> int:
    """Bits that index the table: 12 where it stays in cache, more for few wide rows."""
    wanted = 12 if shape[1] <= 512 else 16
    while wanted > 8 and shape[0] * itemsize << wanted > LARGEST_TABLE:
        wanted -= 1
    return min(wanted, bits)
