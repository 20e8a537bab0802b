"""How a noisy histogram becomes a distribution; a function of private numbers only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError
from tallyveil.estimate.direct import monotone

__all__ = ["POSTPROCESSING", "clip_shares", "fit_isotonic", "project_on_simplex", "to_distribution"]


def to_distribution(histogram: ArrayLike, method: str = "isotonic") -> Floats:
    """Turn a noisy histogram into a distribution near it.

    Parameters
    ----------
    histogram : array of float, shape (n,)
        Noisy counts or shares with a positive sum; entries may be negative. The sum is taken
        as the public number of rows, or as 1 for shares.
    method : {"isotonic", "clip", "simplex"}
        See `fit_isotonic`, `clip_shares` and `project_on_simplex`.

    Returns
    -------
    array of float, shape (n,)
        Non-negative, summing to one.

    Examples
    --------
    >>> to_distribution([3.0, -1.0, 2.0], "clip").tolist()
    [0.6, 0.0, 0.4]
    """
    if method not in POSTPROCESSING:
        raise ArgumentError("method", f"be one of {', '.join(POSTPROCESSING)}", method)
    noisy = np.asarray(histogram, dtype=float)
    if noisy.ndim != 1 or not np.isfinite(noisy).all() or not noisy.sum() > 0:
        raise ArgumentError("histogram", "be finite numbers with a positive sum")
    return POSTPROCESSING[method](noisy / noisy.sum())


def clip_shares(shares: Floats) -> Floats:
    """Set negative shares to 0 and rescale, as Kohli and Laskowski (2026) do in section 6."""
    kept = np.maximum(shares, 0.0)
    distribution: Floats = kept / kept.sum()
    return distribution


def project_on_simplex(shares: Floats) -> Floats:
    """Project on the probability simplex: the nearest distribution in squared distance.

    >>> project_on_simplex(np.array([0.9, 0.3, -0.2])).round(9).tolist()
    [0.8, 0.2, 0.0]
    """
    ranked = np.sort(shares)[::-1]
    excess = (np.cumsum(ranked) - 1) / np.arange(1, len(shares) + 1)
    level = excess[np.flatnonzero(ranked > excess)[-1]]
    return clip_shares(shares - level)


def fit_isotonic(shares: Floats) -> Floats:
    """Find the distribution whose cumulative sums are nearest in squared distance."""
    total = monotone(np.cumsum(shares)[:-1], 1.0)
    return np.diff(total, prepend=0.0, append=1.0)


POSTPROCESSING: dict[str, Callable[[Floats], Floats]] = {
    "isotonic": fit_isotonic,
    "clip": clip_shares,
    "simplex": project_on_simplex,
}
"""Every post-processing by name."""
