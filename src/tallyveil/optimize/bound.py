"""A true lower bound on the loss of every mechanism that meets the constraints.

Let each constraint be <A_r, M> >= b_r and take multipliers l_r >= 0, good or bad. Put
C = sum_r l_r A_r and W = prior * loss. Every feasible M has stochastic rows, so::

    <W, M> = <C, M> + <W - C, M>  >=  sum_r l_r b_r + sum_i min_j (W - C)[i, j]

The right side is what is computed, with every rounding error bounded and taken off. Nothing
about the solver is trusted: poor multipliers only make a poor bound. Equations have
multipliers of either sign; a worst case is the same with W = w_i * loss for multipliers w of
the true answers, divided by their sum.
"""

from __future__ import annotations

import math

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.optimize import reductions as fold
from tallyveil.optimize.problem import Problem
from tallyveil.optimize.program import Assembly, Multipliers, erased_columns, pair_numbers
from tallyveil.optimize.solver import UNIT, round_down
from tallyveil.properties import Rows

__all__ = ["certified_bound", "path_bound"]


class _Sum:
    """A matrix of running sums with a bound on the rounding error of each."""

    def __init__(self, start: Floats) -> None:
        self.value = start.copy()
        self.size = np.abs(start)
        self.terms = 2

    def add(self, part: Floats, size: Floats | None = None, terms: int = 1) -> None:
        self.value += part
        self.size += np.abs(part) if size is None else size
        self.terms += terms

    def add_rows(self, rows: Rows, multiplier: Floats, factor: float) -> None:
        """Take the rows ``factor M[larger] - M[smaller]``, times their multipliers, off."""
        m = self.value.shape[1]
        cells = [rows.larger[0] * m + rows.larger[1]]
        parts = [-factor * multiplier]
        if rows.smaller is not None:
            cells.append(rows.smaller[0] * m + rows.smaller[1])
            parts.append(multiplier)
        where, part = np.concatenate(cells), np.concatenate(parts)
        count = self.value.size
        total = np.bincount(where, part, minlength=count).astype(float)
        size = np.bincount(where, np.abs(part), minlength=count).astype(float)
        shape = self.value.shape
        self.add(
            total.reshape(shape),
            size.reshape(shape),
            1 + int(np.bincount(where, minlength=1).max(initial=0)),
        )

    def fold(self) -> None:
        """The mean with the mirror image: allowed where the constraints are symmetric."""
        self.value = (self.value + self.value[::-1, ::-1]) / 2
        self.size = (self.size + self.size[::-1, ::-1]) / 2
        self.terms += 1

    def floor(self) -> Floats:
        """Values that the exact sums do not fall below."""
        down: Floats = self.value - 2 * (self.terms + 2) * UNIT * self.size
        return down


def certified_bound(assembly: Assembly, multipliers: Multipliers) -> float:
    """The largest number proved by `multipliers` to be below every feasible objective.

    It is a bound for the whole problem, also when the program was windowed: multipliers of
    the geometric tails are completed by the recursion of `_tail_multipliers`. Costs O(n m)
    and one pass over the rows.
    """
    problem = assembly.problem
    share = 1.0
    if problem.worst_case:
        weight = np.zeros(len(problem.query.inputs))
        weight[assembly.worst_inputs] = multipliers.worst
        if not weight.sum() > 0:
            return -math.inf
        share = math.fsum(weight)
        total = _Sum(weight[:, None] * problem.table)
    else:
        total = _Sum(problem.weights)
    constants = _add_constraints(total, assembly, multipliers)
    if assembly.folded:
        total.fold()
    if assembly.width is not None:
        _add_tails(total, assembly, multipliers)
    value = math.fsum([*constants, *_row_minima(total, problem, assembly.folded)])
    blur = 8 * UNIT * math.fsum(np.abs(constants))
    return round_down((value - blur) / share)


