"""Cauchy noise scaled to the smooth sensitivity of one given database.

The distribution of the released answer depends on the whole database, not on the true answer
alone, so it is one distribution and not a `Mechanism`. Croft, Sack and Shi (2020), section
4.3.5, compare with it on real data.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import COMPARISON_ROUNDING, Floats
from tallyveil.errors import ArgumentError, QueryError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.mechanisms.additive import CauchyNoise, noise_matrix
from tallyveil.query import Query, require_query

__all__ = ["cauchy", "smooth_sensitivity"]


def smooth_sensitivity(query: Query, database: ArrayLike, beta: float) -> float:
    """Compute S = max over k of exp(-beta k) A_k, A_k the local sensitivity k changes away.

    With x sorted, x_i = lower for i < 1 and upper for i > n: for a maximum
    A_k = max(upper - x_(n-k), x_n - x_(n-k-1)), since k changes can lower the k largest, or
    all but the largest; a minimum is its mirror image; for the median of odd n,
    A_k = max over t <= k+1 of x_(m+t) - x_(m+t-k-1). Costs O(n), O(n^2) for the median.

    Parameters
    ----------
    query : Query
        A maximum, minimum or median.
    database : array of float, shape (n,)
        The confidential records, within the range of the query; n odd for a median.
    beta : float
        The rate at which far databases count less, above 0.

    Returns
    -------
    float
        The smooth sensitivity; confidential.

    References
    ----------
    Nissim, Raskhodnikova and Smith (2007), section 3.

    Examples
    --------
    >>> smooth_sensitivity(Query.maximum(0, 9), [1, 2, 9], beta=2)    # A = 7, 8, 9
    7.0
    """
    require_query(query)
    if query.kind not in ("maximum", "minimum", "median"):
        raise QueryError("query", "be a maximum, minimum or median", repr(query))
    if not beta > 0 or not np.isfinite(beta):
        raise ArgumentError("beta", "be a finite number greater than 0", beta)
    low, high = float(query.inputs[0]), float(query.inputs[-1])
    values = np.sort(np.asarray(database, dtype=float))
    if values.ndim != 1 or len(values) == 0:
        raise ArgumentError("database", "be a non-empty list of numbers")
    if not np.isfinite(values).all() or values[0] < low or values[-1] > high:
        raise ArgumentError("database", f"lie between {low:g} and {high:g}")
    if query.kind == "median":
        return _smooth_median(values, low, high, beta)
    if query.kind == "minimum":
        values, low, high = -values[::-1], -high, -low
    falling = np.concatenate([values[::-1], [low, low]])  # x_n, x_(n-1), ..., x_1, x_0, x_(-1)
    local = np.maximum(high - falling[:-1], values[-1] - falling[1:])
    return float((np.exp(-beta * np.arange(len(local))) * local).max())


def _smooth_median(values: Floats, low: float, high: float, beta: float) -> float:
    n = len(values)
    if n % 2 == 0:
        raise ArgumentError("database", "hold an odd number of records for a median", n)
    padded = np.concatenate([np.full(n + 1, low), values, np.full(n + 1, high)])
    middle = n + 1 + (n - 1) // 2
    best = 0.0
    for k in range(n + 1):
        t = np.arange(k + 2)
        inside = np.minimum(middle + t, len(padded) - 1)
        spread = padded[inside] - padded[np.maximum(middle + t - k - 1, 0)]
        best = max(best, float(np.exp(-beta * k) * spread.max()))
    return best


def cauchy(
    query: Query,
    epsilon: Epsilon,
    database: ArrayLike,
    *,
    beta: float | None = None,
    boundary: Literal["snap", "normalize"] = "snap",
) -> Floats:
    """Compute the distribution of the released answer for one database, with Cauchy noise.

    The scale is 8 S/epsilon, S the smooth sensitivity at `beta`. The privacy loss is at most
    epsilon/8 + beta: moving the centre by at most S costs S/scale, since the logarithm of the
    density has slope at most 1/scale, and changing the scale by at most a factor e^beta costs
    beta.

    Parameters
    ----------
    query, database
        As for `smooth_sensitivity`.
    epsilon : number or str
        The privacy loss.
    beta : float, optional
        At most 7 epsilon/8, the default, which makes the noise as small as the promise allows.
        The paper gives none (errata, Croft 9).
    boundary : {"snap", "normalize"}
        Move answers outside the range to its ends, or rescale what lies inside. Only
        ``"snap"`` keeps the privacy of the noise; ``"normalize"`` promises nothing.

    Returns
    -------
    array of float, shape (m,)
        The probability of each released answer; confidential.

    References
    ----------
    Croft, Sack and Shi (2020), section 4.3.5.

    Examples
    --------
    >>> released = cauchy(Query.maximum(0, 9), 1.0, [1, 2, 9])
    >>> round(float(released.sum()), 12)
    1.0
    """
    exact = exact_epsilon(epsilon)
    largest = 7 * float(exact) / 8
    rate = largest if beta is None else beta
    if rate > largest * (1 + COMPARISON_ROUNDING):
        raise ArgumentError("beta", f"be at most {largest:g}, 7/8 of epsilon", beta)
    spread = smooth_sensitivity(query, database, rate)
    values = np.asarray(database, dtype=float)
    position = {"minimum": 0, "median": (len(values) - 1) // 2, "maximum": len(values) - 1}
    answer = np.sort(values)[position[query.kind]]
    scale = 8 * max(spread, 1e-300) / float(exact)
    noise, location = CauchyNoise(scale), np.array([answer])
    released: Floats = noise_matrix(query, noise, boundary, location=location)[0]
    return released
