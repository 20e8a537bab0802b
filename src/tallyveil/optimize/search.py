"""Search for the optimal mechanism by linear programs of growing size.

Three loops, from the outside in, each ended by the certified gap or by the demands being met:

1. *Cost scaling*: scaled costs first; costs as given only if the gap stays above
   `ACCEPTABLE_GAP`.
2. *Windows* (paths only): the far tails are first taken to be geometric, which makes the program
   much smaller. With output privacy they are left out, and filled in afterwards. The bound is
   always for the whole program, so it tells when that cost something and the window must widen;
   the last window is the whole program.
3. *Margins*: where polishing breaks a property by round-off, the broken rows are added and all
   inequalities get a little slack.

If nothing is good enough, constant answers and closed forms that meet the demands are considered,
and then whether the demands conflict. Every program that was solved is recorded as an `Attempt`.

*Conflicts.* Row sums, privacy and every property can always be met together (by the uniform
mechanism), so only output distributions can be out of reach. Allow them to be missed: the least
total miss, bounded from below like any objective, is positive exactly when the demands conflict.
Dropping demands one by one while that stays so leaves an irreducible set.
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tallyveil.arrays import Floats
from tallyveil.errors import InfeasibleError, QueryError, TallyveilError
from tallyveil.mechanisms.additive import staircase
from tallyveil.mechanisms.exponential import fair, randomized_response
from tallyveil.mechanisms.geometric import geometric
from tallyveil.optimize.bound import (
    bound_by_constants,
    bound_objective,
    find_best_constant,
    measure_gap,
)
from tallyveil.optimize.closed_forms import bound_by_domination
from tallyveil.optimize.path_solver import solve_path, suits_path_solver
from tallyveil.optimize.polish import (
    can_fill_both_ways,
    find_broken_rows,
    is_tight,
    meets_marginals,
    polish,
)
from tallyveil.optimize.problem import (
    ACCEPTABLE_GAP,
    COARSE_TOLERANCE,
    CONFLICT_MISS,
    CUT_SHARE,
    FEW_VARIABLES,
    MANY_ANSWERS,
    MAX_ROW_SUM_ERROR,
    PATH_TOLERANCE,
    ROW_MARGINS,
    SOLVER_TOLERANCE,
    SUFFICIENT_GAP,
    TAIL_SHARES,
    Block,
    Problem,
)
from tallyveil.optimize.program import (
    WORST_CASE,
    Assembly,
    ColumnSums,
    Constraint,
    MatrixScaling,
    OtherVariables,
    assemble,
    choose_substitution,
    select,
    write_program,
)
from tallyveil.optimize.solver import Solution, Watch, lower_bound, round_down, solve

SHORT, EXCESS = "short", "excess"
"""Names of the variables by which outputs miss their demanded probability."""


def raise_conflict(problem: Problem, watch: Watch | None = None) -> None:
    """Raise `InfeasibleError` with an irreducible conflict; return if none is proved."""
    miss = bound_miss(problem, watch)
    if miss <= CONFLICT_MISS:
        return
    least = ["zero_outputs"] if problem.least_probability > 0 else []
    marginals = [marginal.name for marginal in problem.marginals]
    demands = ["privacy", *problem.properties, *least, *marginals]
    for name in list(demands):
        fewer = [other for other in demands if other != name]
        if bound_miss(_keep_demands(problem, fewer), watch) > CONFLICT_MISS:
            demands = fewer
    listed = ", ".join(demands)
    raise InfeasibleError(
        f"No mechanism at epsilon = {float(problem.epsilon):g} meets all of: {listed}. "
        f"The output distributions are missed by at least {miss:.3g} in total. Leave any one of "
        "these out and the others can be met.",
        tuple(demands),
    )


def _keep_demands(problem: Problem, names: list[str]) -> Problem:
    """Return the problem with the named demands only."""
    private = "privacy" in names
    return replace(
        problem,
        private=private,
        delta=problem.delta if private else Fraction(0),
        properties=tuple(name for name in problem.properties if name in names),
        marginals=tuple(marginal for marginal in problem.marginals if marginal.name in names),
        least_probability=problem.least_probability if "zero_outputs" in names else 0.0,
    )


def bound_miss(problem: Problem, watch: Watch | None = None) -> float:
    """Bound sum_j |(source M)_j - target_j| from below, over all marginals and private M.

    The program minimises short + excess subject to source M + short - excess = target.
    """
    if not problem.marginals:
        return 0.0
    n, m = problem.query.shape
    relaxed = replace(problem, marginals=(), worst_case=False, loss_table=np.zeros((n, m)))
    selection = select(relaxed, fold_if_mirrored=False)
    written = write_program(relaxed, selection)
    count = m * len(problem.marginals)
    equations = dict(written.equations)
    for number, marginal in enumerate(problem.marginals):
        miss_part = sparse.eye_array(m, count, k=m * number, format="csr")
        form = ColumnSums(marginal.source, np.arange(m))
        equations[marginal] = Constraint(
            form, marginal.target, {SHORT: miss_part, EXCESS: -miss_part}
        )
    miss = {name: OtherVariables(count, cost=1.0) for name in (SHORT, EXCESS)}
    measured = replace(written, equations=equations, others={**written.others, **miss})
    scaled = MatrixScaling(m).apply(measured)
    program = choose_substitution(relaxed, selection).apply(scaled)
    solution = solve(program, watch=watch)
    return lower_bound(program, solution.y_eq, solution.y_ub, upper=float(m)) / m


@dataclass(frozen=True)
class Attempt:
    """One program that a search tried, or one closed form, which its outcome names.

    `window` is the distance from the truth at which geometric tails begin, None for the whole
    program; `margin` the slack of the inequalities; `scaling` whether costs were scaled; `gap`
    that to the certified bound, None without a solution or without a finite bound.
    """

    window: int | None
    margin: float
    scaling: bool
    gap: float | None
    seconds: float
    outcome: str


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The best matrix and certified bound of a search so far; `window` as in `Attempt`.

    `feasible` says whether every property and output distribution holds to its tolerance, `tight`
    whether well below it (`is_tight`); `method` is "lp", "constant", or the name of a closed form.
    """

    matrix: Floats
    objective: float
    bound: float
    solver: str
    iterations: int
    window: int | None
    feasible: bool
    tight: bool
    method: str = "lp"
    attempts: tuple[Attempt, ...] = ()

    def is_within(self, gap: float) -> bool:
        """Return True if every demand is met tightly and the gap is at most `gap`."""
        return self.feasible and self.tight and self.gap <= gap

    @property
    def gap(self) -> float:
        """Distance between objective and bound, relative to the objective."""
        return measure_gap(self.objective, self.bound)


