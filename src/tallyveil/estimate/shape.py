"""Smooth distributions over cells: log-splines with an atom at either end."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.estimate.cells import Cells

__all__ = ["Shape", "make_shape", "splines"]

MOST_SPLINES = 27


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
        Over what the splines are: "log" or "count".
    offset : array of float, shape (n,)
        The logarithm of how many counts each cell has.
    basis : array of float, shape (n, m)
        Splines first, then the atoms.
    rough : array of float, shape (m, m)
        Squared second differences of the splines' coefficients; nothing for atoms.
    ridge : array of float, shape (m,)
        The small penalty that makes every coefficient unique.
    freedom : int
        The rank of `rough`.
    """

    scale: str
    offset: Floats
    basis: Floats
    rough: Floats
    ridge: Floats
    freedom: int

    def distribution(self, coefficients: Floats) -> Floats:
        """The shares of the cells, summing to one."""
        level = self.offset + self.basis @ coefficients
        share = np.exp(level - level.max())
        result: Floats = share / share.sum()
        return result


def make_shape(cells: Cells, scale: str) -> Shape:
    """Splines over log(1 + count) (`scale` "log") or over the count ("count"), and two atoms."""
    middle = (cells.low + cells.high) / 2
    at = np.log1p(middle) if scale == "log" else middle
    n = len(cells)
    number = min(MOST_SPLINES, max(6, n // 2))
    smooth = splines((at - at[0]) / (at[-1] - at[0]), number)
    ends = np.zeros((n, 2))
    ends[0, 0] = ends[-1, 1] = 1.0
    second = np.diff(np.eye(number), 2, axis=0)
    rough = np.zeros((number + 2, number + 2))
    rough[:number, :number] = second.T @ second
    ridge = np.append(np.full(number, 1e-4), [0.04, 0.04])
    offset = np.log(cells.high - cells.low + 1.0)
    return Shape(scale, offset, np.hstack([smooth, ends]), rough, ridge, number - 2)
