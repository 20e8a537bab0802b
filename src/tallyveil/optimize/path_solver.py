"""An interior-point method for the whole program of a count.

Neighbours on a path and properties along a row tie an entry to entries of its row and of the
rows next to it. With a block per row the Newton system is block tridiagonal, and a step costs n
dense factors of size m. Why not Clarabel, which `tallyveil.optimize.solver` has? With an uneven
prior it needs 60 to 250 iterations, because it treats all rows of the program alike:

- *One step length* for both sides, which infeasibility on one of them shortens. Here the start is
  strictly private and has the properties, so that only the dual side has to become feasible.
- *One complementarity target* for all rows. Entries far from the truth are many orders of magnitude
  smaller than others, and a common target resolves them one after the other. Here targets are
  weighted by their expected size, and so is the start.

Steps are Mehrotra's predictor and corrector, followed by Gondzio's (1996) further correctors,
which cost a solve each, and no factor. Nothing is trusted: the caller polishes the matrix and
proves the bound.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tallyveil._threads import one_blas_thread
from tallyveil._version import __version__
from tallyveil.arrays import Floats, Integers
from tallyveil.optimize.problem import Problem
from tallyveil.optimize.program import Assembly
from tallyveil.optimize.solver import Matrix, Solution, Watch

REFINEMENTS, REFINED = 3, 1e-10
"""Most corrections of a solution of the Newton system, and the relative error that needs none."""


# -- the program in blocks ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Blocks:
    """Minimise ``cost @ x`` with ``G x <= right`` and an equation ``E x = sums`` per block.

    `order` sorts the variables by block, `starts` are the blocks' first places in that order.
    ``products @ d`` holds the entries of ``G' diag(d) G``: for block i those at ``diagonal[i]``
    (which of them, and where in the block), and the entries that tie it to block i - 1 at
    ``coupling[i]`` (which of them, row, column).
    """

    cost: Floats
    G: Matrix
    right: Floats
    E: Matrix
    sums: Floats
    order: Integers
    starts: Integers
    products: Matrix
    diagonal: list[tuple[Integers, Integers]]
    coupling: list[tuple[Integers, Integers, Integers]]
    equation: list[Floats]

    @classmethod
    def of(cls, assembly: Assembly) -> Blocks | None:
        """Split a program into blocks; None where rows further apart are coupled."""
        program = assembly.program
        G, E = (sparse.csr_array(side[0]) for side in (program.inequalities(), program.equations()))
        variable = assembly.steps[1].variable
        block = np.full(program.size, len(variable))
        row = np.repeat(np.arange(len(variable)), variable.shape[1])
        np.minimum.at(block, variable.ravel(), row)  # a mirrored entry belongs to the first row
        count = int(block.max()) + 1
        order = np.argsort(block, kind="stable")
        starts = np.searchsorted(block[order], np.arange(count + 1))
        local = np.empty(program.size, dtype=np.int64)
        local[order] = np.arange(program.size) - starts[block[order]]
        first, second, products = _multiply_rows(G)
        ahead = block[second] - block[first]
        if E.shape[0] != count or np.abs(ahead).max(initial=0) > 1:
            return None
        place = local[first] + local[second] * np.diff(starts)[block[first]]
        inside = np.flatnonzero((ahead == 0) & (local[first] >= local[second]))
        across = np.flatnonzero(ahead == 1)
        diagonal = [(entries, place[entries]) for entries in _split(inside, block[first], count)]
        coupling = [
            (entries, local[first[entries]], local[second[entries]])
            for entries in _split(across, block[second], count)
        ]
        equation = [
            E[[i]].toarray().ravel()[order[starts[i] : starts[i + 1]]] for i in range(count)
        ]
        return cls(
            program.cost, G, program.inequalities()[1], E, program.equations()[1],
            order, starts, products, diagonal, coupling, equation,
        )  # fmt: skip

    def split(self, values: Floats) -> list[Floats]:
        """Return the values of each block's variables."""
        ordered, ends = values[self.order], self.starts.tolist()
        return [ordered[first:last] for first, last in itertools.pairwise(ends)]

    def join(self, parts: list[Floats]) -> Floats:
        """Undo `split`."""
        values = np.empty(len(self.order))
        values[self.order] = np.concatenate(parts)
        return values