def _add_constraints(total: _Sum, assembly: Assembly, multipliers: Multipliers) -> list[float]:
    """Take C off `total`; return the constants sum_r l_r b_r."""
    problem = assembly.problem
    constants: list[float] = []
    for block, multiplier in multipliers.blocks:
        factor = _factor(block.rows, problem)
        total.add_rows(block.rows, multiplier, factor)
        if block.rows.floor:
            constants.append(block.rows.floor * math.fsum(multiplier) * (1 - 4 * UNIT))
        if problem.delta and block.name == "privacy":
            # sum_j l_j s_j <= delta max_j l_j for slacks s >= 0 that sum to at most delta
            which = pair_numbers(block.rows, len(problem.query.inputs))
            largest = np.zeros(int(which.max()) + 1)
            np.maximum.at(largest, which, multiplier)
            constants.append(-float(problem.delta) * math.fsum(largest) * (1 + 4 * UNIT))
    for (law, columns), multiplier in zip(assembly.law_columns, multipliers.laws, strict=True):
        by_output = np.zeros(len(problem.query.outputs))
        by_output[columns] = multiplier
        total.add(law.source[:, None] * by_output[None, :])
        constants.extend((-by_output * law.target).tolist())
    if len(assembly.trick_columns):
        total.add(*_minimum_trick(assembly, multipliers))
    return constants


def _factor(rows: Rows, problem: Problem) -> float:
    """e^epsilon rounded up, which keeps the row true; other factors as they are."""
    return rows.factor if rows.factor == 1.0 else _grow_up(problem)


def _grow_up(problem: Problem) -> float:
    return problem.grow * (1 + (4 + 2 * float(problem.epsilon)) * UNIT)


def _minimum_trick(assembly: Assembly, multipliers: Multipliers) -> tuple[Floats, Floats, int]:
    """Multipliers of m_j <= M[i, j] <= e^epsilon m_j as a part of -C.

    sum_i a_i M[i,j] - b_i M[i,j] >= m_j (sum a - e^epsilon sum b), which is >= 0 once b is
    scaled down to sum a >= e^epsilon sum b.
    """
    problem = assembly.problem
    a, b = np.zeros(problem.query.shape), np.zeros(problem.query.shape)
    a[:, assembly.trick_columns] = multipliers.above
    b[:, assembly.trick_columns] = multipliers.below
    if assembly.folded:
        a, b = a + a[::-1, ::-1], b + b[::-1, ::-1]
        a, b = a / 2, b / 2
    have, need = a.sum(axis=0), _grow_up(problem) * b.sum(axis=0)
    safety = 1 - 4 * (len(a) + 4) * UNIT
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(need > 0, np.minimum(1.0, safety * have / need), 0.0)
    b = b * scale
    return b - a, a + b, 4


def _add_tails(total: _Sum, assembly: Assembly, multipliers: Multipliers) -> None:
    """Choose the multipliers of the tails' privacy rows so that their cells come out even.

    With y the row potentials, the cell furthest out is met by l = e^-epsilon (W + y), the
    next by l' = e^-epsilon (W' + y' + l), and so on up to the window's edge. Multipliers
    that would be negative are zero.
    """
    problem, width = assembly.problem, assembly.width
    assert width is not None
    n = len(problem.query.inputs)
    potential = np.zeros(n)
    potential[assembly.sums] = multipliers.sums
    if assembly.folded:
        potential = (potential + potential[::-1]) / 2
    far = fold.outside(problem, width)
    shrink = 1 / problem.grow
    first = np.argmax(~far, axis=0)
    grow = _grow_up(problem)
    for outwards_in, inner in ((range(n - 1, 0, -1), -1), (range(n - 1), +1)):
        for i in outwards_in:
            tail = np.flatnonzero(far[i] & ((i > first) if inner == -1 else (i < first)))
            multiplier = np.maximum(shrink * (total.value[i, tail] + potential[i]), 0.0)
            total.value[i, tail] -= grow * multiplier
            total.size[i, tail] += grow * multiplier
            total.value[i + inner, tail] += multiplier
            total.size[i + inner, tail] += multiplier
    total.terms += 2


