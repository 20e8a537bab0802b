"""How far a release is from the best there is: its expected errors beside what no release avoids.

The bounds hold for every private release with the same epsilon, whatever its method: the frontier
for rows drawn from the published distribution, the minimax bound for the worst table.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tallyveil._threads import one_blas_thread
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.frontier import frontier
from tallyveil.mechanisms.minimax import bound_distribution_error
from tallyveil.plans.tallies import Histogram
from tallyveil.query import Query
from tallyveil.request.budget_split import predict_distance, predict_error

__all__ = ["describe_optimality", "predict_release"]

WIDEST = 1000
"""Up to this largest published count the frontier is worked out."""


def describe_optimality(
    mechanism: Mechanism, epsilon: Fraction, histogram: Histogram
) -> dict[str, float] | None:
    """Expected errors of a column and the least that any private release could have.

    Parameters
    ----------
    mechanism : Mechanism
        The probabilities of published counts given true ones, as drawn and matched.
    epsilon : Fraction
        What the whole column costs, for one move of one count by one.
    histogram : Histogram
        How many rows have each published count.

    Returns
    -------
    dict of str to float, or None
        All for rows whose true counts have the published distribution, rounded to six decimals:
        `expected_error`, the mean absolute error of this release; `least_error`, that of the
        best private release; `least_error_same_distribution`, that of the best one which keeps
        the distribution. None where the range is too wide.
    """
    top = histogram.largest
    if not 1 <= top <= WIDEST:
        return None
    shares = histogram.spread_out(top + 1) / sum(histogram.rows)
    away = np.abs(np.arange(top + 1)[:, None] - np.arange(mechanism.matrix.shape[1]))
    expected = float(shares @ (mechanism.matrix[: top + 1] * away).sum(axis=1))
    with one_blas_thread():
        curve = frontier(Query.count(top), epsilon, shares, tradeoffs=[0.0, 1.0])
    found = (expected, float(curve.error[0]), float(curve.error[-1]))
    names = ("expected_error", "least_error", "least_error_same_distribution")
    return {name: round(value, 6) for name, value in zip(names, found, strict=True)}


def predict_release(
    epsilon: Fraction, epsilon2: Fraction, rows: int, cells: int
) -> dict[str, float]:
    """What can be predicted of the method preserve before anything is drawn, three digits each.

    `error` of single counts and `distance` of the distribution (Wasserstein-1), within a factor
    of two on most tables tried; and `bound_of_distance`, which no private release of a
    distribution over this many cells beats on every table. `epsilon2` is the part of epsilon
    that the counts get.
    """
    share = 1 - float(epsilon2 / epsilon)
    found = {
        "error": predict_error(float(epsilon2)),
        "distance": predict_distance(float(epsilon), share, rows, cells),
        "bound_of_distance": bound_distribution_error(rows, cells - 1, epsilon),
    }
    return {name: float(f"{value:.3g}") for name, value in found.items()}
