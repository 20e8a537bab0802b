"""Algorithm 2 of paper 002: the cheapest private mechanism when no distribution is kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.loss import Loss, loss_table
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import geometric
from tallyveil.prior import require_distribution as law
from tallyveil.query import Query

__all__ = ["is_monge", "is_row_wise_concentrating", "is_row_wise_convex", "unfixed_optimum"]


def unfixed_optimum(z: ArrayLike, epsilon: Epsilon, loss: Loss = "absolute") -> Mechanism:
    """The epsilon-private mechanism of least expected loss under `z` (002, Algorithm 2).

    Each column of the geometric mechanism (omega_l times the single-peaked scale at l, with
    the omega of errata 002.1) goes as a whole to the output that costs it least::

        j(l) = argmin_j sum_i z_i loss(i, j) e^(-epsilon |i - l|)

    This is optimal among all private mechanisms for losses that do not fall with distance
    (Theorem 8, after Ghosh et al.) and for every Monge loss (docs/theory.md). Ties go to the
    lowest output; the sums are scaled by their largest term, so ties are never the work of
    underflow. For row-wise convex losses j(l) is found by walking up: O(n^2); else O(n^3).

    Parameters
    ----------
    z : what is believed about the true count, shape (n,), summing to one
    epsilon : the privacy loss
    loss : any loss of `tallyveil.loss` that is row-wise concentrating, or Monge

    >>> m = unfixed_optimum([1.0, 0.0, 0.0], 1.0)
    >>> m.matrix.round(9).tolist()
    [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    exact = exact_epsilon(epsilon)
    shape = np.shape(z)
    if len(shape) != 1 or shape[0] < 2:
        raise ArgumentError("z", "be a law with at least 2 entries", f"shape {shape}")
    query = Query.count(shape[0] - 1)
    belief, table = law(z, shape[0], "z"), loss_table(query, loss)
    if not (is_row_wise_concentrating(table) or is_monge(table)):
        raise ArgumentError(
            "loss",
            "grow with the distance from the truth, or be a convex function of the error",
            hint="Use design: it solves the program for any loss.",
        )
    posterior = _posteriors(belief, float(exact))
    place = _walk if is_row_wise_convex(table) else _search
    column = place(posterior, table)
    matrix = np.zeros(query.shape)
    np.add.at(matrix.T, column, geometric(query, exact).matrix.T)
    return Mechanism(matrix, query, exact, name="unfixed optimum")


def _posteriors(belief: Floats, rate: float) -> Floats:
    """Row l: the law of the true count given geometric draw l, up to a factor, shape (n, n)."""
    at = np.arange(len(belief))
    with np.errstate(divide="ignore"):
        log = np.log(belief)[None, :] - rate * np.abs(at[:, None] - at[None, :])
    scaled: Floats = np.exp(log - log.max(axis=1, keepdims=True))
    return scaled


def _walk(posterior: Floats, table: Floats) -> Integers:
    """Cheapest output of every draw when costs are convex along outputs: one walk upwards."""
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


def _search(posterior: Floats, table: Floats) -> Integers:
    """Cheapest output of every draw by trying all; the lowest on ties."""
    best: Integers = (posterior @ table).argmin(axis=1)
    return best


def is_row_wise_concentrating(weights: ArrayLike, tolerance: float = 1e-12) -> bool:
    """Whether every row is a non-decreasing function of |i - j| (002, Definition 11).

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
    """Whether w[i, j+1] - w[i, j] never falls along a row (002, Definition 12).

    >>> is_row_wise_convex([[0, 1, 4]]), is_row_wise_convex([[0, 1, 1]])
    (True, False)
    """
    table = np.asarray(weights, dtype=float)
    room = tolerance * max(float(np.abs(table).max()), 1e-300)
    return bool((np.diff(table, n=2, axis=1) >= -room).all())


def is_monge(costs: ArrayLike, tolerance: float = 1e-12) -> bool:
    """Whether c(i,j) + c(i+1,j+1) <= c(i,j+1) + c(i+1,j) everywhere: where `transport` is best.

    Every convex function of i - j is Monge.

    >>> is_monge([[0, 1], [1, 0]]), is_monge([[1, 0], [0, 1]])
    (True, False)
    """
    table = np.asarray(costs, dtype=float)
    cross = table[:-1, :-1] + table[1:, 1:] - table[:-1, 1:] - table[1:, :-1]
    return bool((cross <= tolerance * max(float(np.abs(table).max()), 1e-300)).all())
