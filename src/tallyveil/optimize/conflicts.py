"""Find which demands conflict: prove that they do, then drop all that need not be there.

Row sums, privacy and every property can always be met together (by the uniform mechanism), so
only output distributions can be out of reach. Allow them to be missed: the least total miss,
bounded from below like any objective, is positive exactly when the demands conflict. Dropping
demands one by one while that stays so leaves an irreducible set.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy import sparse

from tallyveil.errors import InfeasibleError
from tallyveil.optimize.matrix_program import ColumnSums, Constraint, OtherVariables
from tallyveil.optimize.problem import Problem
from tallyveil.optimize.program import choose_substitution, select, write_program
from tallyveil.optimize.reductions import MatrixScaling
from tallyveil.optimize.solver import Watch, lower_bound, solve
from tallyveil.optimize.tolerances import CONFLICT_MISS

__all__ = ["bound_miss", "raise_conflict"]

SHORT, EXCESS = "short", "excess"
"""Names of the variables by which outputs miss their demanded probability."""


def raise_conflict(problem: Problem, watch: Watch | None = None) -> None:
    """Raise `InfeasibleError` with an irreducible conflict; return if none is proved."""
    miss = bound_miss(problem, watch)
    if miss <= CONFLICT_MISS:
        return
    least = ["zero_outputs"] if problem.least_probability > 0 else []
    marginals = [one.name for one in problem.marginals]
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
    private = "privacy" in names
    return replace(
        problem,
        private=private,
        delta=problem.delta if private else Fraction(0),
        properties=tuple(name for name in problem.properties if name in names),
        marginals=tuple(one for one in problem.marginals if one.name in names),
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
        own = sparse.eye_array(m, count, k=m * number, format="csr")
        form = ColumnSums(marginal.source, np.arange(m))
        equations[marginal] = Constraint(form, marginal.target, {SHORT: own, EXCESS: -own})
    miss = {name: OtherVariables(count, cost=1.0) for name in (SHORT, EXCESS)}
    measured = replace(written, equations=equations, others={**written.others, **miss})
    scaled = MatrixScaling(m).apply(measured)
    program = choose_substitution(relaxed, selection).apply(scaled)
    solution = solve(program, watch=watch)
    return lower_bound(program, solution.y_eq, solution.y_ub, upper=float(m)) / m