def _multiply_rows(G: Matrix) -> tuple[Integers, Integers, Matrix]:
    """Return the pairs of variables that share a row, and the map from d to G' d G."""
    length = np.diff(G.indptr)
    parts = []
    for size in np.unique(length):
        rows = np.flatnonzero(length == size)
        entries = G.indptr[rows][:, None] + np.arange(size)
        first, second = np.repeat(entries, size, axis=1).ravel(), np.tile(entries, size).ravel()
        parts.append((np.repeat(rows, size * size), first, second))
    row, first, second = (np.concatenate(part) for part in zip(*parts, strict=True))
    code = G.indices[first].astype(np.int64) * G.shape[1] + G.indices[second]
    pairs, number = np.unique(code, return_inverse=True)
    products = sparse.csr_array(
        (G.data[first] * G.data[second], (number, row)), shape=(len(pairs), G.shape[0])
    )
    return pairs // G.shape[1], pairs % G.shape[1], products


def _split(which: Integers, block: Integers, count: int) -> list[Integers]:
    """Return the numbers in `which` by the block that each belongs to."""
    by_block = which[np.argsort(block[which], kind="stable")]
    return np.split(by_block, np.searchsorted(block[by_block], np.arange(1, count)))


# -- the Newton system ----------------------------------------------------------------------------


class Factor:
    """A factor of ``[G' D G, E'; E, 0]``, one block after the other.

    With T the block after elimination of those before it and a its equation, it keeps
    u = T^-1 a, a'u, and P = T^-1 - u u' / a'u, which solves under a'x = 0.
    """

    def __init__(self, blocks: Blocks, scaling: Floats) -> None:
        from scipy.linalg.blas import dsymv, dsyr
        from scipy.linalg.lapack import dpotrf, dpotri

        self.blocks, self.scaling = blocks, scaling
        self.P: list[Floats] = []
        self.u: list[Floats] = []
        self.mass: list[float] = []
        self.coupling: list[Floats] = []
        values = blocks.products @ scaling
        for i, (entries, place) in enumerate(blocks.diagonal):
            size = len(blocks.equation[i])
            T = np.zeros((size, size), order="F")
            flat = T.ravel(order="K")
            flat[place] = values[entries]
            self.coupling.append(_shape_coupling(blocks, i, values))
            if i:
                T -= _carry(self.P[-1], self.coupling[i])
            flat[:: size + 1] *= 1 + 1e-14
            factor, failed = dpotrf(T, lower=1, overwrite_a=1, clean=0)
            if failed:
                raise np.linalg.LinAlgError
            P, _ = dpotri(factor, lower=1, overwrite_c=1)
            u = dsymv(1.0, P, blocks.equation[i], lower=1)
            mass = float(u @ blocks.equation[i])
            self.P.append(dsyr(-1 / mass, u, a=P, lower=1, overwrite_a=1))
            self.u.append(u)
            self.mass.append(mass)

    def solve(self, right: Floats, sums: Floats) -> tuple[Floats, Floats]:
        """Solve once, forwards and backwards over the blocks."""
        from scipy.linalg.blas import dsymv

        parts = self.blocks.split(right)
        solution: list[Floats] = []
        for i, (P, u) in enumerate(zip(self.P, self.u, strict=True)):
            if i:
                parts[i] -= _apply_coupling(self.coupling[i], solution[-1], forwards=True)
            solution.append(dsymv(1.0, P, parts[i], lower=1) + u * (sums[i] / self.mass[i]))
        y = np.empty(len(parts))
        for i in range(len(parts) - 1, -1, -1):
            if i + 1 < len(parts):
                back = _apply_coupling(self.coupling[i + 1], solution[i + 1], forwards=False)
                solution[i] -= dsymv(1.0, self.P[i], back, lower=1)
                parts[i] -= back
            y[i] = (self.u[i] @ parts[i] - sums[i]) / self.mass[i]
        return self.blocks.join(solution), y

    def refine(self, right: Floats, sums: Floats) -> tuple[Floats, Floats]:
        """Solve, and solve again for the remainder, while that gains enough."""
        G, E = self.blocks.G, self.blocks.E
        x, y = self.solve(right, sums)
        enough, before = REFINED * np.abs(right).max(), np.inf
        for _ in range(REFINEMENTS):
            rest = right - G.T @ (self.scaling * (G @ x)) - E.T @ y
            worst = np.abs(rest).max()
            if not enough < worst < before / 2:
                break
            before = worst
            more, change = self.solve(rest, sums - E @ x)
            x, y = x + more, y + change
        return x, y


def _shape_coupling(blocks: Blocks, i: int, values: Floats) -> Floats:
    """Return the coupling of block i to the one before: a vector if diagonal, else a matrix."""
    entries, row, column = blocks.coupling[i]
    size, before = len(blocks.equation[i]), len(blocks.equation[i - 1])
    if size == before == len(entries) and np.array_equal(row, column):
        diagonal = np.empty(size)
        diagonal[row] = values[entries]
        return diagonal
    matrix = np.zeros((before, size))
    matrix[row, column] = values[entries]
    return matrix


