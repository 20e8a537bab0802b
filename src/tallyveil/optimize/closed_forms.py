"""Answers by closed form where a theorem covers the case, and the bounds that theorems give.

What is built has a bound: computed from its dual solution, which relies on no theorem, or given by
the theorem, whichever is higher. A closed form that a theorem proves optimal is always the answer;
one that no theorem covers is, if its own dual bound confirms it.

Bounds by theorem are right to rounding at every scale. Dual values in doubles prove little where
the optimum is many orders of magnitude below the costs. Two theorems give the optimum itself as a
sum of positive terms that do not cancel:

*Domination* (docs/theory.md). For a unimodal loss and any weights w of the true answers,
no private mechanism of a count has a smaller sum_i w_i loss_i than geometric noise G followed by
the best guess, sum_r min_j (G' diag(w) loss)[r, j]. The same holds for a Monge loss, by transport.

*Transport* (docs/theory.md). Geometric noise followed by a monotone remap is optimal for a Monge
loss among all private mechanisms with the same output distribution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats, Integers
from tallyveil.loss import is_monge, measure_crossing
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.exponential import fair
from tallyveil.mechanisms.geometric import (
    canonical_cells,
    geometric,
    geometric_output_distribution,
    remove_geometric_transposed,
)
from tallyveil.mechanisms.transport import monotone_remap
from tallyveil.optimize.bound import bound_path, measure_gap
from tallyveil.optimize.polish import lift_underflow
from tallyveil.optimize.problem import (
    ROUNDED_PROPERTY,
    SUFFICIENT_GAP,
    Marginal,
    Problem,
    list_property_rows,
)
from tallyveil.optimize.program import mark_erased
from tallyveil.optimize.solver import UNIT, round_down
from tallyveil.query import Query


def is_unimodal(costs: ArrayLike) -> bool:
    """Return True if every row falls to its least cost and then rises, least costs in order.

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


def draw_geometric(problem: Problem) -> Floats:
    """Build the geometric mechanism G from the inputs to themselves, shape (n, n)."""
    return geometric(Query.count(len(problem.query.inputs) - 1), problem.epsilon).matrix


