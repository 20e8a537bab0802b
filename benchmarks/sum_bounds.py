"""Whether any shares give states the error of a fixed pass and rows what they are promised.

Part of `benchmarks.sums`. Let the distribution of the rows be known for nothing, and let states be
estimated from the posterior of their rows as well as from a measurement of their own. With the
share s for states their error is::

    1 / (1 / v(s epsilon) + 1 / (g V))

v the variance of the noise, g the rows of a state and V the mean posterior variance of a row whose
draw has (1 - s) epsilon; rows that are handed out by rank have the error of the frontier's end at
(1 - s) epsilon. The least s at which states are as near as those of the pass bounds the rows from
below. It is a bound for ways that give rows and states noise of their own and rank rows by their
draws, for a table drawn from the distribution; it is a guide, not a proof for one table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import tallyveil as tv
from tallyveil._threads import one_blas_thread
from tallyveil.sums.combine import noise_variance

__all__ = ["LeastShare", "find_least_share"]

STEPS = 50
"""Shares are tried in steps of one over this, up to a half."""


@dataclass(frozen=True)
class LeastShare:
    """The least share of states that reaches an error, and the error of rows with the rest."""

    share: float
    rows: float


def find_least_share(
    counts: np.ndarray, states: np.ndarray, upper: int, epsilon: float, state_error: float
) -> LeastShare:
    """Find the least share whose states have at most `state_error` (root mean squared)."""
    shares = np.bincount(counts, minlength=upper + 1) / len(counts)
    sizes = np.bincount(states)
    query = tv.Query.count(upper)
    with one_blas_thread():
        for step in range(STEPS // 2):
            share = step / STEPS
            own = epsilon * (1 - share)
            precision = 1 / (sizes * _posterior_variance(shares, own))
            if share:
                precision = precision + 1 / noise_variance(epsilon * share)
            if np.sqrt((1 / precision).mean()) <= state_error:
                curve = tv.frontier(query, own, shares, tradeoffs=[1.0])
                return LeastShare(share, float(curve.error[-1]))
    return LeastShare(0.5, np.inf)


def _posterior_variance(shares: np.ndarray, epsilon: float) -> float:
    """The mean variance of a count given its draw, the distribution known."""
    joint = shares[:, None] * tv.geometric(tv.Query.count(len(shares) - 1), epsilon).matrix
    drawn = np.maximum(joint.sum(axis=0), 1e-300)
    at = np.arange(len(shares))
    mean = at @ joint / drawn
    return float((at**2 @ joint - drawn * mean**2).sum())
