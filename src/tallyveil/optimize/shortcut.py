"""Cases that a theorem answers without a program, each with a bound computed from its dual.

The theorem says what to build; the bound, which trusts no theorem, says that it is optimal.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.fair import fair
from tallyveil.mechanisms.geometric import (
    geometric,
    geometric_output_distribution,
    remove_geometric_transposed,
)
from tallyveil.mechanisms.transport import monotone_remap
from tallyveil.optimize.bound import path_bound
from tallyveil.optimize.clean import above_underflow
from tallyveil.optimize.engine import relative_gap
from tallyveil.optimize.problem import Problem
from tallyveil.optimize.program import erased_columns
from tallyveil.optimize.solver import UNIT, round_down
from tallyveil.query import Query

__all__ = ["Shortcut", "shortcut"]

Shortcut = tuple[str, str, Mechanism, float]
"""(method, reason, mechanism, lower bound)"""

PROVED = 1e-7
"""A closed form is taken where its own bound comes within this, relatively."""


def shortcut(problem: Problem) -> Shortcut | None:
    """The closed form that solves `problem`, or None where only a program will do.

    Properties that are asked for must hold for the closed form as it stands; then adding
    them as constraints changes nothing.
    """
    if (
        not problem.query.neighbours.is_path
        or problem.worst_case
        or problem.delta
        or problem.least > 0
    ):
        return None
    for attempt in (_fair, _transport, _geometric):
        found = attempt(problem)
        if found is None:
            continue
        _, _, mechanism, bound = found
        holds = all(mechanism.has(name) for name in problem.properties)
        if holds and relative_gap(problem.value(mechanism.matrix), bound) <= PROVED:
            return found
    return None


def _fair(problem: Problem) -> Shortcut | None:
    """Fairness, zero-one loss, any prior: the explicit fair mechanism (000, section 6.2).

    With y the probability of the truth, row c gives 1 >= y sum_j e^(-epsilon |c-j|), so the
    loss 1 - y is at least 1 - 1/sum for every c (000, Lemma 5).
    """
    zero_one = np.ones(problem.query.shape)
    np.fill_diagonal(zero_one, 0.0)
    if problem.laws or not problem.query.is_square or "fair" not in problem.properties:
        return None
    if not np.array_equal(problem.table, zero_one):
        return None
    n = len(problem.query.inputs)
    decay = np.exp(-float(problem.epsilon) * np.abs(np.arange(n) - n // 2))
    total = math.fsum(decay) * (1 - (8 + 2 * float(problem.epsilon) * n) * UNIT)
    reason = (
        "Fairness under the zero-one loss: the explicit fair mechanism is optimal and has all "
        "seven properties (paper 000, section 6.2 and Figure 5)."
    )
    matrix = fair(problem.query, problem.epsilon).matrix
    return "fair", reason, _named(problem, matrix, "fair"), round_down(1 - 1 / total)


def _transport(problem: Problem) -> Shortcut | None:
    """One output law, prior equal to its source, a Monge loss: geometric, then transport."""
    if len(problem.laws) != 1 or not _is_monge(problem.table):
        return None
    (law,) = problem.laws
    if not np.array_equal(law.source, problem.prior):
        return None
    drawn = _drawn(problem)
    before = geometric_output_distribution(law.source, float(problem.epsilon))
    remap = monotone_remap(before, law.target)
    matrix = remap.after(drawn)
    costs = drawn.T @ problem.weights
    level, price = _staircase(costs, before, remap.row, remap.column)
    price[erased_columns(problem)] = 0.0
    duals = remove_geometric_transposed(level, float(problem.epsilon))
    bound = path_bound(problem, duals, (-price,))
    reason = (
        "An output law under a convex loss on a path: geometric noise followed by monotone "
        "transport is optimal (the transport theorem)."
    )
    return "transport", reason, _named(problem, matrix, "transport"), bound


def _staircase(
    costs: Floats, mass: Floats, row: NDArray[np.int64], column: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Dual prices of a monotone coupling: costs = level_r + mass_r price_j on its entries."""
    level, price = np.zeros(len(mass)), np.zeros(costs.shape[1])
    level[0] = costs[0, column[0]]
    for at in range(1, len(row)):
        r, j, before, last = row[at], column[at], row[at - 1], column[at - 1]
        if j != last:
            share = max(float(mass[before]), 1e-300)
            price[j] = (costs[before, j] - level[before]) / share
        if r != before:
            level[r] = costs[r, j] - mass[r] * price[j]
    return level, price


def _geometric(problem: Problem) -> Shortcut | None:
    """A prior and a loss that grows with the error: geometric, then the best guess.

    Ghosh, Roughgarden and Sundararajan (2009), restated in paper 003, section 2.7. With
    D = G'W the remap sends r to argmin_j D[r, j], and the potentials are G^-T min_j D.
    """
    if problem.laws:
        return None
    drawn = _drawn(problem)
    costs = drawn.T @ problem.weights
    guess = costs.argmin(axis=1)
    duals = remove_geometric_transposed(costs.min(axis=1), float(problem.epsilon))
    bound = path_bound(problem, duals)
    plain = problem.query.is_square and np.array_equal(guess, np.arange(len(guess)))
    if plain:
        reason = (
            "The geometric mechanism as it is: no remap of its output lowers this loss "
            "(paper 000, Theorem 5 and Figure 5, for the zero-one loss)."
        )
        return "geometric", reason, _named(problem, drawn, "geometric"), bound
    matrix = np.zeros(problem.query.shape)
    np.add.at(matrix.T, guess, drawn.T)
    if problem.is_mirrored:
        matrix = (matrix + matrix[::-1, ::-1]) / 2
    reason = (
        "A prior on a path and properties that cost nothing: geometric noise followed by the "
        "best guess is optimal (Ghosh et al.; paper 003, section 2.7)."
    )
    return "geometric+remap", reason, _named(problem, matrix, "geometric with remap"), bound


def _drawn(problem: Problem) -> Floats:
    n = len(problem.query.inputs)
    return geometric(Query.count(n - 1), problem.epsilon).matrix


def _is_monge(table: Floats) -> bool:
    """Whether straight pairs never cost more than crossed ones, as for convex losses."""
    crossed = table[:-1, 1:] + table[1:, :-1] - table[:-1, :-1] - table[1:, 1:]
    return bool((crossed >= -1e-12 * np.abs(table).max()).all())


def _named(problem: Problem, matrix: Floats, name: str) -> Mechanism:
    lifted = above_underflow(matrix)
    return Mechanism(lifted, problem.query, problem.epsilon, name=name)
