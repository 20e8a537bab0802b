"""Lower bounds for counts that follow from a theorem, right to rounding at every scale.

Dual values in doubles prove little where the optimum is many orders of magnitude below the costs.
Two theorems give the optimum itself as a sum of positive terms, of which nothing cancels:

*Domination* (docs/theory.md). For a unimodal loss, whatever the weights w of the true answers,
no private mechanism of a count has a smaller sum_i w_i loss_i than geometric noise G followed by
the best guess, sum_r min_j (G' diag(w) loss)[r, j]. The same holds for a Monge loss, by transport.

*Transport* (docs/theory.md). Geometric noise followed by a monotone remap is optimal for a Monge
loss among all private mechanisms with the same output distribution.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats
from tallyveil.loss import is_monge, measure_crossing
from tallyveil.mechanisms.geometric import geometric
from tallyveil.optimize.problem import Marginal, Problem
from tallyveil.optimize.solver import UNIT, round_down
from tallyveil.query import Query

__all__ = [
    "allow_for_miss",
    "bound_by_domination",
    "bound_by_transport",
    "covers_geometric",
    "draw_geometric",
    "is_path_problem",
    "is_unimodal",
]


def is_unimodal(costs: ArrayLike) -> bool:
    """Whether every row falls to its least cost and then rises, with least costs in order.

    In order: some choice of a least cost in every row moves right, or stays, from row to row.

    >>> is_unimodal([[0, 1, 1], [1, 0, 1], [1, 1, 0]]), is_unimodal([[1, 0], [0, 1]])
    (True, False)
    """
    table = np.asarray(costs, dtype=float)
    least = table.min(axis=1, keepdims=True)
    first = (table == least).argmax(axis=1)
    last = table.shape[1] - 1 - (table == least)[:, ::-1].argmax(axis=1)
    step, place = np.diff(table, axis=1), np.arange(table.shape[1] - 1)
    falls = np.where(place < first[:, None], step <= 0, True)
    rises = np.where(place >= first[:, None], step >= 0, True)
    in_order = np.maximum.accumulate(first) <= last
    return bool(falls.all() and rises.all() and in_order.all())


def is_path_problem(problem: Problem) -> bool:
    """Whether the true answers are a count's and privacy is pure."""
    return problem.query.neighbours.is_path and not problem.delta and problem.private


def draw_geometric(problem: Problem) -> Floats:
    """The geometric mechanism G from the inputs to themselves, shape (n, n)."""
    return geometric(Query.count(len(problem.query.inputs) - 1), problem.epsilon).matrix


def covers_geometric(problem: Problem, weights: Floats) -> bool:
    """Whether geometric noise and the best guess are proved optimal for these weights."""
    table = problem.loss_table
    return is_path_problem(problem) and (is_unimodal(table[weights > 0]) or is_monge(table))


def bound_by_domination(problem: Problem, weights: Floats) -> float:
    """Bound sum_i weights_i loss_i from below for every private mechanism; -inf if not covered.

    Properties and output distributions only make the set of mechanisms smaller. An entry of G is
    off by (8 + 2 epsilon n) u at most, relatively, and a sum of n products by n + 1 more.
    """
    if not covers_geometric(problem, weights):
        return -math.inf
    slack = 0.0
    if not is_unimodal(problem.loss_table[weights > 0]):
        below = np.cumsum(weights)[:-1]
        room = np.minimum(below, below[-1] + weights[-1] - below)[:, None]
        slack = 2 * float((np.maximum(-measure_crossing(problem.loss_table), 0) * room).sum())
    drawn, costs = draw_geometric(problem), weights[:, None] * problem.loss_table
    error = _relative_error(problem) * (drawn.T @ np.abs(costs))
    least = (drawn.T @ costs - error).min(axis=1)
    return round_down(math.fsum(least) - slack)


def bound_by_transport(problem: Problem, marginal: Marginal, matrix: Floats) -> float:
    """Bound the loss under a Monge cost and one output distribution, from a monotone transport.

    `matrix` is G followed by a monotone remap, so it is optimal for the output distribution that
    it has, up to what rounding makes of a Monge cost; that distribution is `marginal.target` up to
    rounding, which the optimum follows continuously (`allow_for_miss`).
    """
    crossing = np.maximum(-measure_crossing(problem.loss_table), 0.0)
    below = np.minimum(np.cumsum(marginal.source)[:-1], 1.0)
    slack = 2 * float((crossing * np.minimum(below, 1 - below)[:, None]).sum())
    error = _relative_error(problem) * float((np.abs(problem.weights) * matrix).sum())
    miss = allow_for_miss(problem, marginal, matrix)
    return round_down(problem.objective(matrix) - error - slack - miss)


def allow_for_miss(problem: Problem, marginal: Marginal, matrix: Floats) -> float:
    """By how much missing an output distribution can have lowered a mean loss, at most.

    Moving the mass of output j to output j + 1, or back, costs at most the largest difference of
    their losses; the mass to move is the difference of the cumulative sums.
    """
    miss = np.abs(np.cumsum(marginal.source @ matrix - marginal.target))[:-1]
    rounding = 4 * sum(problem.query.shape) * UNIT
    step = np.abs(np.diff(problem.loss_table, axis=1)).max(axis=0)
    return float(((miss + rounding) * step).sum())


def _relative_error(problem: Problem) -> float:
    """Of a product of the geometric matrix with costs of one sign."""
    n = len(problem.query.inputs)
    return 2 * (n + 10 + 2 * float(problem.epsilon) * n) * UNIT
