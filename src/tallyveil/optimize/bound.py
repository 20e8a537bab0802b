"""A certified lower bound on the loss of every mechanism that meets the constraints.

Let each constraint be <A_r, M> >= b_r and take any multipliers l_r >= 0. Put
C = sum_r l_r A_r and W = prior * loss. Every feasible M has stochastic rows, so::

    <W, M> = <C, M> + <W - C, M>  >=  sum_r l_r b_r + sum_i min_j (W - C)[i, j]

The right side is what is computed, with every rounding error bounded and taken off. The bound
does not rely on the solver: poor multipliers only make a poor bound. Equations have
multipliers of either sign; a worst case is the same with W = w_i * loss for multipliers w of
the true answers, divided by their sum.

*Constants.* A constant mechanism releases the same distribution for every truth, so it is
private at every epsilon. With D the number of neighbour steps from some input c to the furthest
one, every private mechanism has e^(-epsilon D) M[c, j] <= M[i, j] <= e^(epsilon D) M[c, j]. Hence
the row of c, released for every truth, has nearly all the properties that M has, and M costs at
least e^(-epsilon D) times what that row costs. Where epsilon D is tiny, that is nearly everything.

Error analysis
--------------
Let u = 2^-53 (`UNIT`), so that every operation on doubles is exact up to a factor 1 + d with
|d| <= u. Terms in u^2 are covered by the factors of two below as long as the number of terms is
below 2^50.

*Reduced costs* (`_ReducedCosts`). An entry of W - C is a sum of K exact terms t_k. Each is
stored as one rounded product, t'_k = t_k (1 + d), and the K terms are added up in some order
with at most K - 1 roundings each, so the computed sum v satisfies::

    |v - sum t_k|  <=  u sum |t'_k| + (K - 1) u sum |t'_k|  =  K u sum |t'_k|

The sum of absolute values is itself computed, as s, and s >= (1 - K u) sum |t'_k|. Subtracting
the error rounds twice more. So ``v - 2 (K + 2) u s`` is at most the exact entry: K for the sum,
2 for the last roundings, and the factor 2 for s being rounded and for u^2.

*Constants* l_r b_r. A product of a correctly rounded sum (`math.fsum`, one rounding), a floor
or delta (one) and the safety factor itself (one) has a relative error of at most 3 u, so
`_SAFE_DOWN` = 1 - 4 u and `_SAFE_UP` = 1 + 4 u keep it on the safe side. The constants of
marginals are single products. Together ``8 u sum |constants|`` covers one rounding of each, one of
their sum, and leaves room for the roundings that follow.

*Fair entries* (`_bound_rows`). The slope is a correctly rounded sum of entries and of products
k_i o_i with one rounding each, then divided by an integer: 3 u times the sum of absolute values.
``8 u`` covers that.

*Coefficients*. e^epsilon is only known as a double g. `float(epsilon)` is off by a factor 1 + u,
which changes the exponential by a factor 1 + epsilon u; `math.exp` is within 2 u; forming and
multiplying by the safety factor rounds twice. So ``g (1 + (4 + 2 epsilon) u)`` is not below
e^epsilon, and a privacy row written with it is implied by the true one.

*The last step* has at most five roundings: the sum, the subtraction of the error, the sum of the
weights of a worst case, the division by it, and `round_down` itself, which takes 4 u off. The
fifth is covered because the factor 2 above leaves more than 4 u times the sizes, and no result
is larger than the sizes that go into it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import replace

import numpy as np
from scipy import sparse

from tallyveil.arrays import Floats, Mask
from tallyveil.optimize.problem import PRIVACY, Problem, list_property_rows, number_pairs
from tallyveil.optimize.program import (
    ABOVE_MINIMUM,
    BELOW_MINIMUM,
    ROW_SUMS,
    WORST_CASE,
    Assembly,
    mark_erased,
    mark_tails,
)
from tallyveil.optimize.solver import UNIT, Program, lower_bound, round_down, solve
from tallyveil.properties import Rows

_SAFE_DOWN = 1 - 4 * UNIT
"""Makes a non-negative product of three roundings not larger than the exact one."""

_SAFE_UP = 1 + 4 * UNIT
"""Makes a non-negative product of three roundings not smaller than the exact one."""

_SUM_ERROR = 8 * UNIT
"""Error of a correctly rounded sum of rounded products, relative to the sum of their sizes."""


class _ReducedCosts:
    """The matrix W - C while terms are added, with a bound on the rounding of each entry.

    `value` holds the computed sums, `size` those of the terms' absolute values, `terms` the most
    terms any entry has.
    """

    def __init__(self, start: Floats) -> None:
        self.value = start.copy()
        self.size = np.abs(start)
        self.terms = 2

    def add(self, part: Floats, size: Floats | None = None, terms: int = 1) -> None:
        """Add a matrix whose entries are sums of `terms` terms of the given total size."""
        self.value += part
        self.size += np.abs(part) if size is None else size
        self.terms += terms

    def subtract_rows(self, rows: Rows, multiplier: Floats, factor: float) -> None:
        """Subtract ``factor M[larger] - M[smaller]`` times the multiplier of each row."""
        m = self.value.shape[1]
        cells = [rows.larger[0] * m + rows.larger[1]]
        parts = [-factor * multiplier]
        if rows.smaller is not None:
            cells.append(rows.smaller[0] * m + rows.smaller[1])
            parts.append(multiplier)
        cell, part = np.concatenate(cells), np.concatenate(parts)
        count, shape = self.value.size, self.value.shape
        total = np.bincount(cell, part, minlength=count).astype(float)
        size = np.bincount(cell, np.abs(part), minlength=count).astype(float)
        most = int(np.bincount(cell, minlength=1).max(initial=0))
        self.add(total.reshape(shape), size.reshape(shape), 1 + most)

    def shift_inwards(
        self, outer: int, inner: int, columns: Mask, multiplier: Floats, factor: float
    ) -> None:
        """Subtract ``factor M[outer] - M[inner]`` times multipliers; the caller counts terms."""
        self.value[outer, columns] -= factor * multiplier
        self.size[outer, columns] += factor * multiplier
        self.value[inner, columns] += multiplier
        self.size[inner, columns] += multiplier

    def average_with_mirror(self) -> None:
        """Take the mean with the mirror image: allowed where the constraints are symmetric."""
        self.value = (self.value + self.value[::-1, ::-1]) / 2
        self.size = (self.size + self.size[::-1, ::-1]) / 2
        self.terms += 1

    def lower_limits(self) -> Floats:
        """Return values that the exact sums do not fall below."""
        return self.value - 2 * (self.terms + 2) * UNIT * self.size


def measure_gap(objective: float, bound: float) -> float:
    """Return |objective - bound| / |objective|: 0 where they agree, infinite without a bound.

    An objective below a valid bound belongs to a matrix that misses a demand by a little; that is
    no proof of quality, so the distance counts either way.

    >>> measure_gap(2.0, 1.5), measure_gap(2.0**-900, 1.5 * 2.0**-901), measure_gap(0.0, -1e-9)
    (0.25, 0.25, inf)
    """
    if objective == bound:
        return 0.0
    if not math.isfinite(bound) or objective == 0:
        return math.inf
    return abs(objective - bound) / abs(objective)


def bound_objective(assembly: Assembly, multipliers: Mapping[Hashable, Floats]) -> float:
    """Compute the largest number that `multipliers` prove to be below every feasible objective.

    Any multipliers will do, those of inequalities >= 0; -inf if they prove nothing. The bound is
    for the whole problem, also where the program has geometric tails: the multipliers of the
    rows left out follow from the others. Costs O(n m) and one pass over the rows.
    """
    problem, selection = assembly.problem, assembly.selection
    total_weight = 1.0
    if problem.worst_case:
        weight = np.zeros(len(problem.query.inputs))
        weight[selection.worst_inputs] = multipliers[WORST_CASE]
        if not weight.sum() > 0:
            return -math.inf
        total_weight = math.fsum(weight)
        costs = _ReducedCosts(weight[:, None] * problem.loss_table)
    else:
        costs = _ReducedCosts(problem.weights)
    constants = _subtract_constraints(costs, assembly, multipliers)
    if selection.folded:
        costs.average_with_mirror()
    if selection.width is not None:
        _subtract_tails(costs, assembly, selection.width, multipliers[ROW_SUMS])
    rows = _bound_rows(costs, problem, selection.folded)
    value = math.fsum([*constants, *rows])
    error = _SUM_ERROR * math.fsum(np.abs(constants))
    return round_down((value - error) / total_weight)


def _subtract_constraints(
    costs: _ReducedCosts, assembly: Assembly, multipliers: Mapping[Hashable, Floats]
) -> list[float]:
    """Subtract C from the costs; return the constants sum_r l_r b_r."""
    problem, selection = assembly.problem, assembly.selection
    constants: list[float] = []
    for block in selection.blocks:
        rows, multiplier = block.rows, multipliers[block]
        # a privacy row stays true with a larger factor; other factors are exact
        factor = rows.factor if rows.factor == 1.0 else _round_growth_up(problem)
        costs.subtract_rows(rows, multiplier, factor)
        if rows.floor:
            constants.append(rows.floor * math.fsum(multiplier) * _SAFE_DOWN)
        if problem.delta and block.name == PRIVACY:
            # sum_j l_j s_j <= delta max_j l_j for slacks s >= 0 that sum to at most delta
            pair = number_pairs(rows, len(problem.query.inputs))
            largest = np.zeros(int(pair.max()) + 1)
            np.maximum.at(largest, pair, multiplier)
            constants.append(-float(problem.delta) * math.fsum(largest) * _SAFE_UP)
    for marginal, outputs in selection.marginals:
        by_output = np.zeros(len(problem.query.outputs))
        by_output[outputs] = multipliers[marginal]
        costs.add(marginal.source[:, None] * by_output[None, :])
        constants.extend((-by_output * marginal.target).tolist())
    if len(selection.minimum_outputs):
        costs.add(*_combine_minimum(assembly, multipliers))
    return constants


def _round_growth_up(problem: Problem) -> float:
    """Return a double that is not below e^epsilon."""
    return problem.growth * (1 + (4 + 2 * float(problem.epsilon)) * UNIT)


def _combine_minimum(
    assembly: Assembly, multipliers: Mapping[Hashable, Floats]
) -> tuple[Floats, Floats, int]:
    """Return the part of -C from m_j <= M[i, j] <= e^epsilon m_j: value, size, terms.

    With multipliers a of the left and b of the right inequalities,
    sum_i a_i M[i,j] - b_i M[i,j] >= m_j (sum a - e^epsilon sum b), which is >= 0 once b is
    scaled down to sum a >= e^epsilon sum b. Two sums of n terms, a product, a division and the
    scaling itself are off by less than 4 (n + 4) u.
    """
    problem, outputs = assembly.problem, assembly.selection.minimum_outputs
    a, b = np.zeros(problem.query.shape), np.zeros(problem.query.shape)
    a[:, outputs] = multipliers[ABOVE_MINIMUM].reshape(-1, len(outputs))
    b[:, outputs] = multipliers[BELOW_MINIMUM].reshape(-1, len(outputs))
    if assembly.selection.folded:
        a, b = (a + a[::-1, ::-1]) / 2, (b + b[::-1, ::-1]) / 2
    have, need = a.sum(axis=0), _round_growth_up(problem) * b.sum(axis=0)
    safety = 1 - 4 * (len(a) + 4) * UNIT
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(need > 0, np.minimum(1.0, safety * have / need), 0.0)
    b = b * scale
    return b - a, a + b, 4


def _subtract_tails(costs: _ReducedCosts, assembly: Assembly, width: int, sums: Floats) -> None:
    """Set the multipliers of the privacy rows left out in the tails, and subtract those rows.

    They give tail entries zero reduced cost, by recursion from the far end: with y the multipliers
    of the row sums, the entry furthest out is met by l = e^-epsilon (W + y), the next by
    l' = e^-epsilon (W' + y' + l), and so on up to the edge of the window. Multipliers that would
    be negative are zero. Each entry gets at most two terms: one as the outer and one as the inner
    end of a row, or, next to the window, one from either side.
    """
    problem, selection = assembly.problem, assembly.selection
    n = len(problem.query.inputs)
    potential = np.zeros(n)
    potential[selection.sums] = sums
    if selection.folded:
        potential = (potential + potential[::-1]) / 2
    far = mark_tails(problem, width)
    first_inside = np.argmax(~far, axis=0)
    row = np.arange(n)[:, None]
    after, before = far & (row > first_inside), far & (row < first_inside)
    shrink, factor = 1 / problem.growth, _round_growth_up(problem)

    def meet(outer: int, inner: int, tail: Mask) -> None:
        rest = costs.value[outer, tail] + potential[outer]
        costs.shift_inwards(outer, inner, tail, np.maximum(shrink * rest, 0.0), factor)

    for i in range(n - 1, 0, -1):
        meet(i, i - 1, after[i])
    for i in range(n - 1):
        meet(i, i + 1, before[i])
    costs.terms += 2


def _bound_rows(costs: _ReducedCosts, problem: Problem, folded: bool = False) -> list[float]:
    """Return terms whose sum no stochastic matrix with the fair entries falls below.

    Without fairness they are min_j of every row. Fair entries all hold one probability y (and
    so do their mirror images where the matrix is symmetric). With k_i of them in row i and
    o_i the least of its other entries, the sum is at least::

        sum_i o_i + y (sum over fair entries of (X - o_i)),      0 <= y <= 1 / max k

    and a row of nothing but fair entries fixes y.
    """
    least = costs.lower_limits()
    least[:, mark_erased(problem)] = np.inf
    if "fair" not in problem.properties:
        return [float(value) for value in least.min(axis=1)]
    fair = np.zeros(least.shape, dtype=bool)
    fair[np.arange(len(least)), problem.query.home] = True
    if folded:
        fair |= fair[::-1, ::-1]
    count = fair.sum(axis=1)
    others = np.where(fair, np.inf, least).min(axis=1)
    if np.isinf(least[fair]).any():  # one truth is never released, so none is
        return [float(value) for value in others]
    only_fair = np.isinf(others)
    others[only_fair] = 0.0
    surplus = [*least[fair], *(-count * others)]
    error = _SUM_ERROR * math.fsum(np.abs(surplus))
    slope = math.fsum(surplus)
    if only_fair.any():
        share = slope / int(count[only_fair].max())
    else:
        share = min(0.0, slope - error) / int(count.max())
    return [*(float(value) for value in others), share, -error]


def bound_path(
    problem: Problem, potential: Floats, marginal_prices: tuple[Floats, ...] = ()
) -> float:
    """Compute the bound on a path from row potentials and the marginals' prices alone.

    `potential` has shape (n,). The multipliers of privacy are worked out: for each output the
    reduced costs W + marginal terms - potential are met from both ends towards a peak, l_i =
    e^-epsilon (r_i + l_(i-1)), which is stable; the peak is put where the least is left. The bound
    is tight for optima that are geometric noise plus a remap.
    """
    costs = _ReducedCosts(problem.weights)
    constants: list[float] = []
    for marginal, price in zip(problem.marginals, marginal_prices, strict=True):
        costs.add(marginal.source[:, None] * price[None, :])
        constants.extend((-price * marginal.target).tolist())
    _subtract_path_rows(costs, costs.value - potential[:, None], problem)
    value = math.fsum([*constants, *_bound_rows(costs, problem)])
    return round_down(value - _SUM_ERROR * math.fsum(np.abs(constants)))


def _subtract_path_rows(costs: _ReducedCosts, reduced: Floats, problem: Problem) -> None:
    """Subtract privacy rows with multipliers that leave as little negative as possible."""
    shrink, (n, m) = 1 / problem.growth, reduced.shape
    down, down_least = _carry_down(reduced, shrink)
    up, up_least = (part[::-1] for part in _carry_down(reduced[::-1], shrink))
    none, free = np.zeros((1, m)), np.full((1, m), np.inf)
    before, after = np.vstack([none, down[:-1]]), np.vstack([up[1:], none])
    rest = reduced + shrink * (before + after)
    least = np.minimum(np.vstack([free, down_least[:-1]]), np.vstack([up_least[1:], free]))
    peak = np.minimum(rest, least).argmax(axis=0)
    i, j = np.indices((n, m)).reshape(2, -1)
    for side, step, carried in ((i < peak[j], 1, down), (i > peak[j], -1, up)):
        row, column = i[side], j[side]
        rows = Rows((row, column), (row + step, column), factor=problem.growth)
        costs.subtract_rows(rows, shrink * carried[row, column], _round_growth_up(problem))


def _carry_down(reduced: Floats, shrink: float) -> tuple[Floats, Floats]:
    """Return the amount that each entry carries to the next row, and the least rest so far."""
    carried, least = np.empty_like(reduced), np.empty_like(reduced)
    last, worst = np.zeros(reduced.shape[1]), np.full(reduced.shape[1], np.inf)
    for i, row in enumerate(reduced):
        here = row + shrink * last
        worst = np.minimum(worst, here)
        last = np.maximum(here, 0.0)
        carried[i], least[i] = last, worst
    return carried, least


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
    """Bound the objective from below by the cost of the best nearly constant mechanism.

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
    """Write the program of one row, with inequalities loosened by ratios up to e^reach.

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
    """List the demands on one row: outputs larger and smaller (or -1), factor, floor."""
    demands: set[tuple[int, int, float, float]] = set()
    for block in list_property_rows(problem):
        rows = block.rows
        larger = rows.larger[1]
        smaller = np.full(len(rows), -1) if rows.smaller is None else rows.smaller[1]
        pairs = np.unique(np.column_stack([larger, smaller]), axis=0).tolist()
        demands |= {(a, b, rows.factor, rows.floor) for a, b in pairs if a != b or rows.factor < 1}
        if rows.equal:
            demands |= {(b, a, 1.0, 0.0) for a, b in pairs if a != b}
    return demands


def _count_steps(problem: Problem) -> float:
    """Count the neighbour steps from the middle input to the furthest one; infinite if apart."""
    neighbours, n = problem.query.neighbours, len(problem.query.inputs)
    if neighbours.kind != "explicit":
        return float(math.ceil((n // 2) / neighbours.width))
    from scipy.sparse.csgraph import shortest_path

    low, high = neighbours.pairs.T
    graph = sparse.csr_array((np.ones(len(low)), (low, high)), shape=(n, n))
    return float(shortest_path(graph, directed=False, unweighted=True, indices=n // 2).max())
