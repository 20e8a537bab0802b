"""Private draws and public facts, over cells of neighbouring counts.

They are all that an estimate is made from. Cells are single counts first, then steps that grow
with the count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats, Integers, Tally, count_values

__all__ = ["MOST_CELLS", "Cells", "PrivateDraws", "choose_cells", "growing_thresholds"]


@dataclass(frozen=True, eq=False)
class PrivateDraws:
    """All draws from the confidential table, and nothing else.

    Attributes
    ----------
    values : every row's geometric draw, of any integer type, shape (N,); clamped to 0..size-1, or
        not clamped where `thresholds` are given
    epsilon2 : the exact privacy cost of `values`
    totals : the noisy number of true counts of at most each threshold, or None
    epsilon1 : the exact privacy cost of `totals`, 0 without them
    size : the number of possible counts, public
    thresholds : the public thresholds of `totals`, rising; None: every count 0..size-2
    weights : how many rows drew each of `values`, which are then different and rising; None: one
    """

    values: NDArray[np.integer[Any]]
    epsilon2: Fraction
    totals: Integers | None
    epsilon1: Fraction
    size: int
    thresholds: Integers | None = None
    weights: Integers | None = None

    @property
    def records(self) -> int:
        """The number of rows, public."""
        return len(self.values) if self.weights is None else int(self.weights.sum())

    @property
    def largest(self) -> int:
        """The largest draw."""
        return int(self.values.max())

    @cached_property
    def histogram(self) -> Integers:
        """The number of draws of each count, where they are clamped, shape (size,)."""
        if self.weights is None:
            return count_values(self.values, self.size)
        return self.tally.spread_out(self.size)

    @property
    def tally(self) -> Tally:
        """The number of rows with each draw that occurs."""
        if self.weights is None:
            return Tally.of(self.values)
        return Tally(self.values.astype(np.int64), self.weights)


MOST_CELLS = 256
"""Up to this many possible counts each is a single cell."""

SINGLE = 1 / 4
"""In a wider range, the share of the cells that are single counts before cells grow."""


@dataclass(frozen=True, eq=False)
class Cells:
    """A partition of 0..high[-1] into runs of neighbouring counts, shape (n,) each."""

    low: Integers
    high: Integers

    @classmethod
    def ending_at(cls, high: Integers) -> Cells:
        """Build the cells whose largest counts are `high`, the first from 0 on."""
        return cls(np.append(0, high[:-1] + 1), high)

    def __len__(self) -> int:
        return len(self.high)

    @property
    def widths(self) -> Integers:
        """The number of counts in each cell."""
        return self.high - self.low + 1

    @property
    def single(self) -> bool:
        """True if every cell is one count."""
        return bool((self.low == self.high).all())

    def locate(self, values: Integers) -> Integers:
        """Return the cell of each value; outside all cells, the nearest one."""
        return np.minimum(np.searchsorted(self.high, values), len(self) - 1)

    def collect(self, histogram: Integers) -> Floats:
        """Count the rows of each cell, from those of each count."""
        collected: Floats = np.add.reduceat(histogram, self.low).astype(float)
        return collected

    def draw_cumulative(self, epsilon: float) -> Floats:
        """Return F[i, j] = Pr(draw <= high_j | a count of cell i), shape (n, n-1).

        With a = exp(-epsilon), w counts in cell i, all alike, and m = (1 - a^w)/(w (1 - a)) the
        mean of 1, a, ..., a^(w-1)::

            1 - m a^(high_j - high_i + 1)/(1 + a)  for j >= i,   m a^(low_i - high_j)/(1 + a)  below
        """
        width = self.widths.astype(float)
        below = np.exp(-epsilon) / (1 + np.exp(-epsilon))
        mean = np.expm1(-epsilon * width) / (np.expm1(-epsilon) * width)
        high, low = self.high.astype(float), self.low.astype(float)
        gap = high[None, :-1] - high[:, None]
        short = low[:, None] - high[None, :-1] - 1.0
        reach = below * mean[:, None] * np.exp(-epsilon * np.where(gap >= 0, gap, short))
        F: Floats = np.where(gap >= 0, 1.0 - reach, reach)
        return F


def growing_thresholds(ceiling: int, most: int = MOST_CELLS) -> Integers:
    """Build rising thresholds below `ceiling`: single counts, then growing steps.

    Steps grow by a common factor. At most `most` - 1 thresholds, so that `most` cells cover
    0..ceiling; a quarter are single counts.

    >>> growing_thresholds(10).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    >>> len(growing_thresholds(10**9)), growing_thresholds(10**9)[62:68].tolist()
    (255, [62, 63, 68, 74, 81, 88])
    """
    if ceiling < most:
        return np.arange(ceiling)
    single = int(SINGLE * most)
    steps = np.arange(1, most - single + 1)
    factor = math.log(ceiling / (single - 1)) / len(steps)
    ends = np.floor((single - 1) * np.exp(factor * steps)).astype(np.int64)
    ends = np.maximum(ends, single - 1 + steps)  # where the steps are shorter than a count
    return np.append(np.arange(single), ends[:-1])


def choose_cells(
    thresholds: Integers | None, size: int, largest: float, most: int = MOST_CELLS
) -> Cells:
    """Choose the cells of an estimate: few, and none that is sure to be empty.

    Parameters
    ----------
    thresholds : array of int or None
        The drawn thresholds, where not all were drawn.
    size : int
        The number of possible counts.
    largest : float
        No true count is above this: the largest draw and the farthest that noise reaches.
    most : int, optional
        The largest number of cells, where every threshold was drawn.
    """
    top = size - 1
    if thresholds is None:
        top = min(top, max(math.ceil(largest), 1))
        return Cells.ending_at(np.append(growing_thresholds(top, most), top))
    ends = np.append(thresholds, top)
    return Cells.ending_at(ends[: max(int(np.searchsorted(ends, largest)), 1) + 1])
