"""Answer by a closed form where a theorem covers the case.

The theorem says what to build; a bound computed from its dual solution, which relies on no
theorem, confirms that it is optimal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats, Integers
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.fair import fair
from tallyveil.mechanisms.geometric import (
    geometric,
    geometric_output_distribution,
    remove_geometric_transposed,
)
from tallyveil.mechanisms.transport import monotone_remap
from tallyveil.optimize.bound import bound_path, measure_gap
from tallyveil.optimize.polish import lift_underflow
from tallyveil.optimize.problem import Problem
from tallyveil.optimize.program import mark_erased
from tallyveil.optimize.solver import UNIT, round_down
from tallyveil.optimize.tolerances import SUFFICIENT_GAP
from tallyveil.query import Query

__all__ = ["ClosedForm", "find_closed_form", "is_monge"]


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """A mechanism that a theorem calls optimal, and a bound that does not rely on the theorem.

    `reason` is the theorem, in a sentence.
    """

    method: str
    reason: str
    mechanism: Mechanism
    bound: float


def find_closed_form(problem: Problem) -> ClosedForm | None:
    """Return the closed form that solves `problem`, or None where only a program will do; O(n m).

    The properties that are asked for must hold for the closed form as it stands; then adding
    them as constraints changes nothing.
    """
    if (
        not problem.query.neighbours.is_path
        or problem.worst_case
        or problem.delta
        or problem.least_probability > 0
    ):
        return None
    for build in (_build_fair, _build_transport, _build_geometric):
        found = build(problem)
        if found is None:
            continue
        holds = all(found.mechanism.has(name) for name in problem.properties)
        objective = problem.objective(found.mechanism.matrix)
        if holds and measure_gap(objective, found.bound) <= SUFFICIENT_GAP:
            return found
    return None


def is_monge(costs: ArrayLike, tolerance: float = 1e-12) -> bool:
    """Whether c(i,j) + c(i+1,j+1) <= c(i,j+1) + c(i+1,j) everywhere, as for convex c(i - j).

    Straight pairs then never cost more than crossed ones, and monotone transport is optimal.
    Violations up to `tolerance`, relative to the largest cost, count as none.

    >>> is_monge([[0, 1], [1, 0]]), is_monge([[1, 0], [0, 1]])
    (True, False)
    """
    table = np.asarray(costs, dtype=float)
    crossed = table[:-1, 1:] + table[1:, :-1] - table[:-1, :-1] - table[1:, 1:]
    return bool((crossed >= -tolerance * np.abs(table).max()).all())


def _build_fair(problem: Problem) -> ClosedForm | None:
    """Fairness, zero-one loss, any prior: the explicit fair mechanism.

    With y the probability of the truth, row c gives 1 >= y sum_j e^(-epsilon |c-j|), so the
    loss 1 - y is at least 1 - 1/sum for every c (Cormode, Kulkarni and Srivastava 2018,
    section 6.2 and Lemma 5). The sum of n exponentials, each off by 3 u + 2 epsilon n u at
    most, is taken from below.
    """
    zero_one = np.ones(problem.query.shape)
    np.fill_diagonal(zero_one, 0.0)
    if problem.marginals or not problem.query.is_square or "fair" not in problem.properties:
        return None
    if not np.array_equal(problem.loss_table, zero_one):
        return None
    n = len(problem.query.inputs)
    decay = np.exp(-float(problem.epsilon) * np.abs(np.arange(n) - n // 2))
    total = math.fsum(decay) * (1 - (8 + 2 * float(problem.epsilon) * n) * UNIT)
    reason = (
        "Fairness under the zero-one loss: the explicit fair mechanism is optimal and has all "
        "seven properties (Cormode, Kulkarni and Srivastava 2018, section 6.2 and Figure 5)."
    )
    matrix = fair(problem.query, problem.epsilon).matrix
    bound = round_down(1 - 1 / total)
    return ClosedForm("fair", reason, _make_mechanism(problem, matrix, "fair"), bound)


def _build_transport(problem: Problem) -> ClosedForm | None:
    """One marginal, prior equal to its source, a Monge loss: geometric, then transport."""
    if len(problem.marginals) != 1 or not is_monge(problem.loss_table):
        return None
    (marginal,) = problem.marginals
    if not np.array_equal(marginal.source, problem.prior):
        return None
    drawn = _draw_geometric(problem)
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
    return ClosedForm(
        "transport",
        reason,
        _make_mechanism(problem, remap.after(drawn), "transport"),
        bound_path(problem, potential, (-price,)),
    )


def _price_coupling(
    costs: Floats, mass: Floats, row: Integers, column: Integers
) -> tuple[Floats, Floats]:
    """Dual prices of a monotone coupling: costs = level_r + mass_r price_j on its entries."""
    level, price = np.zeros(len(mass)), np.zeros(costs.shape[1])
    level[0] = costs[0, column[0]]
    for at in range(1, len(row)):
        r, j, last_r, last_j = row[at], column[at], row[at - 1], column[at - 1]
        if j != last_j:
            share = max(float(mass[last_r]), 1e-300)  # mass may underflow
            price[j] = (costs[last_r, j] - level[last_r]) / share
        if r != last_r:
            level[r] = costs[r, j] - mass[r] * price[j]
    return level, price


def _build_geometric(problem: Problem) -> ClosedForm | None:
    """A prior and a loss that grows with the error: geometric, then the best guess.

    With D = G'W the remap sends r to argmin_j D[r, j], and the potentials are G^-T min_j D
    (Ghosh, Roughgarden and Sundararajan 2012; Gupte and Sundararajan 2010, section 2.7).
    """
    if problem.marginals:
        return None
    drawn = _draw_geometric(problem)
    costs = drawn.T @ problem.weights
    guess = costs.argmin(axis=1)
    potential = remove_geometric_transposed(costs.min(axis=1), float(problem.epsilon))
    bound = bound_path(problem, potential)
    if problem.query.is_square and np.array_equal(guess, np.arange(len(guess))):
        reason = (
            "The geometric mechanism as it is: no remap of its output lowers this loss "
            "(Cormode, Kulkarni and Srivastava 2018, Theorem 5 and Figure 5, for the zero-one "
            "loss)."
        )
        mechanism = _make_mechanism(problem, drawn, "geometric")
        return ClosedForm("geometric", reason, mechanism, bound)
    matrix = np.zeros(problem.query.shape)
    np.add.at(matrix.T, guess, drawn.T)
    if problem.is_mirrored:
        matrix = (matrix + matrix[::-1, ::-1]) / 2
    reason = (
        "A prior on a path and properties that cost nothing: geometric noise followed by the "
        "best guess is optimal (Ghosh, Roughgarden and Sundararajan 2012; Gupte and "
        "Sundararajan 2010, section 2.7)."
    )
    mechanism = _make_mechanism(problem, matrix, "geometric with remap")
    return ClosedForm("geometric+remap", reason, mechanism, bound)


def _draw_geometric(problem: Problem) -> Floats:
    """The geometric mechanism G from the inputs to themselves, shape (n, n)."""
    return geometric(Query.count(len(problem.query.inputs) - 1), problem.epsilon).matrix


def _make_mechanism(problem: Problem, matrix: Floats, name: str) -> Mechanism:
    return Mechanism(lift_underflow(matrix), problem.query, problem.epsilon, name=name)
