"""How far sums of noisy counts may lie from the truth: quantiles of sums, small ones included."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from tallyveil.arrays import Floats

__all__ = ["bound_reach", "measure_tails", "reach_of_sum"]

MOST_EXACT = 2000
"""Sums of more rows than this are normal to all digits that matter."""

MOST_POINTS = 1 << 18
"""How many points a distribution is worked out at."""

EXPONENTS = np.geomspace(1e-3, 20.0, 200)
"""Where the bound on the tails of a sum is evaluated, in units of 1 / standard deviation."""


@lru_cache(maxsize=4096)
def reach_of_sum(rows: int, epsilon: float, confidence: float) -> float:
    """The smallest q with Pr(|Z_1 + ... + Z_rows| <= q) >= confidence, Z two-sided geometric.

    The sum has the characteristic function ((1-a)^2 / (1 - 2 a cos t + a^2))^rows, whose inverse
    transform is summed from the middle; for many rows the normal quantile. Where the noise is so
    wide that this would take long, the quantile of a sum of continuous noises, rounded up.

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
    """The quantile of |L_1 + ... + L_rows|, each Laplace of scale 1.

    A Laplace noise is a two-sided geometric one plus an independent remainder that is symmetric
    about 0, and a sum of the latter is unimodal. So by Anderson's inequality the whole number
    above this quantile, over epsilon, holds a sum of geometric noises at least as often; it is
    larger than their own by a relative epsilon^2 / 24 or so. The sum is a difference of two
    Erlang variables: when one has ended, m of the other's phases are left, with the chances w_m::

        Pr(|sum| > q) = sum_m w_m Q(m, q),   w_m = 2^(m - 2 rows + 1) C(2 rows - m - 1, rows - 1)
    """
    from scipy.optimize import brentq
    from scipy.special import gammaincc, gammaln

    left = np.arange(1, rows + 1)
    log_chances = (
        gammaln(2 * rows - left)
        - gammaln(rows)
        - gammaln(rows - left + 1)
        + (left - 2 * rows + 1) * math.log(2)
    )
    chances = np.exp(log_chances)

    def exceed(reach: float) -> float:
        return float(chances @ gammaincc(left, reach)) - (1 - confidence)

    most = 30 * math.sqrt(2 * rows) + 60
    return float(brentq(exceed, 0.0, most, xtol=1e-9 * most))


def measure_tails(matrix: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """Exponents s, and log max_d E exp(+-s error) for each, shapes (k,) and (2, k).

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
    """A q with Pr(|sum of `rows` errors| <= q) >= confidence, whatever the true answers are.

    Chernoff's bound, with the true answer that makes each tail heaviest and alpha = 1 -
    confidence; `tails` come from `measure_tails`::

        q = min_s (rows log max_d E exp(s error) + log(2 / alpha)) / s
    """
    exponents, growth = tails
    reaches = (rows * growth + math.log(2 / (1 - confidence))) / exponents
    return float(reaches.min(axis=1).max())
