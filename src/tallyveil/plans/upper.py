"""A range for the counts when none is public: a private quantile, for a reserved budget."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Integers, count_values
from tallyveil.certified.certify import certify_noise
from tallyveil.certified.mechanism import CertifiedNoise
from tallyveil.errors import ArgumentError, TableError
from tallyveil.estimate.direct import monotone
from tallyveil.exact import Epsilon
from tallyveil.plans.methods import noisy_cumulative
from tallyveil.sampling.entropy import Entropy
from tallyveil.sampling.marks import mark_draws

__all__ = ["CEILING", "PrivateUpper", "find_upper", "private_upper"]

CEILING = 10_000
"""No private upper bound lies above this."""

QUANTILE = 0.99


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
    ceiling: int = CEILING,
    quantile: float = QUANTILE,
    entropy: Entropy | None = None,
) -> PrivateUpper:
    """A count that about `quantile` of the rows do not exceed, for a budget of `epsilon`.

    The first j at which the private cumulative histogram, made monotone, reaches
    quantile * rows. One person moves one entry of the cumulative histogram by one, so the cost
    is `epsilon` for all quantiles at once; top-code at the result.

    Parameters
    ----------
    counts : array of int, shape (N,)
        Whole numbers of at least 0.
    epsilon : number
        The budget reserved for the bound.
    ceiling : int
        A public number that no bound exceeds; larger counts are top-coded there. The cost in
        time is O(ceiling).
    quantile : float
        In (0, 1].
    entropy : Entropy, optional
        None takes a fresh key from the operating system.

    Returns
    -------
    PrivateUpper
        The bound, at least 1, and what it cost.

    References
    ----------
    Kohli and Laskowski (2026), section 1, suggest the 99th percentile.
    """
    if not isinstance(quantile, (int, float)) or not 0 < quantile <= 1:
        raise ArgumentError("quantile", "lie in (0, 1]", quantile)
    column = np.asarray(counts)
    if column.ndim != 1 or column.dtype.kind not in "iu" or (column.size and column.min() < 0):
        raise TableError("The counts must be one column of whole numbers of at least 0.")
    if len(column) == 0:
        raise TableError("The table has no rows: there is nothing to privatize.")
    noise = certify_noise(epsilon)
    source = Entropy.fresh(entropy)
    histogram = count_values(np.minimum(column, ceiling), ceiling + 1)
    found = find_upper(histogram, noise, source, quantile)
    return PrivateUpper(mark_draws(found, source), noise.exact_epsilon, quantile)


def find_upper(
    histogram: Integers, noise: CertifiedNoise, entropy: Entropy, quantile: float = QUANTILE
) -> int:
    """The bound itself, from the rows of every count 0..ceiling; the noise is certified already."""
    rows = int(histogram.sum())
    totals = np.append(monotone(noisy_cumulative(histogram, noise, entropy), rows), float(rows))
    first = int(np.flatnonzero(totals >= quantile * rows - 1e-9)[0])
    return max(first, 1)
