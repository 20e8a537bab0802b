"""Algorithm 2 of Kohli and Laskowski (2026): least expected loss, no distribution kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.loss import Loss, is_monge, loss_table
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import geometric
from tallyveil.prior import require_distribution
from tallyveil.query import Query

__all__ = ["is_row_wise_concentrating", "is_row_wise_convex", "unfixed_optimum"]


def unfixed_optimum(z: ArrayLike, epsilon: Epsilon, loss: Loss = "absolute") -> Mechanism:
    """Build the epsilon-private mechanism of least expected loss under `z`, by Algorithm 2.

    Each column of the geometric mechanism (omega_l times the single-peaked scale at l; see
    `peak_weights`) goes as a whole to the output at which it costs least::

        j(l) = argmin_j sum_i z_i loss(i, j) e^(-epsilon |i - l|)

    This is optimal among all private mechanisms for losses that do not fall with distance
    (Theorem 8) and for every Monge loss (docs/theory.md, the transport theorem). Ties
    go to the lowest output; the sums are scaled by their largest term, so that underflow
    causes no ties. For row-wise convex losses the cost is O(n^2), else O(n^3).

    Parameters
    ----------
    z : array of float, shape (n,)
        The distribution of the true count, summing to one.
    epsilon : number or str
        The privacy loss.
    loss : any loss of `tallyveil.loss`
        Row-wise concentrating, or Monge.

    Returns
    -------
    Mechanism
        The optimum for a count from 0 to n - 1.

    References
    ----------
    Kohli and Laskowski (2026), Algorithm 2, Observation 3 (errata, Kohli 1) and Theorem 8.
    Ghosh, Roughgarden and Sundararajan (2012).

    Examples
    --------
    >>> m = unfixed_optimum([1.0, 0.0, 0.0], 1.0)
    >>> m.matrix.round(9).tolist()
    [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    exact = exact_epsilon(epsilon)
    shape = np.shape(z)
    if len(shape) != 1 or shape[0] < 2:
        raise ArgumentError("z", "be a distribution with at least 2 entries", got=f"shape {shape}")
    query = Query.count(shape[0] - 1)
    belief, table = require_distribution(z, shape[0], "z"), loss_table(query, loss)
    if not (is_row_wise_concentrating(table) or is_monge(table)):
        raise ArgumentError(
            "loss",
            "grow with the distance from the truth, or be a convex function of the error",
            hint="Use design: it solves the program for any loss.",
        )
    posterior = _compute_posteriors(belief, float(exact))
    find = _walk_outputs if is_row_wise_convex(table) else _search_outputs
    column = find(posterior, table)
    matrix = np.zeros(query.shape)
    np.add.at(matrix.T, column, geometric(query, exact).matrix.T)
    return Mechanism(matrix, query, exact, name="unfixed optimum")


def _compute_posteriors(belief: Floats, rate: float) -> Floats:
    """Compute in row l the posterior of the count given geometric draw l, up to a factor."""
    at = np.arange(len(belief))
    with np.errstate(divide="ignore"):
        log = np.log(belief)[None, :] - rate * np.abs(at[:, None] - at[None, :])
    scaled: Floats = np.exp(log - log.max(axis=1, keepdims=True))
    return scaled


def _walk_outputs(posterior: Floats, table: Floats) -> Integers:
    """Find the cheapest output of every draw by walking up, where costs are convex in it."""
    n = len(posterior)
    column, j = np.zeros(n, dtype=np.int64), 0
    for draw in range(n):
        here = float(posterior[draw] @ table[:, j])
        while j < n - 1:
            above = float(posterior[draw] @ table[:, j + 1])
            if above >= here:
                break
            here, j = above, j + 1
        column[draw] = j
    return column


def _search_outputs(posterior: Floats, table: Floats) -> Integers:
    """Find the cheapest output of every draw by trying all; the lowest on ties."""
    best: Integers = (posterior @ table).argmin(axis=1)
    return best


def is_row_wise_concentrating(weights: ArrayLike, tolerance: float = 1e-12) -> bool:
    """Decide whether every row is a non-decreasing function of |i - j|.

    Parameters
    ----------
    weights : array of float, shape (n, m)
        A table of losses.
    tolerance : float
        Relative to the largest entry.

    Returns
    -------
    bool
        True if it is.

    References
    ----------
    Kohli and Laskowski (2026), Definition 11.

    Examples
    --------
    >>> is_row_wise_concentrating([[0, 1], [1, 0]]), is_row_wise_concentrating([[1, 0], [1, 0]])
    (True, False)
    """
    table = np.asarray(weights, dtype=float)
    n, m = table.shape
    distance = np.abs(np.arange(n)[:, None] - np.arange(m)[None, :])
    order = np.argsort(distance, axis=1, kind="stable")
    ranked, far = np.take_along_axis(table, order, 1), np.take_along_axis(distance, order, 1)
    room = tolerance * max(float(np.abs(table).max()), 1e-300)
    step, same = np.diff(ranked, axis=1), np.diff(far, axis=1) == 0
    return bool((step >= -room).all() and (np.abs(step[same]) <= room).all())


def is_row_wise_convex(weights: ArrayLike, tolerance: float = 1e-12) -> bool:
    """Decide whether w[i, j+1] - w[i, j] never falls along a row.

    Parameters
    ----------
    weights : array of float, shape (n, m)
        A table of losses.
    tolerance : float
        Relative to the largest entry.

    Returns
    -------
    bool
        True if it never falls.

    References
    ----------
    Kohli and Laskowski (2026), Definition 12.

    Examples
    --------
    >>> is_row_wise_convex([[0, 1, 4]]), is_row_wise_convex([[0, 1, 1]])
    (True, False)
    """
    table = np.asarray(weights, dtype=float)
    room = tolerance * max(float(np.abs(table).max()), 1e-300)
    return bool((np.diff(table, n=2, axis=1) >= -room).all())
