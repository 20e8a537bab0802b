"""How far apart two distributions of counts are, and how far off released counts are.

Comparing with the truth is confidential: keep such numbers inside the agency.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.answers import read_floats
from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError
from tallyveil.prior import require_distribution

__all__ = ["CountErrors", "count_errors", "kolmogorov_smirnov", "total_variation", "wasserstein"]


def wasserstein(first: ArrayLike, second: ArrayLike) -> float:
    """Compute the Wasserstein-1 distance: how far rows must move, on average.

    sum_j |F(j) - G(j)| over the cumulative distributions F and G.

    Parameters
    ----------
    first, second : array of float, shape (n,)
        Two distributions over the same counts.

    Returns
    -------
    float
        The distance, 0 for equal distributions.

    References
    ----------
    Kohli and Laskowski (2026), section 6.1.

    Examples
    --------
    >>> wasserstein([1.0, 0.0, 0.0], [0.0, 0.0, 1.0])
    2.0
    """
    one, other = _read_pair(first, second)
    return float(np.abs(np.cumsum(one - other)).sum())


def total_variation(first: ArrayLike, second: ArrayLike) -> float:
    """Compute the total variation distance: the share of rows that must move.

    Half the sum of absolute differences.

    Parameters
    ----------
    first, second : array of float, shape (n,)
        Two distributions over the same counts.

    Returns
    -------
    float
        The distance, 0 for equal distributions.

    Examples
    --------
    >>> total_variation([1.0, 0.0], [0.5, 0.5])
    0.5
    """
    one, other = _read_pair(first, second)
    return float(np.abs(one - other).sum() / 2)


def kolmogorov_smirnov(first: ArrayLike, second: ArrayLike) -> float:
    """Compute the Kolmogorov-Smirnov distance.

    The largest difference between the cumulative distributions.

    Parameters
    ----------
    first, second : array of float, shape (n,)
        Two distributions over the same counts.

    Returns
    -------
    float
        The distance, 0 for equal distributions.

    Examples
    --------
    >>> kolmogorov_smirnov([1.0, 0.0], [0.5, 0.5])
    0.5
    """
    one, other = _read_pair(first, second)
    return float(np.abs(np.cumsum(one - other)).max())


@dataclass(frozen=True)
class CountErrors:
    """Mean absolute and mean squared error of released counts."""

    absolute: float
    squared: float


def count_errors(true: ArrayLike, released: ArrayLike) -> CountErrors:
    """Compute how far released counts are from the true ones, row by row.

    Parameters
    ----------
    true, released : array of int, shape (rows,)
        True and released counts. The result is confidential.

    Returns
    -------
    CountErrors
        Mean absolute and mean squared error.

    References
    ----------
    Kohli and Laskowski (2026), section 6.2.

    Examples
    --------
    >>> count_errors([0, 4], [1, 1])
    CountErrors(absolute=2.0, squared=5.0)
    """
    before, after = read_floats(true, "true"), read_floats(released, "released")
    if before.shape != after.shape or before.ndim != 1 or len(before) == 0:
        got = f"shape {after.shape}"
        raise ArgumentError("released", "have one count for every true one", got=got)
    error = after - before
    return CountErrors(float(np.abs(error).mean()), float((error**2).mean()))


def _read_pair(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    """Both as distributions of one length."""
    shape = read_floats(first, "first").shape
    if len(shape) != 1 or shape[0] == 0:
        raise ArgumentError("first", "be a distribution", got=f"shape {shape}")
    size = shape[0]
    return require_distribution(first, size, "first"), require_distribution(second, size, "second")
