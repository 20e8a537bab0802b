"""The mechanisms that Cormode, Kulkarni and Srivastava (2018) call by name.

Those found by a linear program are `ucm`, `wm`, `fm` and `am`. GM, EM and UM have closed forms:
`tallyveil.geometric`, `tallyveil.fair` and `tallyveil.uniform`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal

from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon
from tallyveil.loss import Loss
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.exponential import fair, uniform
from tallyveil.mechanisms.geometric import geometric
from tallyveil.optimize.design import Design, design
from tallyveil.papers.alpha import epsilon_from_alpha
from tallyveil.properties import SEVEN
from tallyveil.query import Query

__all__ = ["am", "build_compared", "fair_diagonal", "fm", "solve_program", "ucm", "wm"]

WM_MONOTONE, WM_WEAK = "WM (column monotone)", "WM (weak honesty)"
"""The two mechanisms that the paper calls WM (errata, Cormode 14), as labels of curves."""


def ucm(query: Query, epsilon: Epsilon, loss: Loss = "absolute", **options: Any) -> Design:
    """Design the mechanism of least expected loss, no property asked for: UCM, or LP Variant 1.

    Cormode et al. (2018) call it the unconstrained mechanism UCM, Croft et al. (2020) LP
    Mechanism Variant 1.

    Parameters
    ----------
    query : Query
        What is asked, with its neighbours.
    epsilon : number or str
        The privacy loss.
    loss : any loss of `tallyveil.loss`
        What an error costs.
    **options
        Further options of `tallyveil.design`, such as ``prior`` or ``method``.

    Returns
    -------
    Design
        The optimum with its certified lower bound.

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), section 7.4.
    Croft, Sack and Shi (2020), section 3.4 and Table 3.

    Examples
    --------
    >>> round(ucm(Query.count(5), 0.5).objective, 9)
    1.060537197
    """
    return design(query, epsilon, loss, **options)


def wm(
    query: Query,
    epsilon: Epsilon,
    loss: Loss = "absolute",
    *,
    reading: Literal["weak", "monotone"] = "weak",
    **options: Any,
) -> Design:
    """Design WM, in either of the two readings that the paper gives this name.

    Under the zero-one loss only the reading ``"weak"`` turns into the geometric mechanism as
    n grows (errata, Cormode 14).

    Parameters
    ----------
    query, epsilon, loss, **options
        As for `ucm`.
    reading : {"weak", "monotone"}
        ``"weak"`` asks for weak honesty alone (Figure 6, sections 6.3 and 7.4);
        ``"monotone"`` for weak honesty, row and column monotonicity (section 7.1).

    Returns
    -------
    Design
        The optimum with its certified lower bound.

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), sections 6.3, 7.1 and 7.4.

    Examples
    --------
    >>> q = Query.count(20)                                     # e^-epsilon = 10/11
    >>> epsilon = "0.09531017980432487"
    >>> [round(21 / 20 * wm(q, epsilon, "zero_one", reading=r).objective, 5)
    ...  for r in ("weak", "monotone")]
    [0.95238, 0.96414]
    """
    readings = {
        "weak": ("weakly_honest",),
        "monotone": ("weakly_honest", "row_monotone", "column_monotone"),
    }
    if reading not in readings:
        raise ArgumentError("reading", "be 'weak' or 'monotone'", reading)
    return design(query, epsilon, loss, properties=readings[reading], **options)


def fm(query: Query, epsilon: Epsilon, loss: Loss = "absolute", **options: Any) -> Design:
    """Design FM, the fair mechanism: fairness is the only property asked for.

    Parameters
    ----------
    query, epsilon, loss, **options
        As for `ucm`.

    Returns
    -------
    Design
        The optimum with its certified lower bound.

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), section 7.4.

    Examples
    --------
    >>> round(fm(Query.count(4), 1.0, "zero_one").objective, 6), fm(Query.count(4), 1.0).method
    (0.501602, 'lp')
    """
    return design(query, epsilon, loss, properties=("fair",), **options)


def am(query: Query, epsilon: Epsilon, loss: Loss = "absolute", **options: Any) -> Design:
    """Design AM, the mechanism with all seven properties.

    Parameters
    ----------
    query, epsilon, loss, **options
        As for `ucm`.

    Returns
    -------
    Design
        The optimum with its certified lower bound.

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), section 7.4.

    Examples
    --------
    >>> am(Query.count(4), 1.0).mechanism.properties()["column_monotone"]
    True
    """
    return design(query, epsilon, loss, properties=SEVEN, **options)


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
