"""A range for the counts when none is public: a private quantile, for a reserved budget."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.publish.isotonic import monotone
from tallyveil.publish.methods import noisy_cumulative

__all__ = ["PrivateUpper", "private_upper"]


@dataclass(frozen=True)
class PrivateUpper:
    """A private upper bound and what it cost."""

    upper: int
    epsilon: Fraction
    quantile: float


def private_upper(
    counts: ArrayLike,
    epsilon: Epsilon,
    *,
    ceiling: int,
    quantile: float = 0.99,
    entropy: Any = None,
) -> PrivateUpper:
    """A count that about `quantile` of the rows do not exceed, for a budget of `epsilon`.

    The first j at which the private cumulative histogram, made monotone, reaches
    quantile * rows (002, section 1, suggests the 99th percentile). One person moves one entry
    of the cumulative histogram by one, so the cost is `epsilon` for all quantiles at once;
    add it to what `privatize_counts` spends, and top-code at the result.

    Parameters
    ----------
    counts : whole numbers, shape (N,)
    epsilon : the budget reserved for the bound
    ceiling : a public number that no bound exceeds; larger counts are top-coded there. The
        cost in time is O(ceiling)
    quantile : in (0, 1]
    """
    if not 0 < quantile <= 1:
        raise ArgumentError("quantile", "lie in (0, 1]", quantile)
    exact = exact_epsilon(epsilon)
    column = np.minimum(np.asarray(counts), ceiling).astype(np.int64)
    draws = noisy_cumulative(np.bincount(column, minlength=ceiling + 1), exact, entropy)
    totals = np.append(monotone(draws, len(column)), float(len(column)))
    first = int(np.flatnonzero(totals >= quantile * len(column) - 1e-9)[0])
    return PrivateUpper(max(first, 1), exact, quantile)