def solve_problem(problem: Problem, watch: Watch | None = None) -> SearchResult:
    """Find the optimal mechanism by linear programming, with a certified bound.

    Raises `InfeasibleError` if provably nothing meets the demands.
    """
    attempts: list[Attempt] = []
    best: SearchResult | None = None
    if float(problem.epsilon) * len(problem.query.inputs) <= ACCEPTABLE_GAP:
        for constant in _try_constant(problem, attempts):
            if constant.is_within(SUFFICIENT_GAP):
                return replace(constant, attempts=tuple(attempts))
    for scaling, windows in _choose_order(problem):
        for window in windows:
            if window.width is None and best is not None and _is_good_enough(problem, best):
                break
            if best is not None and _is_hopeless(best, window.share):
                continue
            result = _try_window(problem, window, scaling, watch, attempts)
            best = _choose_better(best, result)
            if best is not None and best.is_within(SUFFICIENT_GAP):
                return replace(best, attempts=tuple(attempts))
        if best is not None and best.is_within(ACCEPTABLE_GAP):
            return replace(best, attempts=tuple(attempts))
    for other in (*_try_constant(problem, attempts), *_try_closed_forms(problem, attempts)):
        best = _choose_better(best, other)
    if best is None or not best.feasible:
        raise_conflict(problem, watch)
        raise TallyveilError(
            "The solver found no mechanism that meets the demands to the stated tolerance, and "
            "no proof that there is none. Ask for less, or for a larger epsilon."
        )
    return replace(best, attempts=tuple(attempts))


class _Window(NamedTuple):
    """Where tails begin, None for the whole program, and whether they are cut off.

    `share` is that of the tails where a wider window may follow, else 0.
    """

    width: int | None
    share: float = 0.0
    cut: bool = False


def _choose_order(problem: Problem) -> list[tuple[bool, list[_Window]]]:
    """Choose the order of the search: whether to scale costs, and the windows to try then.

    For a large worst case unscaled costs mostly do where scaled ones do not, and the whole program
    is left to the last.
    """
    windows = _choose_windows(problem)
    large = len(problem.query.inputs) > MANY_ANSWERS
    if large and problem.worst_case and "output_private" not in problem.properties:
        parts, last = windows[:-1], windows[-1:]
        return [(True, parts), (False, parts), (True, last), (False, last)]
    return [(True, windows), (False, windows)]


