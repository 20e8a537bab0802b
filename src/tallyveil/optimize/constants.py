"""The best answer that does not look at the truth, and what it proves at a tiny epsilon.

A constant mechanism releases the same distribution whatever the truth is, so it is private at
every epsilon. With D the number of neighbour steps from some input c to the furthest one, every
private mechanism has e^(-epsilon D) M[c, j] <= M[i, j] <= e^(epsilon D) M[c, j]. Hence the row of
c, released for every truth, has nearly all the properties that M has, and M costs at least
e^(-epsilon D) times what that row costs. Where epsilon D is tiny, that is nearly everything.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy import sparse

from tallyveil.arrays import Floats
from tallyveil.optimize.constraints import list_property_rows
from tallyveil.optimize.problem import Problem
from tallyveil.optimize.solver import UNIT, Program, lower_bound, round_down, solve

__all__ = ["bound_by_constants", "find_best_constant"]


def find_best_constant(problem: Problem) -> Floats | None:
    """Return the best mechanism with equal rows, shape (n, m), or None if none meets the demands.

    Properties are met to the solver's tolerance; the caller checks them.
    """
    if problem.marginals:
        distribution = problem.marginals[0].target
    else:
        solution = solve(_write_program(problem), "highs")
        if solution.status != "optimal":
            return None
        distribution = np.maximum(solution.x[: len(problem.query.outputs)], 0.0)
        distribution = distribution / distribution.sum()
    return np.tile(distribution, (len(problem.query.inputs), 1))


def bound_by_constants(problem: Problem) -> float:
    """Bound the objective of every private mechanism by the cost of the best nearly constant one.

    -inf for (epsilon, delta)-privacy and where inputs are not joined by neighbours. Losses are
    counted from the least of them, so that e^(-epsilon D) multiplies something non-negative.
    """
    steps = _count_steps(problem)
    if problem.delta or not problem.private or not math.isfinite(steps):
        return -math.inf
    table, size = problem.loss_table, float(np.abs(problem.loss_table).max())
    floor = float(table.min())
    shifted = replace(problem, loss_table=table - floor)
    reach = float(problem.epsilon) * steps * (1 + 8 * UNIT)
    if problem.marginals:
        # an output has its demanded probability on average, so at any input within e^(2 reach)
        rows = np.tile(problem.marginals[0].target, (len(table), 1))
        value = shifted.objective(rows) * (1 - 8 * sum(table.shape) * UNIT)
        reach = 2 * reach
    else:
        program = _write_program(shifted, reach)
        solution = solve(program, "highs")
        upper = max(1.0, float(shifted.loss_table.max()))
        value = lower_bound(program, solution.y_eq, solution.y_ub, upper=upper)
    rounding = 0.0 if floor == 0 else 8 * UNIT * size
    return round_down(floor + math.exp(-reach) * max(value, 0.0) - rounding)


def _write_program(problem: Problem, reach: float = 0.0) -> Program:
    """The program of one row, with inequalities loosened by ratios up to e^reach.

    A worst case has one more variable, the largest loss.
    """
    m, worst = len(problem.query.outputs), problem.worst_case
    if worst:
        cost = np.append(np.zeros(m), 1.0)
        losses = problem.loss_table[problem.possible]
        above = [np.hstack([losses, -np.ones((len(losses), 1))])]
    else:
        cost, above = problem.prior @ problem.loss_table, []
    limits = [np.zeros(len(part)) for part in above]
    for larger, smaller, factor, floor in sorted(_list_rows(problem)):
        row = np.zeros((1, m + worst))
        row[0, larger] -= factor * math.exp(reach)
        if smaller >= 0:
            row[0, smaller] += math.exp(-reach)
        above.append(row)
        limits.append(np.array([-floor]))
    total = sparse.csr_array(np.append(np.ones(m), np.zeros(int(worst)))[None, :])
    free = np.append(np.zeros(m, dtype=bool), np.ones(int(worst), dtype=bool))
    rows = sparse.csr_array(np.vstack(above)) if above else None
    right = np.concatenate(limits) if above else None
    return Program(cost, total, np.ones(1), rows, right, free=free)


def _list_rows(problem: Problem) -> set[tuple[int, int, float, float]]:
    """What the properties ask of one row: outputs larger and smaller (or -1), factor, floor."""
    found: set[tuple[int, int, float, float]] = set()
    for block in list_property_rows(problem):
        rows = block.rows
        larger = rows.larger[1]
        smaller = np.full(len(rows), -1) if rows.smaller is None else rows.smaller[1]
        pairs = np.unique(np.column_stack([larger, smaller]), axis=0).tolist()
        found |= {(a, b, rows.factor, rows.floor) for a, b in pairs if a != b or rows.factor < 1}
        if rows.equal:
            found |= {(b, a, 1.0, 0.0) for a, b in pairs if a != b}
    return found


def _count_steps(problem: Problem) -> float:
    """Neighbour steps from the middle input to the furthest one; infinite if it is not joined."""
    neighbours, n = problem.query.neighbours, len(problem.query.inputs)
    if neighbours.kind != "explicit":
        return float(math.ceil((n // 2) / neighbours.width))
    from scipy.sparse.csgraph import shortest_path

    low, high = neighbours.pairs.T
    graph = sparse.csr_array((np.ones(len(low)), (low, high)), shape=(n, n))
    return float(shortest_path(graph, directed=False, unweighted=True, indices=n // 2).max())