def _carry(P: Floats, coupling: Floats) -> Floats:
    """Return ``coupling' P coupling`` for a P whose lower half alone is set; so is the result's."""
    if coupling.ndim == 1:
        carried = np.multiply.outer(coupling, coupling)
        carried *= P.T  # both are symmetric, and so the order in memory is the same
        return carried.T
    symmetric = np.tril(P) + np.tril(P, -1).T
    return coupling.T @ symmetric @ coupling


def _apply_coupling(coupling: Floats, values: Floats, *, forwards: bool) -> Floats:
    """Multiply by the coupling, or by its transpose."""
    if coupling.ndim == 1:
        return coupling * values
    return values @ coupling if forwards else coupling @ values


LEAST_SIZE = 10_000
"""Programs with fewer variables take Clarabel less than a second or two."""

MOST_WORK = 4e7
"""Largest sum of squared block sizes, in doubles that a factor keeps: 300 MB."""

MOST_EPSILON, MOST_SHARED = 1, Fraction(1, 2)
"""Beyond this epsilon very uneven priors leave doubles too few digits; the second one is for output
privacy, where windows are far quicker beyond it."""

MOST_STEPS = 80
"""Most Newton steps; 20 to 40 are usual."""

START_RATE = 0.45
"""The start falls by this share of epsilon per step. Below a half it is private after rows are
brought to a sum of one, and strictly monotone."""

START_MEAN = 10.0
"""Mean complementarity at the start, relative to the objective."""

BOUNDARY = 0.95
"""Share of the way to the boundary that a step takes."""

CORRECTORS = 3
"""Most correctors after Mehrotra's; each must lengthen the step."""

LEAST_WEIGHT = 1e-14
"""Smallest weight of a target, relative to the largest."""


def suits_path_solver(problem: Problem) -> bool:
    """Return True for a large program whose demands couple neighbours only."""
    n, m = problem.query.shape
    if (
        not problem.is_path
        or problem.worst_case
        or problem.marginals
        or {"fair", "row_honest"} & set(problem.properties)
    ):
        return False
    if problem.epsilon > (MOST_SHARED if "output_private" in problem.properties else MOST_EPSILON):
        return False
    size = n * m / 2 if problem.is_mirrored else n * m
    return size >= LEAST_SIZE and n * m * m <= MOST_WORK


def solve_path(assembly: Assembly, tolerance: float, watch: Watch | None = None) -> Solution | None:
    """Solve the whole program of a problem that `suits_path_solver`; None where it does not fit.

    Stops when the duality gap, with the cost of the dual residuals, is below `tolerance`, relative
    to the objective.
    """
    began = time.perf_counter()
    blocks = Blocks.of(assembly)
    if blocks is None:
        return None
    start, weights = _choose_start(assembly, blocks)
    if not (blocks.right - blocks.G @ start > 0).all():
        return None
    with one_blas_thread():
        result = _follow_path(blocks, start, weights, tolerance, watch)
    return Solution(
        result.point.x,
        float(blocks.cost @ result.point.x),
        result.point.y,
        result.point.z,
        "optimal" if result.error <= tolerance else "inaccurate",
        "tallyveil",
        __version__,
        time.perf_counter() - began,
        result.steps,
    )


def _choose_start(assembly: Assembly, blocks: Blocks) -> tuple[Floats, Floats]:
    """Choose a mechanism strictly inside every demand, and weights of the rows' targets.

    The weights are square roots of the start's entries; with output privacy also of the prior of
    each input and of the inputs that privacy ties to it. Under a prior that falls by a
    tenth per answer, at epsilon 0.1, that saves 23 of 49 steps (101 answers); with monotone columns
    it would cost 73 instead of 21 (161 answers).
    """
    problem, (scale, substitute, _) = assembly.problem, assembly.steps
    n, m = problem.query.shape
    epsilon = float(problem.epsilon)
    away = np.abs(problem.query.home[:, None] - np.arange(m)[None, :])
    near = np.exp(-START_RATE * epsilon * away)
    weight = np.sqrt(near)
    if "output_private" in problem.properties:
        steps = np.abs(np.arange(n)[:, None] - np.arange(n)[None, :])
        tied = np.exp(-epsilon * steps) @ problem.prior
        weight *= np.sqrt(tied / tied.max())[:, None]
    start, by_variable = np.zeros(substitute.size), np.zeros(substitute.size)
    start[substitute.variable] = scale.factor * near / near.sum(axis=1, keepdims=True)
    np.maximum.at(by_variable, substitute.variable, weight)
    touched = abs(blocks.G).sign() @ sparse.diags_array(by_variable)
    weights = np.maximum(touched.max(axis=1).toarray().ravel(), LEAST_WEIGHT)
    return start, weights / weights.mean()


