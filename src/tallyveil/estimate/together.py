"""Two columns of the same rows: what both draws together say about the count of one of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tallyveil.arrays import Floats, Integers

__all__ = ["expect_together"]

FEWEST_ROWS = 100
"""With fewer rows nothing is learned about how two columns go together."""

MOST_PAIRS = 1 << 18
"""Beyond so many pairs of counts a row is judged by its own draw."""

ROUNDS = 40
SMALL = 1e-300


def expect_together(
    draws: tuple[Integers, Integers],
    counts: tuple[Integers, Integers],
    epsilons: tuple[float, float],
) -> Floats:
    """E[count | both draws] of every row for the first of two columns, shape (N,).

    How the two go together is estimated by expectation maximisation from all pairs of draws,
    starting from columns that have nothing to do with each other; after every step both
    distributions are made those of the published counts. Post-processing of private draws.

    Parameters
    ----------
    draws : tuple of array of int
        Both columns' draws, geometric noise clamped to at least 0.
    counts : tuple of array of int
        Both columns' published counts, in any order: their distributions are used.
    epsilons : tuple of float
        The epsilons of the draws.

    Examples
    --------
    >>> small, large = np.array([0, 1] * 60), np.array([0, 9] * 60)
    >>> drawn = np.array([1, 1] + [0, 1] * 59)
    >>> found = expect_together((drawn, large), (small, large), (1.0, 1.0))
    >>> bool(found[0] < found[1])
    True
    """
    ends = [int(max(d.max(), c.max())) + 1 for d, c in zip(draws, counts, strict=True)]
    if len(draws[0]) < FEWEST_ROWS or math.prod(ends) > MOST_PAIRS:
        return np.asarray(draws[0], dtype=float)
    first, second = (_spread(c, size) for c, size in zip(counts, ends, strict=True))
    drawn = np.zeros(ends)
    np.add.at(drawn, draws, 1.0)
    joint = np.outer(first, second)
    for _ in range(ROUNDS):
        told = drawn / np.maximum(_blur(joint, epsilons), SMALL)
        joint = joint * _blur(told, epsilons)
        joint *= (first / np.maximum(joint.sum(axis=1), SMALL))[:, None]
        joint *= second / np.maximum(joint.sum(axis=0), SMALL)
    weights = np.maximum(_blur(joint, epsilons), SMALL)
    means = _blur(joint * np.arange(ends[0])[:, None], epsilons) / weights
    found: Floats = means[draws]
    return found


def _spread(counts: Integers, size: int) -> Floats:
    """The distribution of counts, a little of it everywhere."""
    shares = np.bincount(counts, minlength=size) + 1e-6
    distribution: Floats = shares / shares.sum()
    return distribution


def _blur(values: Floats, epsilons: tuple[float, float]) -> Floats:
    """sum_ij a^|i-k| b^|j-l| values_ij for every (k, l)."""
    for epsilon in epsilons:
        values = _blur_columns(values, math.exp(-epsilon)).T
    return values


def _blur_columns(values: Floats, ratio: float) -> Floats:
    from scipy.linalg import solve_banded

    size, columns = values.shape
    bands: Any = np.vstack([np.ones(size), np.full(size, -ratio)])
    both = np.hstack([values, values[::-1]])
    sums = solve_banded((1, 0), bands, both, check_finite=False)
    blurred: Floats = sums[:, :columns] + sums[::-1, columns:] - values
    return blurred