def _choose_windows(problem: Problem) -> list[_Window]:
    """Choose the windows to try in turn; the last is the whole program.

    With output privacy tails are not geometric, and multipliers of a program with such tails
    prove nothing. There the program without tails proves the bound and, if it is small enough for
    a vertex, gives the matrix; else that with geometric tails does.
    """
    last = [_Window(None)]
    if not problem.query.neighbours.is_path or problem.delta:
        return last
    n, epsilon = len(problem.query.inputs), float(problem.epsilon)
    if "output_private" in problem.properties:
        width = math.ceil(-math.log(CUT_SHARE) / epsilon)
        cuts = [_Window(width, cut=True), _Window(width)] if can_fill_both_ways(problem) else []
        if suits_path_solver(problem) and n * (2 * width + 1) > _count_few(problem):
            return last  # which takes less than finding out that a cut will not do
        return cuts + last if 4 * width < 2 * n else last
    windows = [_Window(math.ceil(-math.log(share) / epsilon), share) for share in TAIL_SHARES]
    return [*(window for window in windows if 4 * (window.width or 0) < 3 * n), *last]


def _is_good_enough(problem: Problem, best: SearchResult) -> bool:
    """Return True if a gap is acceptable where the whole program would take many seconds."""
    return len(problem.query.inputs) > MANY_ANSWERS and best.is_within(ACCEPTABLE_GAP)


def _is_hopeless(best: SearchResult, share: float) -> bool:
    """Return True if a window whose tails have this share is sure to be too narrow.

    Gaps fall about as the shares do; the first window has the largest.
    """
    return best.gap * share / TAIL_SHARES[0] > 10 * SUFFICIENT_GAP


def _try_window(
    problem: Problem,
    window: _Window,
    scaling: bool,
    watch: Watch | None,
    attempts: list[Attempt],
) -> SearchResult | None:
    """Solve with one window, adding rows that turn out broken until none is."""
    broken: tuple[Block, ...] = ()
    best: SearchResult | None = None
    for margin in ROW_MARGINS:
        start = time.perf_counter()
        result, newly_broken, outcome = _solve_once(
            problem, window, broken, margin=margin, scaling=scaling, watch=watch
        )
        gap = None
        if result is not None:
            bound = result.bound if best is None else max(best.bound, result.bound)
            best = replace(result, bound=bound)
            gap = best.gap if math.isfinite(best.gap) else None
            outcome = _describe(best, newly_broken)
        seconds = time.perf_counter() - start
        attempts.append(Attempt(window.width, margin, scaling, gap, seconds, outcome))
        if result is None or result.feasible:
            return best
        broken = (*broken, *(block for block in newly_broken if not block.rows.equal))
    return best


def _solve_once(
    problem: Problem,
    window: _Window,
    broken: tuple[Block, ...],
    *,
    margin: float,
    scaling: bool,
    watch: Watch | None,
) -> tuple[SearchResult | None, list[Block], str]:
    """Solve, bound and polish one program: the result, broken rows, or why there is none."""
    assembly = assemble(
        problem, window.width, broken, cut=window.cut, margin=margin, scaled=scaling
    )
    solution = _solve_program(assembly, window, scaling, watch)
    if solution.status in ("infeasible", "unbounded"):
        return None, [], f"the solver calls the program {solution.status}"
    inverted = assembly.invert(solution)
    if not _is_nearly_stochastic(inverted.matrix):
        return None, [], "the solver returned no stochastic matrix"
    matrix = polish(problem, inverted.matrix)
    newly_broken = find_broken_rows(problem, matrix)
    bound = bound_objective(assembly, inverted.multipliers)
    result = SearchResult(
        matrix,
        problem.objective(matrix),
        max(bound, _bound_by_theorem(assembly, inverted.multipliers)),
        f"{solution.solver} {solution.version}",
        solution.iterations,
        window.width,
        not newly_broken and meets_marginals(problem, matrix),
        is_tight(problem, matrix),
    )
    return result, newly_broken, ""


def _solve_program(
    assembly: Assembly, window: _Window, scaling: bool, watch: Watch | None
) -> Solution:
    """Solve with the solver that is best for the program; unscaled costs are a second opinion."""
    problem, program = assembly.problem, assembly.program
    if scaling and window.width is None and suits_path_solver(problem):
        solution = solve_path(assembly, PATH_TOLERANCE, watch)
        if solution is not None and solution.status == "optimal":
            return solution
    if window.cut and program.size <= _count_few(problem):  # a vertex costs little there
        return solve(program, "highs", watch=watch)
    large = scaling and len(problem.query.inputs) > MANY_ANSWERS
    tolerance = COARSE_TOLERANCE if large else SOLVER_TOLERANCE
    return solve(program, tolerance=tolerance, watch=watch)


