"""The mechanisms that Cormode, Kulkarni and Srivastava (2018) compare, under the paper's names."""

from __future__ import annotations

import math
from functools import lru_cache

from reproduction.papers import epsilon_from_alpha
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.exponential import fair, uniform
from tallyveil.mechanisms.geometric import geometric
from tallyveil.optimize.design import design
from tallyveil.papers.cormode import wm
from tallyveil.query import Query

__all__ = ["WM_MONOTONE", "WM_WEAK", "build_compared", "fair_diagonal", "solve_program"]

WM_MONOTONE, WM_WEAK = "WM (column monotone)", "WM (weak honesty)"
"""The two mechanisms that the paper calls WM (errata, Cormode 14), as labels of curves."""


def fair_diagonal(n: int, alpha: float) -> float:
    """Compute y, the probability that the explicit fair mechanism EM tells the truth.

    Parameters
    ----------
    n : int
        The largest count, at least 1.
    alpha : float
        e^-epsilon, between 0 and 1.

    Returns
    -------
    float
        (1-a)/(1+a-2a^(n/2+1)) for even n, (1-a)/((1+a)(1-a^((n+1)/2))) for odd n; the paper
        prints the first for both (errata, Cormode 7).

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), equation 16.

    Examples
    --------
    >>> round(fair_diagonal(4, 10 / 11), 4), round(fair_diagonal(1, 0.5), 4)
    (0.2237, 0.6667)
    """
    if n % 2 == 0:
        return (1 - alpha) / (1 + alpha - 2 * math.pow(alpha, n / 2 + 1))
    return (1 - alpha) / ((1 + alpha) * (1 - math.pow(alpha, (n + 1) / 2)))


@lru_cache(maxsize=1024)
def solve_program(n: int, alpha: float, loss: str, properties: tuple[str, ...]) -> Mechanism:
    """Solve the design problem of a count from 0 to `n`; results are cached between figures."""
    query = Query.count(n)
    return design(query, epsilon_from_alpha(alpha), loss, properties=properties).mechanism


@lru_cache(maxsize=256)
def build_compared(n: int, alpha: float) -> dict[str, Mechanism]:
    """Build the mechanisms that sections 6 and 7 compare under the zero-one loss, by name."""
    query, epsilon = Query.count(n), epsilon_from_alpha(alpha)
    return {
        "GM": geometric(query, epsilon),
        WM_MONOTONE: wm(query, epsilon, "zero_one", reading="monotone").mechanism,
        WM_WEAK: wm(query, epsilon, "zero_one", reading="weak").mechanism,
        "EM": fair(query, epsilon),
        "UM": uniform(query),
    }
