"""How far the optimal mechanisms of one design problem can lie apart: is the optimum unique?"""

from __future__ import annotations

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.exact import Epsilon
from tallyveil.loss import Loss, loss_table
from tallyveil.optimize.design import design
from tallyveil.query import Query

__all__ = ["bound_over_optima", "bound_spread"]

STEP = 1e-3
"""How far the loss is bent. Any step gives a bound, a small one a sharp bound."""


def bound_over_optima(
    query: Query,
    epsilon: Epsilon,
    loss: Loss,
    weights: Floats,
    properties: tuple[str, ...] = (),
) -> float:
    """Bound sum_ij weights_ij M_ij from above, over every optimal mechanism M.

    Let c(L) be the least expected loss under a uniform prior. If M is optimal for L, then
    c(L - d w) <= c(L) - d <w, M>, so that <w, M> <= (c(L) - c(L - d w)) / d. The lower bound of
    `tallyveil.design` stands for the second c, so this holds whatever the solver did.

    Parameters
    ----------
    query, epsilon, loss, properties
        As for `tallyveil.design`.
    weights : array of float, shape (n, m)
        The weight of each entry of the matrix.

    Returns
    -------
    float
        The bound.
    """
    table = loss_table(query, loss)
    bent = table - STEP * len(table) * weights
    lift = max(0.0, -float(bent.min()))  # a constant changes no optimum; losses stay positive
    best = design(query, epsilon, table, properties=properties).objective
    lowest = design(query, epsilon, bent + lift, properties=properties).lower_bound - lift
    return (best - lowest) / STEP


def bound_spread(
    query: Query, epsilon: Epsilon, loss: Loss, properties: tuple[str, ...] = ()
) -> float:
    """Bound how far two optimal mechanisms differ in any entry; near 0 the optimum is unique.

    Parameters
    ----------
    query, epsilon, loss, properties
        As for `tallyveil.design`.

    Returns
    -------
    float
        The largest difference, up to the accuracy of the solver over `STEP` (about 1e-5).
    """
    widest = 0.0
    for entry in np.ndindex(query.shape):
        weights = np.zeros(query.shape)
        weights[entry] = 1.0
        high = bound_over_optima(query, epsilon, loss, weights, properties)
        low = -bound_over_optima(query, epsilon, loss, -weights, properties)
        widest = max(widest, high - low)
    return widest
