"""The exponential mechanism of McSherry and Talwar for any quality function."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import COMPARISON_ROUNDING
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
    """Build the mechanism that weights outputs by exp(epsilon Q(true, released) / (2 s)).

    For one bit it is randomized response at epsilon/2.

    Parameters
    ----------
    query : Query
        Any query.
    epsilon : int, float, str, Decimal or Fraction
        The privacy loss.
    quality : function, array of float of shape (n, m), or None
        Q, a function of (true, released) or a table; larger is better. By default minus the
        absolute error.
    sensitivity : float or None
        s, the most that Q(., released) differs between neighbours. By default the exact value
        for this query; a smaller one would break the promise and is refused.

    Returns
    -------
    Mechanism
        The matrix, shape (n, m).

    References
    ----------
    McSherry and Talwar (2007). Cormode, Kulkarni and Srivastava (2018), equation 3 and Theorem 4
    (errata, Cormode 13).

    Examples
    --------
    >>> m = exponential(Query.count(1), 2.0)
    >>> round(m.realised_epsilon(), 9)
    1.0
    """
    exact = exact_epsilon(epsilon)
    require_query(query)
    if isinstance(quality, (str, tuple)):  # a loss has a name, and is worse when larger
        rule = "be a function of (true, released) or a table"
        raise ArgumentError("quality", rule, quality)
    table = loss_table(query, quality) if quality is not None else -loss_table(query, "absolute")
    steepest = max(
        float(np.abs(table[high] - table[low]).max()) for low, high in query.neighbours.blocks()
    )
    least = steepest * (1 - COMPARISON_ROUNDING)
    if sensitivity is None:
        sensitivity = steepest
    elif not isinstance(sensitivity, Real) or not least <= sensitivity < math.inf:
        rule = f"be a finite number of at least {steepest:g}, the change one person can make"
        raise ArgumentError("sensitivity", rule, sensitivity)
    scores = table * (float(exact) / (2 * sensitivity)) if sensitivity > 0 else table * 0.0
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    matrix = weights / weights.sum(axis=1, keepdims=True)
    return Mechanism(matrix, query, exact, name="exponential")
