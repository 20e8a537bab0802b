"""The likelihood of a histogram given two private draws, as one quadratic form.

Given the histogram h, both draws are nearly normal with means that are linear in h. So minus
twice the log likelihood is, up to a constant::

    h' gram h - 2 right·h + square
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.estimate.draws import Cells

__all__ = ["Information", "Observed", "invert_root", "noise_variance"]

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


def noise_variance(epsilon: float) -> float:
    """Return the variance 2a/(1-a)^2 of two-sided geometric noise, a = exp(-epsilon)."""
    return float(2 * np.exp(-epsilon) / np.expm1(-epsilon) ** 2)


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