def _count_few(problem: Problem) -> int:
    """Return the largest number of variables that a program is solved at a vertex with."""
    return FEW_VARIABLES // 2 if problem.worst_case else FEW_VARIABLES


def _bound_by_theorem(assembly: Assembly, multipliers: Mapping[Hashable, Floats]) -> float:
    """Return the domination bound; for a worst case, under the hardest prior."""
    problem = assembly.problem
    if not problem.worst_case:
        return bound_by_domination(problem, problem.prior)
    weights = np.zeros(len(problem.query.inputs))
    weights[assembly.selection.worst_inputs] = np.maximum(multipliers[WORST_CASE], 0.0)
    if problem.is_mirrored:
        weights = weights + weights[::-1]
    total = math.fsum(weights)
    return round_down(bound_by_domination(problem, weights) / total) if total > 0 else -math.inf


def _is_nearly_stochastic(matrix: Floats) -> bool:
    """Return True if a matrix is finite and its rows sum to nearly one."""
    errors = np.abs(matrix.sum(axis=1) - 1)
    return bool(np.isfinite(matrix).all() and not (errors > MAX_ROW_SUM_ERROR).any())


def _describe(result: SearchResult, broken: list[Block]) -> str:
    """Describe the outcome of an attempt."""
    if broken:
        return "breaks " + ", ".join(dict.fromkeys(block.name for block in broken))
    if not result.feasible:
        return "misses an output distribution"
    if not result.tight:
        return "meets the demands, but not tightly enough for so small an objective"
    enough = "is sufficient" if result.gap <= SUFFICIENT_GAP else "could be smaller"
    return f"meets the demands, and the gap {enough}"


def _try_constant(problem: Problem, attempts: list[Attempt]) -> list[SearchResult]:
    """Try the best constant answer: at a tiny epsilon a solver does no better, or worse."""
    start = time.perf_counter()
    matrix = find_best_constant(problem)
    if matrix is None:
        return []
    result = _judge(problem, matrix, bound_by_constants(problem), "constant")
    return _record(problem, result, start, attempts)


def _try_closed_forms(problem: Problem, attempts: list[Attempt]) -> list[SearchResult]:
    """Polish the closed forms that are defined for the query; keep the ones that meet the demands.

    At a very large epsilon probabilities span more powers of ten than a solver resolves, and
    even randomized response may be better than what it returns. Their bound is the loss of
    always giving the best answer.
    """
    if problem.least_probability:
        return []
    easiest = problem.loss_table.min(axis=1)
    least = easiest[problem.possible].max() if problem.worst_case else problem.prior @ easiest
    results: list[SearchResult] = []
    for build in (geometric, fair, randomized_response, staircase):
        start = time.perf_counter()
        try:
            matrix = polish(problem, build(problem.query, problem.epsilon).matrix)
        except QueryError:  # not defined for this query
            continue
        result = _judge(problem, matrix, round_down(float(least)), build.__name__)
        results += _record(problem, result, start, attempts)
    return results


def _judge(problem: Problem, matrix: Floats, bound: float, method: str) -> SearchResult:
    """Return the result for a matrix that no program made."""
    feasible = not find_broken_rows(problem, matrix) and meets_marginals(problem, matrix)
    tight, objective = is_tight(problem, matrix), problem.objective(matrix)
    return SearchResult(matrix, objective, bound, "none", 0, None, feasible, tight, method)


def _record(
    problem: Problem, result: SearchResult, start: float, attempts: list[Attempt]
) -> list[SearchResult]:
    """Record a matrix that no program made as an attempt; keep it if it meets the demands."""
    outcome = _describe(result, find_broken_rows(problem, result.matrix))
    gap = result.gap if math.isfinite(result.gap) else None
    named = f"{_name_kind(result.method)}: {outcome}"
    attempts.append(Attempt(None, 0.0, False, gap, time.perf_counter() - start, named))
    return [result] if result.feasible else []


def _name_kind(method: str) -> str:
    """Name the kind of a closed form in an attempt's outcome."""
    return "constant answer" if method == "constant" else f"closed form {method}"


def _choose_better(first: SearchResult | None, second: SearchResult | None) -> SearchResult | None:
    """Return the lower feasible objective with the higher bound: both hold for the problem.

    A matrix that misses a demand, within its tolerance, by enough to matter is chosen only where
    there is no tight one.
    """
    if first is None or second is None:
        return second if first is None else first
    chosen = min(first, second, key=lambda it: (not it.feasible, not it.tight, it.objective))
    return replace(chosen, bound=max(first.bound, second.bound))
