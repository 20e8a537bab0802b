"""The truncated geometric mechanism, from which every optimum on a path can be derived."""

from __future__ import annotations

import numpy as np

from tallyveil.errors import QueryError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.mechanism import Mechanism
from tallyveil.query import Query, require_query

__all__ = ["geometric", "require_grid"]


def geometric(query: Query, epsilon: Epsilon) -> Mechanism:
    """Two-sided geometric noise, with what falls outside the range moved to its ends.

    With a = exp(-epsilon / w), w the widest step between neighbours in grid steps (1 for a
    count), true answer i and output r::

        Pr(r | i) = (1 - a)/(1 + a) a^|i-r|   inside,      a^|i-r| / (1 + a)   at the ends

    (000, Definition 4 with errata 000.1 and Figure 3; 003, Definition 4.) It minimises the
    zero-one loss under a uniform prior (000, Theorem 5), and every minimax or Bayesian
    consumer of a count can derive their own optimum from it (003, Theorem 1).

    Needs outputs on the grid of the inputs (``categories=1``); `extend` is allowed. Entries
    are right to about 1e-13 relative; beyond epsilon * n of about 700 far tails underflow to
    zero, which `certify` mends and `realised_epsilon` reports. Costs O(n m).

    >>> import numpy as np
    >>> np.round(geometric(Query.count(2), "0.6931471805599453").matrix, 6).tolist()
    [[0.666667, 0.166667, 0.166667], [0.333333, 0.333333, 0.333333], [0.166667, 0.166667, 0.666667]]
    """
    exact = exact_epsilon(epsilon)
    require_grid(query, "geometric noise")
    rate = float(exact) / query.neighbours.width
    n, m = query.shape
    decay = np.exp(-rate * np.arange(m))
    both_sides = np.concatenate([decay[:0:-1], decay])
    # on a grid the homes of successive inputs are successive: each row is the last, shifted
    rows = np.lib.stride_tricks.sliding_window_view(both_sides, m)[m - 1 - query.home[0] :: -1]
    matrix = rows[:n] * (-np.expm1(-rate) / (1 + decay[1]))
    matrix[:, 0] = decay[query.home] / (1 + decay[1])
    matrix[:, -1] = decay[m - 1 - query.home] / (1 + decay[1])
    return Mechanism(matrix, query, exact, name="geometric")


def require_grid(query: Query, what: str) -> None:
    """Raise a `QueryError` unless inputs and outputs lie on one evenly spaced grid."""
    require_query(query)
    steps = np.diff(query.outputs.astype(float))
    spacing = np.diff(query.inputs.astype(float))
    even = np.ptp(spacing) <= 1e-9 * spacing[0] and len(steps) > 0
    even = even and bool(np.abs(steps - spacing[0]).max() <= 1e-9 * spacing[0])
    on_grid = np.abs(query.outputs[query.home] - query.inputs).max() <= 1e-9 * spacing[0]
    if not (even and on_grid):
        raise QueryError(
            "query",
            f"have evenly spaced inputs, and outputs on the same grid, for {what}",
            repr(query),
            "Use laplace or exponential, or categories=1.",
        )