def covers_geometric(problem: Problem, weights: Floats) -> bool:
    """Return True if geometric noise and the best guess are proved optimal."""
    table = problem.loss_table
    return problem.is_path and (is_unimodal(table[weights > 0]) or is_monge(table))


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

    `matrix` is G followed by a monotone remap, so it is optimal for the output distribution that it
    has, up to the effect of rounding on a Monge cost; that distribution is `marginal.target` up to
    rounding, which the optimum follows continuously (`allow_for_miss`).
    """
    crossing = np.maximum(-measure_crossing(problem.loss_table), 0.0)
    below = np.minimum(np.cumsum(marginal.source)[:-1], 1.0)
    slack = 2 * float((crossing * np.minimum(below, 1 - below)[:, None]).sum())
    error = _relative_error(problem) * float((np.abs(problem.weights) * matrix).sum())
    miss = allow_for_miss(problem, marginal, matrix)
    return round_down(problem.objective(matrix) - error - slack - miss)


def allow_for_miss(problem: Problem, marginal: Marginal, matrix: Floats) -> float:
    """Bound the gain in mean loss from missing an output distribution.

    Moving the mass of output j to output j + 1, or back, costs at most the largest difference of
    their losses; the mass to move is the difference of the cumulative sums.
    """
    miss = np.abs(np.cumsum(marginal.source @ matrix - marginal.target))[:-1]
    rounding = 4 * sum(problem.query.shape) * UNIT
    step = np.abs(np.diff(problem.loss_table, axis=1)).max(axis=0)
    return float(((miss + rounding) * step).sum())


def _relative_error(problem: Problem) -> float:
    """Bound the relative error of a product of the geometric matrix with costs of one sign."""
    n = len(problem.query.inputs)
    return 2 * (n + 10 + 2 * float(problem.epsilon) * n) * UNIT


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """A mechanism, a lower bound for all others, and whether a theorem proves it optimal.

    `reason` says in a sentence why it was built.
    """

    method: str
    reason: str
    mechanism: Mechanism
    bound: float
    proved: bool


def find_closed_form(problem: Problem) -> ClosedForm | None:
    """Return the closed form that solves `problem`, or None where it needs a program; O(n m).

    The requested properties must hold for the closed form to the rounding of doubles; then adding
    them as constraints changes nothing.
    """
    if problem.worst_case or problem.least_probability > 0:
        return None
    pure = (_build_fair, _build_transport, _build_geometric)
    for build in pure if problem.is_path else (_build_canonical,):
        form = build(problem)
        if form is None or not _has_properties(problem, form.mechanism):
            continue
        objective = problem.objective(form.mechanism.matrix)
        if form.proved or measure_gap(objective, form.bound) <= SUFFICIENT_GAP:
            return form
    return None


def _has_properties(problem: Problem, mechanism: Mechanism) -> bool:
    """Return True if a mechanism has the requested properties to the rounding of doubles."""
    slacks = (block.rows.slack(mechanism.matrix) for block in list_property_rows(problem))
    return all(float(slack.min(initial=0.0)) >= -ROUNDED_PROPERTY for slack in slacks)


def _build_fair(problem: Problem) -> ClosedForm | None:
    """Build the explicit fair mechanism: fairness, a multiple of the zero-one loss, any prior.

    With y the probability of the truth, row c gives 1 >= y sum_j e^(-epsilon |c-j|), so the loss 1
    - y is at least 1 - 1/sum for every c (Cormode, Kulkarni and Srivastava 2018, section 6.2 and
    Lemma 5). The sum of the exponentials other than the 1 for the truth, each off by 3 u + 2
    epsilon n u at most, is taken from below.
    """
    scale = float(problem.loss_table.max())
    zero_one = np.full(problem.query.shape, scale)
    np.fill_diagonal(zero_one, 0.0)
    if problem.marginals or not problem.query.is_square or "fair" not in problem.properties:
        return None
    if not np.array_equal(problem.loss_table, zero_one):
        return None
    n = len(problem.query.inputs)
    distance = np.abs(np.arange(n) - n // 2)
    others = math.fsum(np.exp(-float(problem.epsilon) * distance[distance > 0]))
    others *= 1 - (8 + 2 * float(problem.epsilon) * n) * UNIT
    reason = (
        "Fairness under the zero-one loss: the explicit fair mechanism is optimal and has all "
        "seven properties (Cormode, Kulkarni and Srivastava 2018, section 6.2 and Figure 5)."
    )
    matrix = fair(problem.query, problem.epsilon).matrix
    bound = round_down(scale * others / (1 + others) * (1 - 4 * UNIT) * problem.prior.sum())
    return ClosedForm("fair", reason, _make_mechanism(problem, matrix, "fair"), bound, True)


def _build_transport(problem: Problem) -> ClosedForm | None:
    """Build geometric noise, then transport: a Monge loss, one marginal from the prior."""
    if len(problem.marginals) != 1 or not is_monge(problem.loss_table):
        return None
    (marginal,) = problem.marginals
    if not np.array_equal(marginal.source, problem.prior):
        return None
    drawn = draw_geometric(problem)
    before = geometric_output_distribution(marginal.source, float(problem.epsilon))
    remap = monotone_remap(before, marginal.target)
    costs = drawn.T @ problem.weights
    level, price = _price_coupling(costs, before, remap.row, remap.column)
    price[mark_erased(problem)] = 0.0
    potential = remove_geometric_transposed(level, float(problem.epsilon))
    reason = (
        "An output distribution under a convex loss on a path: geometric noise followed by "
        "monotone transport is optimal (the transport theorem)."
    )
    matrix = remap.after(drawn)
    bound = max(
        bound_path(problem, potential, (-price,)),
        bound_by_transport(problem, marginal, matrix),
        bound_by_domination(problem, problem.prior),
    )
    mechanism = _make_mechanism(problem, matrix, "transport")
    return ClosedForm("transport", reason, mechanism, bound, True)


def _price_coupling(
    costs: Floats, mass: Floats, row: Integers, column: Integers
) -> tuple[Floats, Floats]:
    """Return dual prices of a monotone coupling: costs = level_r + mass_r price_j on it."""
    level, price = np.zeros(len(mass)), np.zeros(costs.shape[1])
    level[0] = costs[0, column[0]]
    for i in range(1, len(row)):
        r, j, last_r, last_j = row[i], column[i], row[i - 1], column[i - 1]
        if j != last_j:
            share = max(float(mass[last_r]), 1e-300)  # mass may underflow
            price[j] = (costs[last_r, j] - level[last_r]) / share
        if r != last_r:
            level[r] = costs[r, j] - mass[r] * price[j]
    return level, price


def _build_geometric(problem: Problem) -> ClosedForm | None:
    """Build geometric noise, then the best guess: a prior, a loss that grows with the error.

    With D = G'W the remap sends r to argmin_j D[r, j], and the potentials are G^-T min_j D
    (Ghosh, Roughgarden and Sundararajan 2012; Gupte and Sundararajan 2010, section 2.7).
    """
    if problem.marginals:
        return None
    drawn = draw_geometric(problem)
    costs = drawn.T @ problem.weights
    guess = costs.argmin(axis=1)
    potential = remove_geometric_transposed(costs.min(axis=1), float(problem.epsilon))
    proved = covers_geometric(problem, problem.prior)
    bound = max(bound_path(problem, potential), bound_by_domination(problem, problem.prior))
    if problem.query.is_square and np.array_equal(guess, np.arange(len(guess))):
        reason = (
            "The plain geometric mechanism: no remap of its output lowers this loss "
            "(Cormode, Kulkarni and Srivastava 2018, Theorem 5 and Figure 5, for the zero-one "
            "loss)."
        )
        mechanism = _make_mechanism(problem, drawn, "geometric")
        return ClosedForm("geometric", reason, mechanism, bound, proved)
    matrix = np.zeros(problem.query.shape)
    np.add.at(matrix.T, guess, drawn.T)
    if problem.is_mirrored:
        matrix = (matrix + matrix[::-1, ::-1]) / 2
    reason = (
        "A prior on a path and properties that cost nothing: geometric noise followed by the "
        "best guess is optimal (Ghosh, Roughgarden and Sundararajan 2012; Gupte and "
        "Sundararajan 2010, section 2.7)."
        if proved
        else "Geometric noise followed by the best guess: no theorem covers this loss, and its own "
        "dual bound shows that it is optimal."
    )
    mechanism = _make_mechanism(problem, matrix, "geometric with remap")
    return ClosedForm("geometric+remap", reason, mechanism, bound, proved)


def _build_canonical(problem: Problem) -> ClosedForm | None:
    """Build canonical noise, then the best guess or transport: a count at (epsilon, delta)."""
    table = problem.loss_table
    if not (problem.delta and problem.private and problem.query.neighbours.is_path):
        return None
    (marginal,) = problem.marginals or (None,)
    if marginal is not None and not np.array_equal(marginal.source, problem.prior):
        return None
    if not is_monge(table) and (marginal or not is_unimodal(table[problem.prior > 0])):
        return None
    cells = canonical_cells(len(problem.query.inputs), float(problem.epsilon), float(problem.delta))
    if marginal is None:
        guess = (cells.T @ problem.weights).argmin(axis=1)
        matrix = np.zeros(problem.query.shape)
        np.add.at(matrix.T, guess, cells.T)
        method, then = "canonical+remap", "the best guess"
    else:
        matrix = monotone_remap(problem.prior @ cells, marginal.target).after(cells)
        method, then = "canonical+transport", "monotone transport"
    slack = cells.shape[1] * 16 * UNIT * float(np.abs(problem.weights).sum())
    slack += 0.0 if marginal is None else allow_for_miss(problem, marginal, matrix)
    reason = (
        f"A count at (epsilon, delta): canonical noise followed by {then} is optimal "
        "(docs/theory.md, canonical noise)."
    )
    mechanism = Mechanism(
        matrix, problem.query, problem.epsilon, delta=problem.delta, name="canonical with remap"
    )
    bound = round_down(problem.objective(matrix) - slack)
    return ClosedForm(method, reason, mechanism, bound, True)


def _make_mechanism(problem: Problem, matrix: Floats, name: str) -> Mechanism:
    """Build the mechanism of a matrix whose underflown tails are lifted."""
    return Mechanism(lift_underflow(matrix), problem.query, problem.epsilon, name=name)
