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
from tallyveil.sampling.cores import CHUNK, share_rows
from tallyveil.sampling.entropy import BLOCK, Entropy

__all__ = ["Sampler", "search_words"]

LARGEST_TABLE = 1 << 25
"""Most bytes of a lookup table."""

FEWEST_LOOKED_UP, CELLS_PER_ROW_DRAWN = 256, 64
"""A table is used for draws of at least so many rows, and one row per so many of its cells."""

MANY_UNDECIDED = 1 << 14
"""Rows that the table left open are settled together when there are so many of them."""

FEW_SUMS = 1 << 17
"""Up to so many cumulative sums are compared with their words without a search."""


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

    def draw(
        self, rows: NDArray[Any], entropy: Entropy, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Draw one output index per row index, in order, into `out` if it is given.

        Row indices lie in 0..n-1; the caller checks that before anything is drawn. Long draws
        use all cores. Memory beside the result is O(CHUNK) for each.
        """
        drawn = np.empty(len(rows), dtype=self.dtype) if out is None else out
        cells = self.shape[0] << self.first_bits
        if len(rows) < FEWEST_LOOKED_UP or len(rows) * CELLS_PER_ROW_DRAWN < cells:
            for start in range(0, len(rows), CHUNK):
                part = rows[start : start + CHUNK].astype(np.intp)
                words = entropy.numbers(len(part), self.bits)
                drawn[start : start + CHUNK] = self.outputs(part, words)
            return drawn
        if self._lookup is None:
            self._lookup = _Lookup.build(self._ends, self.bits, self.first_bits, self.dtype)
        lookup = self._lookup

        def work(start: int, stop: int) -> None:
            self._draw_part(rows[start:stop], drawn[start:stop], lookup, entropy)

        share_rows(len(rows), entropy, work)
        return drawn

    def _draw_part(
        self, rows: NDArray[Any], out: NDArray[Any], lookup: _Lookup, entropy: Entropy
    ) -> None:
        """Draw one thread's rows into `out`, chunk by chunk."""
        buffers = _Buffers.make(min(CHUNK, len(rows)), self.dtype)
        places, cells, waiting = [], [], 0
        for start in range(0, len(rows), CHUNK):
            chunk = slice(start, start + CHUNK)
            open_at, open_cells = self._look_up(rows[chunk], out[chunk], lookup, buffers, entropy)
            open_at += start
            places.append(open_at)
            cells.append(open_cells)
            waiting += len(open_at)
            if waiting >= MANY_UNDECIDED:
                self._settle(out, np.concatenate(places), np.concatenate(cells), entropy)
                places, cells, waiting = [], [], 0
        if waiting:
            self._settle(out, np.concatenate(places), np.concatenate(cells), entropy)

    def _look_up(
        self,
        rows: NDArray[Any],
        out: NDArray[Any],
        lookup: _Lookup,
        buffers: _Buffers,
        entropy: Entropy,
    ) -> tuple[NDArray[np.intp], NDArray[np.uint32]]:
        """Fill a chunk of `out` from the table; gives the places it leaves open and their cells.

        Every step writes into memory that exists. A cell is numbered row * 2^first_bits + first
        bits, which 32 bits hold and are added faster than 64.
        """
        size = len(rows)
        index, place = buffers.index[:size], buffers.place[:size]
        found = out if out.dtype == self.dtype else buffers.found[:size]
        first = entropy.octets(2 * size, buffers.octets).view(np.uint16)
        np.right_shift(first, np.uint16(16 - self.first_bits), out=first)
        if self.shape[0] == 1:
            np.copyto(index, first)
        else:
            np.copyto(index, rows, casting="unsafe")
            np.left_shift(index, np.uint32(self.first_bits), out=index)
            np.add(index, first, out=index)
        np.copyto(place, index)
        np.take(lookup.table, place, out=found, mode="wrap")  # all are in range: "wrap" is fastest
        if found is not out:
            np.copyto(out, found, casting="unsafe")
        at = np.flatnonzero(np.equal(found, self.shape[1], out=buffers.marked[:size]))
        return at, index[at]

    def _settle(
        self, out: NDArray[Any], at: NDArray[np.intp], cells: NDArray[np.uint32], entropy: Entropy
    ) -> None:
        """Draw the remaining bits of the words in these cells, and write their outputs."""
        rest = self.bits - self.first_bits
        words = (cells & np.uint32((1 << self.first_bits) - 1)).astype(np.int64)
        words <<= rest
        words |= entropy.numbers(len(at), rest)
        out[at] = self.outputs((cells >> np.uint32(self.first_bits)).astype(np.intp), words)

    def outputs(self, rows: NDArray[np.intp], words: Integers) -> Integers:
        """Return the output of each word: the number of cumulative sums not above it."""
        if len(rows) == 1 or self.shape[0] == 1:
            found: Integers = np.searchsorted(self._ends[rows[0]], words, side="right")
            return found
        if self._lookup is None and len(rows) * self.shape[1] <= FEW_SUMS:
            passed = self._ends[rows] <= words[:, None]
            total: Integers = np.add.reduce(passed, axis=1, dtype=np.int64)
            return total
        base = rows * self.shape[1]
        low, high = base.copy(), base + (self.shape[1] - 1)
        if self._lookup is not None:
            cells = rows << self.first_bits
            cells += words >> (self.bits - self.first_bits)
            low += self._lookup.lowest.take(cells)
        found = search_words(self._ends.reshape(-1), words, low, high)
        found -= base
        return found


def search_words(ends: Integers, words: Integers, low: Integers, high: Integers) -> Integers:
    """Find the first place in low..high whose cumulative sum exceeds the word.

    ``ends`` does not decrease within any low[i]..high[i], and words are below ``ends[high]``. The
    place after `low` is tried first, where nearly all end; the others are found by bisection.

    >>> first, last = np.array([0, 0]), np.array([2, 2])
    >>> search_words(np.array([2, 2, 5]), np.array([1, 2]), first, last).tolist()
    [0, 2]
    """
    found = low + (ends.take(low) <= words)
    active = np.flatnonzero(ends.take(found) <= words)
    first, last, sought = found[active], high[active], words[active]
    while (first < last).any():
        middle = (first + last) >> 1
        passed = ends[middle] <= sought
        first, last = np.where(passed, middle + 1, first), np.where(passed, last, middle)
    found[active] = first
    return found


@dataclass(frozen=True, eq=False)
class _Lookup:
    """What the first bits of a word say about its output.

    `lowest` holds the output of each cell's first word, `table` the output of each cell where all
    its words agree, else m; flat, length n * cells.
    """

    lowest: NDArray[Any]
    table: NDArray[Any]

    @classmethod
    def build(cls, ends: Integers, bits: int, first_bits: int, dtype: np.dtype[Any]) -> _Lookup:
        n, m = ends.shape
        cells, rest = 1 << first_bits, bits - first_bits
        until = (ends + ((1 << rest) - 1)) >> rest  # cells whose first word has at most output j
        times = np.diff(until, axis=1, prepend=0)
        outputs = np.tile(np.arange(m, dtype=dtype), n)
        lowest = np.repeat(outputs, times.reshape(-1))
        table = lowest.copy()
        row, output = np.nonzero(ends & ((1 << rest) - 1))  # sums that end inside a cell
        table[row * cells + (ends[row, output] >> rest)] = m
        return cls(lowest, table)


@dataclass(frozen=True, eq=False)
class _Buffers:
    """Working memory of one thread."""

    octets: NDArray[np.uint8]
    index: NDArray[np.uint32]
    place: NDArray[np.intp]
    found: NDArray[Any]
    marked: NDArray[np.bool_]

    @classmethod
    def make(cls, rows: int, dtype: np.dtype[Any]) -> _Buffers:
        return cls(
            np.empty(2 * rows + BLOCK, np.uint8),
            np.empty(rows, np.uint32),
            np.empty(rows, np.intp),
            np.empty(rows, dtype),
            np.empty(rows, np.bool_),
        )


def _choose_first_bits(shape: tuple[int, int], itemsize: int, bits: int) -> int:
    """Bits that index the table: 12 where it stays in cache, more for few wide rows."""
    wanted = 12 if shape[1] <= 512 else 16
    while wanted > 8 and shape[0] * itemsize << wanted > LARGEST_TABLE:
        wanted -= 1
    return min(wanted, bits)
