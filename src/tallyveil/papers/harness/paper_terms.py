"""The papers' own quantities in terms of ours, and the mechanisms of paper 000 by name.

Paper 000 measures privacy by a = e^(-epsilon), and rescales the zero-one loss by (n+1)/n so
that guessing costs 1.
"""

from __future__ import annotations

import math
from functools import lru_cache

from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.fair import fair, uniform
from tallyveil.mechanisms.geometric import geometric
from tallyveil.optimize.design import design
from tallyveil.papers.named import wm
from tallyveil.prior import Prior
from tallyveil.query import Query

__all__ = ["epsilon_at", "fair_diagonal", "named", "program", "rescaled_loss", "weak"]


def epsilon_at(ratio: float) -> float:
    """The epsilon at which neighbours' probabilities differ by the factor `ratio` < 1.

    >>> round(epsilon_at(0.5), 6)
    0.693147
    """
    return -math.log(ratio)


def rescaled_loss(mechanism: Mechanism, beyond: float = 0, prior: Prior = None) -> float:
    """L0,d of paper 000: (n+1)/n times the chance of an error of more than d (errata 000.2).

    >>> round(rescaled_loss(uniform(Query.count(4))), 12)
    1.0
    """
    n = len(mechanism.query.inputs) - 1
    return (n + 1) / n * mechanism.expected_loss(("beyond", beyond), prior)


def fair_diagonal(n: int, ratio: float) -> float:
    """y, the chance that the fair mechanism tells the truth (000, equation 16, errata 000.7)."""
    if n % 2 == 0:
        return (1 - ratio) / (1 + ratio - 2 * math.pow(ratio, n / 2 + 1))
    return (1 - ratio) / ((1 + ratio) * (1 - math.pow(ratio, (n + 1) / 2)))


@lru_cache(maxsize=1024)
def program(n: int, ratio: float, loss: str, properties: tuple[str, ...]) -> Mechanism:
    """The optimum of a design problem on a count of `n` people, kept for the next figure."""
    return design(Query.count(n), epsilon_at(ratio), loss, properties=properties).mechanism


@lru_cache(maxsize=256)
def weak(n: int, ratio: float, reading: str) -> Mechanism:
    """WM in its two readings: "weak" or "monotone" (errata 000.14)."""
    query, epsilon = Query.count(n), epsilon_at(ratio)
    if reading == "weak":
        return wm(query, epsilon, "zero_one", reading="weak").mechanism
    return wm(query, epsilon, "zero_one", reading="monotone").mechanism


def named(n: int, ratio: float) -> dict[str, Mechanism]:
    """The mechanisms that paper 000 compares under the zero-one loss, by its names."""
    query, epsilon = Query.count(n), epsilon_at(ratio)
    return {
        "GM": geometric(query, epsilon),
        "WM (column monotone)": weak(n, ratio, "monotone"),
        "WM (weak honesty)": weak(n, ratio, "weak"),
        "EM": fair(query, epsilon),
        "UM": uniform(query),
    }
