"""Estimates that are right on average, for one group and for sums over many."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError, InfeasibleError
from tallyveil.mechanism import Mechanism, check_confidence
from tallyveil.mechanisms.geometric import geometric_rate
from tallyveil.prior import Prior
from tallyveil.prior import resolve_prior as prior_law
from tallyveil.reading.posterior import output_positions

__all__ = ["Estimate", "UnbiasedEstimator", "estimate_mean", "estimate_total", "unbiased"]

RESIDUAL = 1e-7
"""How exactly, relative to the range, an estimator must reproduce every true answer."""


@dataclass(frozen=True, eq=False)
class UnbiasedEstimator:
    """A number for every released value whose expectation is the true answer, whatever it is.

    **It may be negative, fractional or beyond the range**: that is the price of being right
    on average. Use it for sums and means over many groups, not as a single group's answer.

    Attributes
    ----------
    values : the estimate for each output, shape (m,)
    variance : of the estimate, for each true answer, shape (n,)
    variance_estimates : a number for each output whose expectation is that variance, shape
        (m,); single ones may be negative, their sum over many groups is what counts
    """

    mechanism: Mechanism
    values: Floats
    variance: Floats
    variance_estimates: Floats

    def __call__(self, released: ArrayLike) -> Any:
        """The estimates for released values, in the same shape."""
        return self.values[output_positions(self.mechanism, released)]


@dataclass(frozen=True)
class Estimate:
    """A total or mean over groups: value, standard error and a normal interval."""

    value: float
    standard_error: float
    low: float
    high: float
    groups: int


def unbiased(mechanism: Mechanism, prior: Prior = None) -> UnbiasedEstimator:
    """Solve sum_r M[i, r] u[r] = i for every true answer i.

    For the geometric mechanism with a = exp(-epsilon) it only corrects the ends:
    u = -a/(1-a), 1, 2, ..., n-1, n + a/(1-a), with variance estimates 2a/(1-a)^2 inside and
    half of that at the ends. For any other matrix it is a linear solve, of least mean
    variance under `prior` where there are more outputs than true answers.

    Raises `InfeasibleError` where no unbiased estimator exists (the rows say too little, as
    for the uniform mechanism) or rounding would spoil it. Costs O(n^3), O(n) if geometric.

    >>> from tallyveil import Query
    >>> m = Mechanism([[0.75, 0.25], [0.25, 0.75]], Query.count(1))
    >>> np.round(unbiased(m).values, 9).tolist()
    [-0.5, 1.5]
    """
    matrix = mechanism.matrix
    true = mechanism.query.inputs.astype(float)
    rate = geometric_rate(mechanism)
    step = mechanism.query.step
    if rate is not None and step is not None:
        values, noise = _geometric(true, rate, step)
    else:
        centred = true - true.mean()
        first, second = _solved(matrix, np.column_stack([centred, centred**2]), prior).T
        values, noise = first + true.mean(), first**2 - second
        spread = float(np.ptp(true))
        if np.abs(matrix @ values - true).max() > RESIDUAL * spread:
            raise InfeasibleError(
                f"{mechanism.name} has no unbiased estimator that floats can express: its rows "
                "are too much alike."
            )
    centre = values - true.mean()
    variance = matrix @ centre**2 - (matrix @ centre) ** 2
    return UnbiasedEstimator(mechanism, values, variance, noise)


def _geometric(true: Floats, rate: float, step: float) -> tuple[Floats, Floats]:
    shrink = -np.expm1(-rate)
    a = np.exp(-rate)
    values, noise = true.copy(), np.full(len(true), 2 * a / shrink**2)
    values[0] -= step * a / shrink
    values[-1] += step * a / shrink
    noise[[0, -1]] /= 2
    return values, step**2 * noise


def _solved(matrix: Floats, right: Floats, prior: Prior) -> Floats:
    """The solution of matrix @ u = right with the least prior mean of u^2."""
    reach = prior_law(prior, len(matrix)) @ matrix
    if not (reach[matrix.max(axis=0) > 0] > 0).all():
        raise ArgumentError("prior", "make every output possible", "an output it rules out")
    scale = np.where(reach > 0, 1 / np.sqrt(np.where(reach > 0, reach, 1.0)), 0.0)
    solution: Floats = scale[:, None] * np.linalg.lstsq(matrix * scale, right, rcond=1e-13)[0]
    return solution


def estimate_total(
    mechanism: Mechanism, released: ArrayLike, confidence: float = 0.95, prior: Prior = None
) -> Estimate:
    """The sum of the true answers of many groups, each released on its own.

    The unbiased estimates are added, and so are the estimates of their variances: the
    standard error is unbiased (in the square) whatever the true answers are. The interval is
    value -/+ z standard errors, a normal approximation: good for dozens of groups, not for
    three.

    >>> from tallyveil import Query, geometric
    >>> estimate_total(geometric(Query.count(9), epsilon=1.0), [3, 4, 5]).value
    12.0
    """
    return _sum(mechanism, released, confidence, prior, scale=False)


def estimate_mean(
    mechanism: Mechanism, released: ArrayLike, confidence: float = 0.95, prior: Prior = None
) -> Estimate:
    """The mean of the true answers over groups; see `estimate_total`."""
    return _sum(mechanism, released, confidence, prior, scale=True)


def _sum(
    mechanism: Mechanism, released: ArrayLike, confidence: float, prior: Prior, scale: bool
) -> Estimate:
    check_confidence(confidence)
    at = output_positions(mechanism, np.atleast_1d(np.asarray(released)))
    if len(at) == 0:
        raise ArgumentError("released", "hold at least one released value", "nothing")
    estimator = unbiased(mechanism, prior)
    divisor = len(at) if scale else 1
    value = float(estimator.values[at].sum()) / divisor
    variance = max(0.0, float(estimator.variance_estimates[at].sum()))
    error = float(np.sqrt(variance)) / divisor
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * error
    return Estimate(value, error, value - reach, value + reach, len(at))
