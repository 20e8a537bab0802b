"""Smooth distributions over cells: log-splines, an atom at either end, and heaps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb
from typing import Any

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.estimate.cells import Cells

__all__ = ["Shape", "make_shape", "splines"]

MOST_SPLINES = 27
PERIODS = (2, 5, 10)
"""People round: multiples of these may be more frequent than their neighbours."""

HEAP, FREEDOM = 0.25, 3.0
"""The logarithm of a heap is HEAP times a Student variable: most heaps are small, some huge."""


def splines(at: Floats, number: int) -> Floats:
    """Cubic B-splines with evenly spaced knots at points of [0, 1], shape (len(at), number).

    Spline j is b((number - 3) at - j + 3) with b(x) = sum_i (-1)^i C(4, i) max(x - i, 0)^3 / 6.
    Together they sum to one.

    >>> splines(np.array([0.0, 1.0]), 4).round(3).tolist()
    [[0.167, 0.667, 0.167, 0.0], [0.0, 0.167, 0.667, 0.167]]
    """
    x = (number - 3) * at[:, None] - np.arange(number) + 3
    powers = [(-1) ** i * comb(4, i) / 6 * np.maximum(x - i, 0.0) ** 3 for i in range(5)]
    b: Floats = np.where((x > 0) & (x < 4), np.sum(powers, axis=0), 0.0)
    return b


@dataclass(frozen=True, eq=False)
class Shape:
    """log share = `offset` + `basis` @ coefficients, up to a constant.

    Attributes
    ----------
    scale : str
        Over what the splines are, "log" or "count"; or "normal", the count with bells smooth.
    offset : array of float, shape (n,)
        The logarithm of how many counts each cell has.
    basis : array of float, shape (n, m)
        Splines first, then the atoms, then the heaps.
    rough : array of float, shape (m, m)
        Squared second (or third) differences of the splines' coefficients; else nothing.
    ridge : array of float, shape (m,)
        The small penalty that makes every coefficient unique.
    freedom : int
        The rank of `rough`.
    heaps : int
        How many of the last columns of `basis` are heaps.
    """

    scale: str
    offset: Floats
    basis: Floats
    rough: Floats
    ridge: Floats
    freedom: int
    heaps: int = 0

    def distribution(self, coefficients: Floats) -> Floats:
        """The shares of the cells, summing to one."""
        level = self.offset + self.basis @ coefficients
        share = np.exp(level - level.max())
        result: Floats = share / share.sum()
        return result

    def release_heaps(self, coefficients: Floats) -> Shape:
        """The same shape with heaps held back as far as their present size calls for."""
        ridge = self.ridge.copy()
        first = len(ridge) - self.heaps
        ridge[first:] = _hold_heaps(coefficients[first:])
        return replace(self, ridge=ridge)

    def leave_out_heaps(self) -> Shape:
        """The same shape without heaps."""
        kept = slice(len(self.ridge) - self.heaps)
        basis, rough = self.basis[:, kept], self.rough[kept, kept]
        return replace(self, basis=basis, rough=rough, ridge=self.ridge[kept], heaps=0)

    @property
    def log_heap_prior(self) -> float:
        """Half the log determinant of the penalty of the heaps: their prior, where they are 0."""
        return 0.5 * float(np.log(self.ridge[len(self.ridge) - self.heaps :]).sum())


def make_shape(cells: Cells, scale: str) -> Shape:
    """Splines over log(1 + count) (`scale` "log") or over the count, atoms and heaps.

    With "count" a shape is smooth whose logarithm is nearly a line; with "normal", a parabola.
    """
    middle = (cells.low + cells.high) / 2
    at = np.log1p(middle) if scale == "log" else middle
    order = 3 if scale == "normal" else 2
    n = len(cells)
    number = min(MOST_SPLINES, max(6, n // 2))
    smooth = splines((at - at[0]) / (at[-1] - at[0]), number)
    ends = np.zeros((n, 2))
    ends[0, 0] = ends[-1, 1] = 1.0
    heaps = _find_heaps(cells)
    basis = np.hstack([smooth, ends, heaps])
    differences = np.diff(np.eye(number), order, axis=0)
    rough = np.zeros((basis.shape[1], basis.shape[1]))
    rough[:number, :number] = differences.T @ differences
    ridge = np.repeat([1e-4, 0.04, _hold_heaps(0.0)], [number, 2, heaps.shape[1]])
    offset = np.log(cells.high - cells.low + 1.0)
    return Shape(scale, offset, basis, rough, ridge, number - order, heaps.shape[1])


def _hold_heaps(size: Any) -> Any:
    """The penalty of heaps of this size: a Student variable is normal with a random variance."""
    return (FREEDOM + 1) / (FREEDOM * HEAP**2 + size**2)


def _find_heaps(cells: Cells) -> Floats:
    """Which cells are one multiple of each period, the first and the last cell aside."""
    multiples = cells.high[:, None] % np.array(PERIODS) == 0
    multiples[[0, -1]] = False
    multiples &= (cells.low == cells.high)[:, None]
    heaps: Floats = multiples[:, multiples.sum(axis=0) >= 2].astype(float)
    return heaps
