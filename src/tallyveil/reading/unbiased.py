"""Unbiased estimates of counts and sums, and bounds on the error of sums."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError, InfeasibleError
from tallyveil.matrix import FrozenArrays, check_confidence
from tallyveil.mechanism import Mechanism, MechanismLike, as_mechanism
from tallyveil.mechanisms.geometric import geometric_rate
from tallyveil.prior import Prior, resolve_prior
from tallyveil.reading.posterior import find_column, find_outputs

LARGEST_RESIDUAL = 1e-7
"""The most that an estimator's expectation may miss a true answer by, relative to the range."""


@dataclass(frozen=True, eq=False, repr=False)
class UnbiasedEstimator(FrozenArrays):
    """A number for every released value whose expectation is the true answer, for every truth.

    **It may be negative, fractional or beyond the range**: that is the price of being right
    on average. Use it for sums and means over many groups, not as a single group's answer.

    Attributes
    ----------
    mechanism : Mechanism
        What releases the values.
    values : array of float, shape (m,)
        The estimate for each output.
    variance : array of float, shape (n,)
        Variance of the estimate, for each true answer.
    variance_estimates : array of float, shape (m,)
        A number for each output whose expectation is that variance. Single ones may be
        negative; use their sum over many groups.
    """

    mechanism: Mechanism
    values: Floats
    variance: Floats
    variance_estimates: Floats

    def __call__(self, released: ArrayLike) -> Any:
        """Return the estimates for released values, in the same shape."""
        return self.values[find_outputs(self.mechanism, released)]

    def __repr__(self) -> str:
        return (
            f"<UnbiasedEstimator: {len(self.values)} released answers, estimates from "
            f"{self.values.min():.4g} to {self.values.max():.4g}>"
        )


@dataclass(frozen=True, repr=False)
class Estimate:
    """A total or mean over groups.

    Attributes
    ----------
    value, standard_error : float
        The estimate and its standard error.
    low, high : float
        An interval around it.
    groups : int
        The number of groups.
    bias_bound : float
        The largest distance of the estimate's expectation from the truth; 0 where it is unbiased.
    """

    value: float
    standard_error: float
    low: float
    high: float
    groups: int
    bias_bound: float = 0.0

    @classmethod
    def normal(cls, value: float, error: float, confidence: float, groups: int) -> Estimate:
        """Build an estimate with the interval value -/+ z standard errors."""
        reach = NormalDist().inv_cdf((1 + confidence) / 2) * error
        return cls(value, error, value - reach, value + reach, groups)

    def __repr__(self) -> str:
        return (
            f"<Estimate: {self.value:.6g}, standard error {self.standard_error:.3g}, interval "
            f"{self.low:.6g} to {self.high:.6g}, {self.groups} groups>"
        )


def unbiased(mechanism: MechanismLike, prior: Prior = None) -> UnbiasedEstimator:
    """Solve sum_r M[i, r] u[r] = i for every true answer i.

    For the geometric mechanism with a = exp(-epsilon) only the ends are corrected:
    u = -a/(1-a), 1, 2, ..., n-1, n + a/(1-a), with variance estimates 2a/(1-a)^2 inside and
    half of that at the ends. For any other matrix it is a linear solve. Costs O(n^3), O(n)
    if geometric.

    Parameters
    ----------
    mechanism : Mechanism, Design or certified mechanism
        The mechanism that releases the values.
    prior : None, "uniform", ("binomial", p) or array of float, shape (n,)
        Where there are more outputs than true answers, the estimator of least mean variance
        under this prior is taken.

    Returns
    -------
    UnbiasedEstimator
        The estimate of every output, with its variance. `InfeasibleError` is raised where no
        unbiased estimator exists (the rows say too little, as for the uniform mechanism) or
        rounding would spoil it.

    Examples
    --------
    >>> from tallyveil import Query
    >>> m = Mechanism([[0.75, 0.25], [0.25, 0.75]], Query.count(1))
    >>> np.round(unbiased(m).values, 9).tolist()
    [-0.5, 1.5]
    """
    mechanism = as_mechanism(mechanism)
    matrix = mechanism.matrix
    true = mechanism.query.inputs.astype(float)
    rate = geometric_rate(mechanism)
    step = mechanism.query.step
    if rate is not None and step is not None:
        values, noise = _estimate_geometric(true, rate, step)
    else:
        centred = true - true.mean()
        first, second = _solve_rows(matrix, np.column_stack([centred, centred**2]), prior).T
        values, noise = first + true.mean(), first**2 - second
        if np.abs(matrix @ values - true).max() > LARGEST_RESIDUAL * float(np.ptp(true)):
            raise InfeasibleError(
                f"{mechanism.name} has no unbiased estimator that floats can express: its rows "
                "are too much alike."
            )
    centre = values - true.mean()
    variance = matrix @ centre**2 - (matrix @ centre) ** 2
    return UnbiasedEstimator(mechanism, values, variance, noise)


