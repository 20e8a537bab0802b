"""Private draws and public facts, over cells of neighbouring counts, and their likelihood.

Estimates use nothing else. Cells are single counts first, then steps that grow with the count.

Given the histogram h, both draws are nearly normal with means that are linear in h. So minus
twice the log likelihood is, up to a constant::

    h' gram h - 2 right·h + square
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
from tallyveil.mechanisms.geometric import noise_variance


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


SMALL = 48
"""The largest triangle that is inverted directly."""


def invert_root(matrix: Floats) -> Floats:
    """Return L^-1 for the Cholesky factor L of a positive definite matrix: matrix = L L'.

    SciPy solves triangular systems as well, but importing its linear algebra takes a quarter of a
    second, a fifth of the time of publishing a small table.

    >>> invert_root(np.array([[4.0, 2.0], [2.0, 17.0]])).tolist()
    [[0.5, 0.0], [-0.125, 0.25]]
    """
    return _invert_lower(np.linalg.cholesky(matrix))


def _invert_lower(root: Any) -> Floats:
    """Invert by halves, mostly in products of matrices.

    The inverse of [[A, 0], [C, D]] is [[A^-1, 0], [-D^-1 C A^-1, D^-1]].
    """
    if len(root) <= SMALL:
        small: Any = np.linalg.inv(root)
        return np.tril(small)
    half = len(root) // 2
    inverse = np.zeros(root.shape)
    inverse[:half, :half] = first = _invert_lower(root[:half, :half])
    inverse[half:, half:] = last = _invert_lower(root[half:, half:])
    inverse[half:, :half] = -(last @ (root[half:, :half] @ first))
    return inverse


FLOOR = 0.05
"""Added to the variance of every cumulative count of draws, for what is not normal in it."""


@dataclass(frozen=True, eq=False)
class Information:
    """The quadratic form: `gram` (n, n), `right` (n,) and `square`."""

    gram: Floats
    right: Floats
    square: float

    def compare(self, first: Floats, second: Floats) -> float:
        """Return how much larger the form is at the first histogram than at the second."""
        slope = self.gram @ (first + second) - 2 * self.right
        return float((first - second) @ slope)

    def __add__(self, other: Information) -> Information:
        return Information(
            self.gram + other.gram, self.right + other.right, self.square + other.square
        )


@dataclass(frozen=True, eq=False)
class Observed:
    """Both draws, counted into cells.

    Attributes
    ----------
    cells : Cells
        The cells of counts, n of them.
    drawn : array of float, shape (n,)
        The number of draws in each cell.
    epsilon2 : float
        The privacy cost of the draws.
    totals : array of float, shape (T,)
        The noisy number of true counts up to each threshold.
    epsilon1 : float
        The privacy cost of the totals.
    place, part : arrays, shape (T,), optional
        The cell of each threshold, and the part of the cell's counts up to it. None: the
        thresholds are the ends of all cells but the last.
    """

    cells: Cells
    drawn: Floats
    epsilon2: float
    totals: Floats
    epsilon1: float
    place: Integers | None = None
    part: Floats | None = None

    @property
    def thresholds(self) -> tuple[Integers, Floats]:
        """`place` and `part`, also where they are None."""
        if self.place is None or self.part is None:
            return np.arange(len(self.totals)), np.ones(len(self.totals))
        return self.place, self.part

    @property
    def precision(self) -> Floats:
        """One over the variance of the noise of each total, shape (T,)."""
        variance = noise_variance(self.epsilon1) if len(self.totals) else 1.0
        return np.full(len(self.totals), 1 / variance)

    @property
    def at_ends(self) -> Floats:
        """The totals at the ends of all cells but the last, shape (n-1,)."""
        ends: Floats = self.totals[self.thresholds[1] == 1]
        return ends

    @property
    def records(self) -> float:
        """The number of rows."""
        return float(self.drawn.sum())

    def take_first(self, number: int) -> Observed:
        """Return the first cells only, and the rows that were drawn into them."""
        cells = Cells(self.cells.low[:number], self.cells.high[:number])
        place, part = self.thresholds
        before = (place < number - 1) | ((place == number - 1) & (part < 1))
        totals = self.totals[before], self.epsilon1, place[before], part[before]
        return Observed(cells, self.drawn[:number], self.epsilon2, *totals)

    def of_draws(self, pilot: Floats, floor: float = FLOOR) -> Information:
        """Return the information of the draws: (Y - F'h)' S^-1 (Y - F'h), S at `pilot`.

        Y_j counts the draws up to the end of cell j, F = Pr(draw <= end of j | cell), and
        S_ij = sum_d pilot_d (F[d, min(i,j)] - F[d,i] F[d,j]) + floor [i = j].
        """
        n = len(pilot)
        F = self.cells.draw_cumulative(self.epsilon2)
        index = np.arange(n - 1)
        S = (pilot @ F)[np.minimum.outer(index, index)] - (F * pilot[:, None]).T @ F
        S[index, index] += floor
        both = np.column_stack([F.T, np.cumsum(self.drawn)[:-1]])
        white = invert_root(S) @ both
        X, y = white[:, :n], white[:, n]
        return Information(X.T @ X, X.T @ y, float(y @ y))

    def of_totals(self, weight: Floats) -> Information:
        """Return the information of the totals.

        sum_t weight_t (totals_t - (h_0 + ... + part_t h_place(t)))^2
        """
        n = len(self.cells)
        place, part = self.thresholds

        def add_up(values: Floats) -> Floats:
            return np.bincount(place, values, minlength=n).astype(float)

        def above(values: Floats) -> Floats:
            return np.append(np.cumsum(values[:0:-1])[::-1], 0.0)

        above_place, weighted = above(add_up(weight)), weight * self.totals
        tails, index = above_place + add_up(weight * part), np.arange(n)
        gram = tails[np.maximum.outer(index, index)]
        gram[index, index] = above_place + add_up(weight * part**2)
        right = above(add_up(weighted)) + add_up(weighted * part)
        return Information(gram, right, float(weighted @ self.totals))