def _row_minima(total: _Sum, problem: Problem, folded: bool = False) -> list[float]:
    """Terms whose sum no stochastic matrix with the fair cells falls below.

    Without fairness they are min_j of every row. Fair cells all hold one probability y (and
    so do their mirror images where the matrix is symmetric). With k_i of them in row i and
    o_i the least of its other entries, the sum is at least::

        sum_i o_i + y (sum over fair cells of (X - o_i)),      0 <= y <= 1 / max k

    and a row of nothing but fair cells fixes y.
    """
    floor = total.floor()
    floor[:, erased_columns(problem)] = np.inf
    if "fair" not in problem.properties:
        return [float(least) for least in floor.min(axis=1)]
    tied = np.zeros(floor.shape, dtype=bool)
    tied[np.arange(len(floor)), problem.query.home] = True
    if folded:
        tied |= tied[::-1, ::-1]
    count = tied.sum(axis=1)
    others = np.where(tied, np.inf, floor).min(axis=1)
    if np.isinf(floor[tied]).any():  # one truth is never released, so none is
        return [float(least) for least in others]
    bare = np.isinf(others)
    others[bare] = 0.0
    surplus = [*floor[tied], *(-count * others)]
    error = 8 * UNIT * math.fsum(np.abs(surplus))
    slope = math.fsum(surplus)
    if bare.any():
        share = slope / int(count[bare].max())
    else:
        share = min(0.0, slope - error) / int(count.max())
    return [*(float(least) for least in others), share, -error]


def path_bound(problem: Problem, potential: Floats, laws: tuple[Floats, ...] = ()) -> float:
    """The bound on a path from row potentials alone: privacy multipliers are worked out.

    For each output the reduced costs W + law terms - potential are met from both ends towards
    a peak, l_i = e^-epsilon (r_i + l_(i-1)), which is stable; the peak is put where the least
    is left over. It is tight for optima that are geometric noise plus a remap.

    Parameters
    ----------
    potential : shape (n,), ideally with sum_i potential_i + law terms = the optimum
    laws : multipliers of the equations ``(source M)_j = target_j``, one array per law
    """
    total = _Sum(problem.weights)
    constants: list[float] = []
    for law, multiplier in zip(problem.laws, laws, strict=True):
        total.add(law.source[:, None] * multiplier[None, :])
        constants.extend((-multiplier * law.target).tolist())
    _add_paths(total, total.value - potential[:, None], problem)
    value = math.fsum([*constants, *_row_minima(total, problem)])
    return round_down(value - 8 * UNIT * math.fsum(np.abs(constants)))


def _add_paths(total: _Sum, reduced: Floats, problem: Problem) -> None:
    """Privacy multipliers that leave as little of `reduced` negative as can be."""
    shrink, (n, m) = 1 / problem.grow, reduced.shape
    down, down_least = _from_the_end(reduced, shrink)
    up, up_least = (part[::-1] for part in _from_the_end(reduced[::-1], shrink))
    none, free = np.zeros((1, m)), np.full((1, m), np.inf)
    before, after = np.vstack([none, down[:-1]]), np.vstack([up[1:], none])
    left = reduced + shrink * (before + after)
    least = np.minimum(np.vstack([free, down_least[:-1]]), np.vstack([up_least[1:], free]))
    peak = np.minimum(left, least).argmax(axis=0)
    i, j = (part.ravel() for part in np.meshgrid(np.arange(n), np.arange(m), indexing="ij"))
    for side, step, level in ((i < peak[j], 1, down), (i > peak[j], -1, up)):
        here, there = i[side], j[side]
        rows = Rows((here, there), (here + step, there), factor=problem.grow)
        total.add_rows(rows, shrink * level[here, there], _grow_up(problem))


def _from_the_end(reduced: Floats, shrink: float) -> tuple[Floats, Floats]:
    """What is carried on from each cell, and the least left over so far."""
    level, least = np.empty_like(reduced), np.empty_like(reduced)
    carried, worst = np.zeros(reduced.shape[1]), np.full(reduced.shape[1], np.inf)
    for i, row in enumerate(reduced):
        here = row + shrink * carried
        worst = np.minimum(worst, here)
        carried = np.maximum(here, 0.0)
        level[i], least[i] = carried, worst
    return level, least
