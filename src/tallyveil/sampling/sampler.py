"""Exact draws from integer weights, at memory speed.

A draw is the inverse of the integer cumulative sum at a uniform 62-bit word: output j comes
up for exactly w[j] of the 2^62 words. The first bits of the word index a table that holds
the answer wherever all words of that cell agree; elsewhere a mark sends the draw to a
search with the remaining bits. The table only saves time: the map from words to outputs is
the inverse cumulative sum itself.

How long a draw takes depends on the true answer and on the random word. Nobody who can time
single draws should be let near them; arrays are timed as a whole.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers
from tallyveil.sampling.entropy import Entropy

__all__ = ["Sampler"]

CHUNK = 1 << 18  # rows drawn at once: a few megabytes of working memory
LARGEST_TABLE = 1 << 25  # bytes


class Sampler:
    """Draws output indices for row indices of a table of integer weights.

    Parameters
    ----------
    weights : non-negative integers, shape (n, m), every row totalling 2^bits
    bits : word length; 62 for certified weights, fewer where every word is to be tried

    >>> sure = Sampler(np.array([[0, 2**62], [2**62, 0]]))
    >>> sure.draw(np.array([0, 1, 0]), Entropy()).tolist()
    [1, 0, 1]
    """

    def __init__(self, weights: Integers, bits: int = 62) -> None:
        self.bits = bits
        self.shape: tuple[int, int] = (len(weights), weights.shape[1])
        self.mark = self.shape[1]  # stands in the table where words of a cell disagree
        self._ends = np.cumsum(weights, axis=1)
        self.dtype = np.min_scalar_type(self.mark)
        self.first_bits = _first_bits(self.shape, self.dtype.itemsize, bits)

    def draw(self, rows: NDArray[Any], entropy: Entropy) -> NDArray[Any]:
        """One output index per row index, shape and order of `rows`; memory O(chunk) beside it.

        `rows` must lie in 0..n-1; the caller checks that before anything is drawn.
        """
        drawn = np.empty(len(rows), dtype=self.dtype)
        if len(rows) * 16 < self.shape[0] << self.first_bits:
            for start in range(0, len(rows), CHUNK):
                part = rows[start : start + CHUNK].astype(np.intp)
                words = (entropy.words(len(part)) >> np.uint64(64 - self.bits)).view(np.int64)
                drawn[start : start + CHUNK] = self.outputs(part, words)
            return drawn
        place = np.empty(min(CHUNK, len(rows)), dtype=np.intp)
        for start in range(0, len(rows), CHUNK):
            part = rows[start : start + CHUNK]
            self._draw_chunk(part, place[: len(part)], drawn[start : start + CHUNK], entropy)
        return drawn

    def _draw_chunk(
        self, rows: NDArray[Any], place: NDArray[np.intp], out: NDArray[Any], entropy: Entropy
    ) -> None:
        first = entropy.octets(2 * len(rows)).view(np.uint16) >> np.uint16(16 - self.first_bits)
        place[:] = rows
        place <<= self.first_bits
        place += first
        np.take(self._table, place, out=out, mode="clip")
        split = np.flatnonzero(out == self.mark)
        if len(split):
            rest = self.bits - self.first_bits
            more = (entropy.words(len(split)) >> np.uint64(64 - rest)).view(np.int64)
            words = (first[split].astype(np.int64) << rest) | more
            out[split] = self.outputs(rows[split].astype(np.intp), words)

    def outputs(self, rows: NDArray[np.intp], words: Integers) -> Integers:
        """The output of each word: the number of cumulative sums not above it."""
        low = np.zeros(len(rows), dtype=np.int64)
        high = np.full(len(rows), self.shape[1] - 1, dtype=np.int64)
        if "_table" in self.__dict__:
            cell = words >> (self.bits - self.first_bits)
            low = self._lowest[rows, cell].astype(np.int64)
            high = self._lowest[rows, cell + 1].astype(np.int64)
        flat, base = self._ends.reshape(-1), rows * self.shape[1]
        active = np.flatnonzero(low < high)
        while len(active):
            middle = (low[active] + high[active]) >> 1
            passed = flat[base[active] + middle] <= words[active]
            low[active] = np.where(passed, middle + 1, low[active])
            high[active] = np.where(passed, high[active], middle)
            active = active[low[active] < high[active]]
        return low

    @cached_property
    def _lowest(self) -> NDArray[Any]:
        """The output of each cell's first word, then the last output, shape (n, cells + 1)."""
        n, m = self.shape
        cells = 1 << self.first_bits
        starts = np.arange(cells, dtype=np.int64) << (self.bits - self.first_bits)
        lowest = np.full((n, cells + 1), m - 1, dtype=self.dtype)
        for row, ends in zip(lowest, self._ends, strict=True):
            row[:cells] = np.searchsorted(ends, starts, side="right")
        return lowest

    @cached_property
    def _table(self) -> NDArray[Any]:
        """The output of each cell where all its words agree, else the mark; flat."""
        cells = 1 << self.first_bits
        step = 1 << (self.bits - self.first_bits)
        lasts = (np.arange(1, cells + 1, dtype=np.int64) * step) - 1
        table = np.empty((self.shape[0], cells), dtype=self.dtype)
        for row, lowest, ends in zip(table, self._lowest, self._ends, strict=True):
            highest = np.searchsorted(ends, lasts, side="right")
            row[:] = np.where(lowest[:-1] == highest, lowest[:-1], self.mark)
        return table.reshape(-1)


def _first_bits(shape: tuple[int, int], itemsize: int, bits: int) -> int:
    """Bits that index the table: 12 where it stays in cache, more for few wide rows."""
    wanted = 12 if shape[1] <= 512 else 16
    while wanted > 8 and shape[0] * itemsize << wanted > LARGEST_TABLE:
        wanted -= 1
    return min(wanted, bits)