def _estimate_geometric(true: Floats, rate: float, step: float) -> tuple[Floats, Floats]:
    """Return estimates and variance estimates of the truncated geometric mechanism."""
    shrink = -np.expm1(-rate)
    a = np.exp(-rate)
    values, noise = true.copy(), np.full(len(true), 2 * a / shrink**2)
    values[0] -= step * a / shrink
    values[-1] += step * a / shrink
    noise[[0, -1]] /= 2
    return values, step**2 * noise


def _solve_rows(matrix: Floats, right: Floats, prior: Prior) -> Floats:
    """Return the solution of matrix @ u = right with the least prior mean of u^2."""
    reach = resolve_prior(prior, len(matrix)) @ matrix
    if not (reach[matrix.max(axis=0) > 0] > 0).all():
        got = "one that rules an output out"
        raise ArgumentError("prior", "make every output possible", got=got)
    scale = np.where(reach > 0, 1 / np.sqrt(np.where(reach > 0, reach, 1.0)), 0.0)
    solution: Floats = scale[:, None] * np.linalg.lstsq(matrix * scale, right, rcond=1e-13)[0]
    return solution


def estimate_total(
    mechanism: MechanismLike, released: ArrayLike, confidence: float = 0.95, prior: Prior = None
) -> Estimate:
    """Estimate the sum of the true answers of many groups, each released separately.

    The unbiased estimates are added, and so are the estimates of their variances: the squared
    standard error is unbiased for all true answers. The interval is value -/+ z standard errors, a
    normal approximation: good for dozens of groups, not for three.

    Parameters
    ----------
    mechanism : Mechanism, Design or certified mechanism
        What released every group.
    released : array of float, shape (groups,)
        The released values, at least one.
    confidence : float
        The level of the interval, strictly between 0 and 1.
    prior : None, "uniform", ("binomial", p) or array of float, shape (n,)
        See `unbiased`.

    Returns
    -------
    Estimate
        Value, standard error and interval.

    Examples
    --------
    >>> from tallyveil import Query, geometric
    >>> estimate_total(geometric(Query.count(9), epsilon=1.0), [3, 4, 5]).value
    12.0
    """
    mechanism = as_mechanism(mechanism)
    check_confidence(confidence)
    outputs = find_column(mechanism, released)[1]
    if len(outputs) == 0:
        raise ArgumentError("released", "hold at least one released value", got="nothing")
    estimator = unbiased(mechanism, prior)
    value = float(estimator.values[outputs].sum())
    error = float(np.sqrt(max(0.0, float(estimator.variance_estimates[outputs].sum()))))
    return Estimate.normal(value, error, confidence, len(outputs))


def estimate_mean(
    mechanism: MechanismLike, released: ArrayLike, confidence: float = 0.95, prior: Prior = None
) -> Estimate:
    """Estimate the mean of the true answers over groups; see `estimate_total`."""
    total = estimate_total(mechanism, released, confidence, prior)
    n = total.groups
    return Estimate(total.value / n, total.standard_error / n, total.low / n, total.high / n, n)


MOST_EXACT = 2000
"""Sums of more rows than this are normal to all digits that matter."""

MOST_POINTS = 1 << 18
"""The most points that a distribution is worked out at."""

EXPONENTS = np.geomspace(1e-3, 20.0, 200)
"""Where the bound on the tails of a sum is evaluated, in units of 1 / standard deviation."""