# -- the steps ------------------------------------------------------------------------------------


class _Point(NamedTuple):
    """Values x with slacks s, and multipliers y of the equations and z of the inequalities."""

    x: Floats
    y: Floats
    s: Floats
    z: Floats


class _Path(NamedTuple):
    """The best point, its error relative to the objective, and the steps that were taken."""

    point: _Point
    error: float
    steps: int


def _follow_path(
    blocks: Blocks, start: Floats, weights: Floats, tolerance: float, watch: Watch | None
) -> _Path:
    """Follow the weighted central path to its end, or to where rounding ends it."""
    slack = blocks.right - blocks.G @ start
    mean = START_MEAN * abs(float(blocks.cost @ start)) / len(slack)
    point = _Point(start, np.zeros(blocks.E.shape[0]), slack, mean * weights / slack)
    best = _Path(point, np.inf, 0)
    for step in range(MOST_STEPS + 1):
        value = float(blocks.cost @ point.x)
        dual = blocks.cost + blocks.E.T @ point.y + blocks.G.T @ point.z
        gap = float(point.s @ point.z)
        error = (gap + _price(blocks, dual)) / abs(value) if value else np.inf
        if error < best.error:
            best = _Path(point, error, step)
        stopped = watch is not None and watch(step, value)
        if stopped or error <= tolerance or step == MOST_STEPS or gap <= tolerance**2 * abs(value):
            break
        try:
            move, primal, multipliers = _choose_move(blocks, point, dual, gap, weights)
        except np.linalg.LinAlgError:
            break
        if not np.isfinite(move.x).all() or max(primal, multipliers) < 1e-4:
            break
        point = _Point(
            point.x + primal * move.x,
            point.y + multipliers * move.y,
            point.s + primal * move.s,
            point.z + multipliers * move.z,
        )
    return best


def _price(blocks: Blocks, dual: Floats) -> float:
    """Return the loss of the bound to dual residuals: the largest of each block times its sum."""
    largest = np.maximum.reduceat(np.abs(dual)[blocks.order], blocks.starts[:-1])
    return float(largest @ np.abs(blocks.sums))


def _choose_move(
    blocks: Blocks, point: _Point, dual: Floats, gap: float, weights: Floats
) -> tuple[_Point, float, float]:
    """Choose a direction, and how far each side goes along it."""
    factor = Factor(blocks, point.z / point.s)
    primal = blocks.G @ point.x + point.s - blocks.right
    sums = blocks.E @ point.x - blocks.sums

    def aim(product: Floats) -> _Point:
        """Return the direction that closes the residuals and changes s z by `product`."""
        right = -dual - blocks.G.T @ ((product + point.z * primal) / point.s)
        x, y = factor.refine(right, -sums)
        s = -primal - blocks.G @ x
        return _Point(x, y, s, (product - point.z * s) / point.s)

    predictor = aim(-point.s * point.z)
    reach = _measure_reach(point, predictor)
    ahead = float((point.s + reach[0] * predictor.s) @ (point.z + reach[1] * predictor.z))
    target = (ahead / gap) ** 3 * gap / len(point.s) * weights
    move = aim(target - point.s * point.z - predictor.s * predictor.z)
    reach = _measure_reach(point, move)
    for _ in range(CORRECTORS):
        if min(reach) >= BOUNDARY:
            break
        aims = [min(1.0, 1.08 * length + 0.08) for length in reach]
        product = (point.s + aims[0] * move.s) * (point.z + aims[1] * move.z)
        change = np.maximum(np.clip(product, 0.1 * target, 10 * target) - product, -10 * target)
        x, y = factor.solve(-(blocks.G.T @ (change / point.s)), np.zeros_like(sums))
        s = -(blocks.G @ x)
        better = _Point(
            move.x + x, move.y + y, move.s + s, move.z + (change - point.z * s) / point.s
        )
        longer = _measure_reach(point, better)
        if sum(longer) < sum(reach) + 0.01:
            break
        move, reach = better, longer
    return move, BOUNDARY * reach[0], BOUNDARY * reach[1]


def _measure_reach(point: _Point, move: _Point) -> tuple[float, float]:
    """Return the longest steps, at most 1, that keep slacks and multipliers non-negative."""
    return _longest_step(point.s, move.s), _longest_step(point.z, move.z)


def _longest_step(values: Floats, move: Floats) -> float:
    """Return the longest step, at most 1, that keeps the values non-negative."""
    falling = move < 0
    return min(1.0, float((-values[falling] / move[falling]).min(initial=np.inf)))
