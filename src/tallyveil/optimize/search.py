"""Solve a design program: narrow window first, wider until the bound says it is enough."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.errors import QueryError, TallyveilError
from tallyveil.mechanisms.additive import staircase
from tallyveil.mechanisms.fair import fair, randomized_response
from tallyveil.mechanisms.geometric import geometric
from tallyveil.optimize.bound import certified_bound
from tallyveil.optimize.polish import LAW_TOLERANCE, broken_rows, clean
from tallyveil.optimize.constraints import Block
from tallyveil.optimize.conflicts import explain
from tallyveil.optimize.problem import Problem
from tallyveil.optimize.program import assemble
from tallyveil.optimize.solver import Backend, Watch, round_down, solve

__all__ = ["Found", "relative_gap", "solve_problem"]


ENOUGH = 1e-7
"""A window is wide enough, and a solution good enough, at this relative gap."""

PRECISION = 1e-11
"""Tolerance asked of the solver; it costs two or three iterations and often is reached."""

TOLERABLE = 1e-6
"""Beyond this gap the whole search is repeated with the costs unscaled."""

WINDOWS = (0.03, 1e-3, 1e-6)
"""Where tails begin: at the distance where e^-epsilon to its power falls below these."""

MARGINS = (0.0, 1e-10, 1e-9)
"""How much room rows get when round-off in a solution broke a property."""


@dataclass(frozen=True, eq=False)
class Found:
    """The best matrix, the best bound, and how they were come by.

    `sound` says that every property and law holds to the stated tolerance.
    """

    matrix: Floats
    objective: float
    bound: float
    solver: str
    iterations: int
    width: int | None
    sound: bool

    @property
    def gap(self) -> float:
        """(objective - bound) relative to the objective."""
        return relative_gap(self.objective, self.bound)


def relative_gap(objective: float, bound: float) -> float:
    """(objective - bound) / |objective|; absolute where the objective is (nearly) zero."""
    if not math.isfinite(bound):
        return math.inf
    return max(0.0, objective - bound) / (abs(objective) if abs(objective) > 1e-9 else 1.0)


def solve_problem(
    problem: Problem, backend: Backend = "clarabel", watch: Watch | None = None
) -> Found:
    """The optimal mechanism by linear programming, with a certified bound.

    On a path the far tails are first taken to be geometric, which makes the program much
    smaller; the bound is always for the whole program, so it tells when that cost something
    and the window must widen. Raises `InfeasibleError` if nothing meets the constraints.
    """
    best: Found | None = None
    for scaled in (True, False):
        for width in _widths(problem):
            found = _attempt(problem, width, scaled, backend, watch)
            if found is None:
                continue
            best = found if best is None else _better(best, found)
            if best.sound and best.gap <= ENOUGH:
                return best
        if best is not None and best.sound and best.gap <= TOLERABLE:
            return best
    best = _beside_closed_forms(problem, best)
    if best is None or not best.sound:
        explain(problem, watch)
        raise TallyveilError(
            "The solver found no mechanism that meets the demands to the stated tolerance, and "
            "no proof that there is none. Ask for less, or for a larger epsilon."
        )
    return best


def _widths(problem: Problem) -> list[int | None]:
    """Windows to try in turn; None is the whole program."""
    if not problem.query.neighbours.is_path or problem.delta:
        return [None]
    n = len(problem.query.inputs)
    widths = [math.ceil(-math.log(share) / float(problem.epsilon)) for share in WINDOWS]
    return [*(width for width in widths if 4 * width < 3 * n), None]


def _attempt(
    problem: Problem, width: int | None, scaled: bool, backend: Backend, watch: Watch | None
) -> Found | None:
    """One window: solve, clean, add rows that turn out broken, bound."""
    extra: tuple[Block, ...] = ()
    found: Found | None = None
    bound = -math.inf
    for margin in MARGINS:
        assembly = assemble(problem, width, extra, margin=margin, scaled=scaled)
        solution = solve(assembly.program, backend, tolerance=PRECISION, watch=watch)
        if solution.status in ("infeasible", "unbounded"):
            return found
        raw = assembly.matrix(solution)
        if not np.isfinite(raw).all() or (np.abs(raw.sum(axis=1) - 1) > 1e-4).any():
            return found
        bound = max(bound, certified_bound(assembly, assembly.multipliers(solution)))
        matrix = clean(problem, raw)
        broken = broken_rows(problem, matrix)
        sound = not broken and _laws_hold(problem, matrix)
        name = f"{solution.solver} {solution.version}"
        value = problem.value(matrix)
        found = Found(matrix, value, bound, name, solution.iterations, width, sound)
        if sound:
            return found
        extra = (*extra, *(block for block in broken if not block.rows.equal))
    return found


def _beside_closed_forms(problem: Problem, best: Found | None) -> Found | None:
    """The best of `best` and the closed forms that meet the demands.

    At a very large epsilon probabilities span more powers of ten than a solver resolves, and
    even randomized response may be better than what it returns. The bound is at least the
    loss of always giving the best answer.
    """
    if problem.least:
        return best
    easiest = problem.table.min(axis=1)
    floor = easiest[problem.possible].max() if problem.worst_case else problem.prior @ easiest
    for make in (geometric, fair, randomized_response, staircase):
        try:
            matrix = clean(problem, make(problem.query, problem.epsilon).matrix)
        except QueryError:  # not defined for this query
            continue
        if not broken_rows(problem, matrix) and _laws_hold(problem, matrix):
            closed = Found(matrix, problem.value(matrix), round_down(float(floor)),
                           f"closed form {make.__name__}", 0, None, True)  # fmt: skip
            best = closed if best is None else _better(best, closed)
    return best


def _laws_hold(problem: Problem, matrix: Floats) -> bool:
    misses = (np.abs(law.source @ matrix - law.target).max() for law in problem.laws)
    return all(miss <= LAW_TOLERANCE for miss in misses)


def _better(first: Found, second: Found) -> Found:
    """The lower sound objective with the higher bound: both hold for the same problem."""
    chosen = min(first, second, key=lambda found: (not found.sound, found.objective))
    return replace(chosen, bound=max(first.bound, second.bound))