@lru_cache(maxsize=4096)
def reach_of_sum(rows: int, epsilon: float, confidence: float) -> float:
    """Return the least q with Pr(|Z_1 + ... + Z_rows| <= q) >= confidence.

    Each Z is two-sided geometric. The sum has the characteristic function ((1-a)^2 / (1 - 2 a cos t
    + a^2))^rows, whose inverse transform is summed from the middle; for many rows the normal
    quantile. Where the noise is so wide that this would take long, the quantile of a sum of
    continuous noises, rounded up.

    >>> reach_of_sum(1, 1.0, 0.95), reach_of_sum(100, 1.0, 0.95)
    (3.0, 27.0)
    """
    a, gap = math.exp(-epsilon), -math.expm1(-epsilon)
    deviation = math.sqrt(2 * a * rows) / gap
    if rows > MOST_EXACT:
        return NormalDist().inv_cdf((1 + confidence) / 2) * deviation + 0.5
    size = 1 << math.ceil(math.log2(24 * deviation + 80 / epsilon + 64))
    if size > MOST_POINTS:
        return float(math.ceil(_reach_of_laplace_sum(rows, confidence) / epsilon))
    angle = 2 * np.pi * np.arange(size // 2 + 1) / size
    wave = (gap**2 / (gap**2 + 2 * a * (1 - np.cos(angle)))) ** rows
    chance = np.fft.irfft(wave, size)
    inside = chance[0] + 2 * np.concatenate([[0.0], np.cumsum(chance[1 : size // 2])])
    return float(np.searchsorted(inside, confidence))


@lru_cache(maxsize=4096)
def _reach_of_laplace_sum(rows: int, confidence: float) -> float:
    """Return the quantile of |L_1 + ... + L_rows|, each Laplace of scale 1.

    A Laplace noise is a two-sided geometric one plus an independent remainder that is symmetric
    about 0, and a sum of the latter is unimodal. So by Anderson's inequality the whole number
    above this quantile, over epsilon, holds a sum of geometric noises at least as often; it is
    larger than their quantile by a relative epsilon^2 / 24 or so. The sum is a difference of two
    Erlang variables: when one has ended, m of the other's phases remain, with the chances w_m::

        Pr(|sum| > q) = sum_m w_m Q(m, q),   w_m = 2^(m - 2 rows + 1) C(2 rows - m - 1, rows - 1)
    """
    from scipy.optimize import brentq
    from scipy.special import gammaincc, gammaln

    phases = np.arange(1, rows + 1)
    log_chances = (
        gammaln(2 * rows - phases)
        - gammaln(rows)
        - gammaln(rows - phases + 1)
        + (phases - 2 * rows + 1) * math.log(2)
    )
    chances = np.exp(log_chances)

    def exceed(reach: float) -> float:
        return float(chances @ gammaincc(phases, reach)) - (1 - confidence)

    most = 30 * math.sqrt(2 * rows) + 60
    return float(brentq(exceed, 0.0, most, xtol=1e-9 * most))


def measure_tails(matrix: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """Return exponents s, and log max_d E exp(+-s error) for each, shapes (k,) and (2, k).

    `errors[d, r]` has the chance `matrix[d, r]` and mean zero.
    """
    scale = math.sqrt(float((matrix * errors**2).sum(axis=1).max())) or 1.0
    exponents = EXPONENTS / scale
    growth = [
        [np.log((matrix * np.exp(np.minimum(s * errors, 600.0))).sum(axis=1)).max() for s in side]
        for side in (exponents, -exponents)
    ]
    return exponents, np.array(growth)


def bound_reach(tails: tuple[Floats, Floats], rows: int, confidence: float) -> float:
    """Return a q with Pr(|sum of `rows` errors| <= q) >= confidence, for all true answers.

    Chernoff's bound, with the true answer that makes each tail heaviest and alpha = 1 -
    confidence; `tails` come from `measure_tails`::

        q = min_s (rows log max_d E exp(s error) + log(2 / alpha)) / s
    """
    exponents, growth = tails
    reaches = (rows * growth + math.log(2 / (1 - confidence))) / exponents
    return float(reaches.min(axis=1).max())
