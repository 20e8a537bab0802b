"""Cut scores at given ranks without sorting them all.

Scores fall into narrow buckets that stand in the scores' order. A bucket in which nothing is cut
lies between two cuts as a whole; only what is in the others is sorted and compared. The result is
that of a stable sort, to the last bit, in linear time unless most scores are nearly alike.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.sums.rounding import rank_inside

__all__ = ["Cuts"]

FEWEST_BITS, MOST_BITS = 2, 12
"""Buckets between a number and its double, as a power of two; more where there are more scores."""


class Cuts:
    """Scores in rising order, equal ones in that of their rows, cut into runs at given ranks.

    Parameters
    ----------
    scores : array of float, shape (rows,)
        Finite numbers.
    ends : array of int
        How many scores lie before each cut, rising strictly, in 1..rows-1.

    Examples
    --------
    >>> made = Cuts(np.array([5.0, 1.0, 2.0, 2.0]), np.array([1, 2]))
    >>> made.limits.tolist(), made.runs.tolist()
    ([1.0, 2.0], [2, 0, 1, 2])
    >>> made.count_below(np.array([0.5, 2.0, 2.5])).tolist()
    [0, 1, 2]
    """

    limits: Floats
    """The last score before each cut."""

    def __init__(self, scores: Floats, ends: Integers) -> None:
        self._scores, self._ends, self._least = scores, ends, scores.min()
        self._bits = min(max(len(scores).bit_length() - 6, FEWEST_BITS), MOST_BITS)
        self._buckets = self._find_buckets(scores)
        held = np.bincount(self._buckets)
        cut = np.searchsorted(np.cumsum(held), ends - 1, side="right")
        self._is_cut = np.zeros(len(held), dtype=bool)
        self._is_cut[cut] = True
        self._cuts_below = np.cumsum(np.bincount(cut + 1, minlength=len(held)))
        left_out = np.cumsum(np.where(self._is_cut, 0, held))
        near = np.sort(scores[self._is_cut[self._buckets]])
        self.limits = near[ends - 1 - left_out[cut]]

    def _find_buckets(self, values: Floats) -> Integers:
        """The bucket of each value: exponent and leading bits of its distance from the least."""
        shifted = np.maximum(values - self._least, 0.0)
        shifted += 1.0  # all of one sign, so that their bits stand in their order
        bits: Integers = shifted.view(np.int64)
        bits >>= 52 - self._bits
        bits -= 1023 << self._bits
        return bits

    def count_below(self, values: Floats) -> Integers:
        """How many of the limits lie below each value."""
        return self._count(values, self._find_buckets(values))

    def _count(self, values: Floats, buckets: Integers) -> Integers:
        found: Integers = np.take(self._cuts_below, buckets, mode="clip")
        near = np.flatnonzero(np.take(self._is_cut, buckets, mode="clip"))
        found[near] = np.searchsorted(self.limits, values[near])
        return found

    @cached_property
    def below(self) -> Integers:
        """How many of the limits lie below each score: its run, but for those equal to a limit."""
        return self._count(self._scores, self._buckets)

    @cached_property
    def runs(self) -> Integers:
        """The run of each score."""
        below, ends = self.below, self._ends
        reached = np.cumsum(np.bincount(below, minlength=len(ends) + 1))[:-1]
        split = reached > ends
        if not split.any():
            return below
        at = np.minimum(below, len(ends) - 1)
        rows = np.flatnonzero(split[at] & (self._scores == self.limits[at]))
        rows = rows[np.argsort(below[rows], kind="stable")]
        limit = below[rows]
        first = reached - np.bincount(limit, minlength=len(ends))
        runs = below.copy()
        runs[rows] = np.searchsorted(ends, first[limit] + rank_inside(limit), side="right")
        return runs
