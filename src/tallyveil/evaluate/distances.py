"""How far apart two distributions of counts are, and how far off released counts are.

Comparing with the truth is confidential: keep such numbers inside the agency.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError
from tallyveil.loss import law

__all__ = [
    "CountErrors",
    "count_errors",
    "kolmogorov_smirnov",
    "total_variation",
    "wasserstein",
]


def wasserstein(first: ArrayLike, second: ArrayLike) -> float:
    """Wasserstein-1: how many counts up or down rows must move, on average.

    sum_j |F(j) - G(j)| over the cumulative distributions (002, section 6.1).

    >>> wasserstein([1.0, 0.0, 0.0], [0.0, 0.0, 1.0])
    2.0
    """
    one, other = _pair(first, second)
    return float(np.abs(np.cumsum(one - other)).sum())


def total_variation(first: ArrayLike, second: ArrayLike) -> float:
    """Half the sum of absolute differences: the share of rows that must move.

    >>> total_variation([1.0, 0.0], [0.5, 0.5])
    0.5
    """
    one, other = _pair(first, second)
    return float(np.abs(one - other).sum() / 2)


def kolmogorov_smirnov(first: ArrayLike, second: ArrayLike) -> float:
    """The largest difference between the cumulative distributions.

    >>> kolmogorov_smirnov([1.0, 0.0], [0.5, 0.5])
    0.5
    """
    one, other = _pair(first, second)
    return float(np.abs(np.cumsum(one - other)).max())


@dataclass(frozen=True)
class CountErrors:
    """Mean absolute and mean squared error of released counts."""

    absolute: float
    squared: float


def count_errors(true: ArrayLike, released: ArrayLike) -> CountErrors:
    """How far released counts are from the true ones, row by row (002, section 6.2).

    >>> count_errors([0, 4], [1, 1])
    CountErrors(absolute=2.0, squared=5.0)
    """
    before, after = np.asarray(true, dtype=float), np.asarray(released, dtype=float)
    if before.shape != after.shape or before.ndim != 1 or len(before) == 0:
        raise ArgumentError("released", "have one count for every true one", after.shape)
    error = after - before
    return CountErrors(float(np.abs(error).mean()), float((error**2).mean()))


def _pair(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    shape = np.shape(first)
    if len(shape) != 1 or shape[0] == 0:
        raise ArgumentError("first", "be a law", f"shape {shape}")
    return law(first, shape[0], "first"), law(second, shape[0], "second")
