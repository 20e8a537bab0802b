"""The exponential mechanism of McSherry and Talwar for any quality function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.loss import loss_table
from tallyveil.mechanism import Mechanism
from tallyveil.query import Query, require_query

__all__ = ["exponential"]


def exponential(
    query: Query,
    epsilon: Epsilon,
    quality: Callable[[Any, Any], Any] | ArrayLike | None = None,
    sensitivity: float | None = None,
) -> Mechanism:
    """Outputs weighted by exp(epsilon Q(true, released) / (2 s)) (000, equation 3).

    Parameters
    ----------
    quality : a function of (true, released) or a table of shape (n, m), larger is better;
        by default minus the absolute error
    sensitivity : s, the most that Q(., released) differs between neighbours. By default the
        exact value for this query; a smaller one would break the promise and is refused.

    For one bit it is randomized response at epsilon/2 (000, Theorem 4 with errata 000.13).

    >>> m = exponential(Query.count(1), 2.0)
    >>> round(m.realised_epsilon(), 9)
    1.0
    """
    exact = exact_epsilon(epsilon)
    require_query(query)
    table = loss_table(query, quality) if quality is not None else -loss_table(query, "absolute")
    steepest = max(
        float(np.abs(table[high] - table[low]).max()) for low, high in query.neighbours.blocks()
    )
    if sensitivity is None:
        sensitivity = steepest
    elif not np.isfinite(sensitivity) or sensitivity < steepest * (1 - 1e-12):
        raise ArgumentError(
            "sensitivity", f"be at least {steepest:g}, the change one person can make", sensitivity
        )
    scores = table * (float(exact) / (2 * sensitivity)) if sensitivity > 0 else table * 0.0
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    matrix = weights / weights.sum(axis=1, keepdims=True)
    return Mechanism(matrix, query, exact, name="exponential")
