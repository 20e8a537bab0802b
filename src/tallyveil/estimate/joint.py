"""Expected counts given the noisy draws of two columns of the same rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tallyveil.arrays import Floats, Integers

__all__ = ["DrawnColumn", "expect_jointly"]

FEWEST_ROWS = 100
"""With fewer rows the joint distribution of two columns is not estimated."""

MOST_PAIRS = 1 << 16
"""Up to this many pairs of counts both columns are deconvolved; beyond it draws are classed."""

MOST_CLASSES, FEWEST_IN_CLASS = 32, 50
"""Most classes of draws of a wide column, and the fewest rows of a class."""

MOST_CELLS = 1 << 20
"""Most pairs of a count and a class; wider columns have fewer classes, or none."""

PRIOR_ROWS = 20
"""Pseudo-rows of every class, distributed as the whole table."""

ROUNDS = 40
SMALL = 1e-300


@dataclass(frozen=True, eq=False)
class DrawnColumn:
    """A column: geometric draws cut at 0, the counts assigned to them, and the epsilon."""

    draws: Integers
    counts: Integers
    epsilon: float

    @property
    def size(self) -> int:
        """One more than the largest count or draw."""
        return int(max(self.draws.max(), self.counts.max())) + 1


@dataclass(frozen=True, eq=False)
class _Axis:
    """Every row's cell of a column, the shares of cells, the ratio of the noise and pseudo-rows."""

    places: Integers
    shares: Floats
    ratio: float
    prior: float = 0.0


def expect_jointly(column: DrawnColumn, other: DrawnColumn) -> Floats:
    """Return E[count | both draws] of every row for the first of two columns, shape (N,).

    The joint distribution is estimated by expectation maximisation from all pairs of draws,
    starting from independent columns; after every step its two margins are set to the
    distributions of the published counts. Of a wide column only the class of a draw is used.
    Post-processing of private draws.

    Parameters
    ----------
    own, other : DrawnColumn
        The two columns. Of their counts the distributions are used, not their order.

    Examples
    --------
    >>> small, large = np.array([0, 1] * 60), np.array([0, 9] * 60)
    >>> drawn = np.array([1, 1] + [0, 1] * 59)
    >>> expected = expect_jointly(DrawnColumn(drawn, small, 1.0), DrawnColumn(large, large, 1.0))
    >>> bool(expected[0] < expected[1])
    True
    """
    axes = _find_axes(column, other)
    if axes is None:
        return np.asarray(column.draws, dtype=float)
    means: Floats = _expect(*axes, _count_pairs(*axes))[axes[0].places, axes[1].places]
    return means


def _find_axes(column: DrawnColumn, other: DrawnColumn) -> tuple[_Axis, _Axis] | None:
    """Return both columns' axes; None with too few rows or too wide a range."""
    if len(column.draws) < FEWEST_ROWS or column.size > MOST_CELLS // 2:
        return None
    if column.size * other.size <= MOST_PAIRS:
        return _undo_noise(column), _undo_noise(other)
    most = min(MOST_CLASSES, len(column.draws) // FEWEST_IN_CLASS, MOST_CELLS // column.size)
    _, places, rows = np.unique(other.draws, return_inverse=True, return_counts=True)
    place = ((np.cumsum(rows) - rows / 2) * most / len(places)).astype(int)
    classes = np.unique(place, return_inverse=True)[1][places]
    shares = np.bincount(classes) / len(classes)
    return _undo_noise(column), _Axis(classes, shares, 0.0, PRIOR_ROWS * len(shares))


def _undo_noise(column: DrawnColumn) -> _Axis:
    """Return the axis of a column of noisy counts; no cell has a share of exactly 0."""
    shares = np.bincount(column.counts, minlength=column.size) + 1e-6
    return _Axis(column.draws, shares / shares.sum(), math.exp(-column.epsilon))


def _count_pairs(first: _Axis, second: _Axis) -> Floats:
    """Return the number of rows of each pair of cells."""
    shape = len(first.shares), len(second.shares)
    pairs = np.bincount(first.places * shape[1] + second.places, minlength=math.prod(shape))
    return pairs.reshape(shape).astype(float)


def _expect(first: _Axis, second: _Axis, pairs: Floats) -> Floats:
    """Return E[count of the first | both cells] for every pair of cells."""
    ratios = first.ratio, second.ratio
    joint = np.outer(first.shares, second.shares)
    prior = second.prior * joint
    for _ in range(ROUNDS):
        joint = joint * _blur(pairs / np.maximum(_blur(joint, ratios), SMALL), ratios) + prior
        joint *= (first.shares / np.maximum(joint.sum(axis=1), SMALL))[:, None]
        joint *= second.shares / np.maximum(joint.sum(axis=0), SMALL)
    weights = np.maximum(_blur(joint, ratios), SMALL)
    means: Floats = _blur(joint * np.arange(len(joint))[:, None], ratios) / weights
    return means


def _blur(values: Floats, ratios: tuple[float, float]) -> Floats:
    """Return sum_ij a^|i-k| b^|j-l| values_ij for every (k, l)."""
    for ratio in ratios:
        values = (_blur_columns(values, ratio) if ratio else values).T
    return values


def _blur_columns(values: Floats, ratio: float) -> Floats:
    from scipy.linalg import solve_banded

    size, columns = values.shape
    bands: Any = np.vstack([np.ones(size), np.full(size, -ratio)])
    both = np.hstack([values, values[::-1]])
    sums = solve_banded((1, 0), bands, both, check_finite=False)
    blurred: Floats = sums[:, :columns] + sums[::-1, columns:] - values
    return blurred
