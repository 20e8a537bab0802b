"""Which constraints clash: a proof that they do, then the fewest that still do.

Rows of probabilities, privacy and every property can always be met together (by the uniform
mechanism), so only output laws can be out of reach. Let them be missed: the least total miss,
bounded from below like any objective, is positive exactly when the demands conflict. Dropping
demands one by one while that stays so leaves an irreducible set.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy import sparse

from tallyveil.errors import InfeasibleError
from tallyveil.optimize.problem import Problem
from tallyveil.optimize.program import assemble
from tallyveil.optimize.solver import Program, Watch, lower_bound, solve

__all__ = ["explain", "least_miss"]

REACHED = 1e-7
"""A least total miss proved to be above this is a conflict."""


def explain(problem: Problem, watch: Watch | None = None) -> None:
    """Raise `InfeasibleError` with an irreducible conflict, or return if there is none."""
    miss = least_miss(problem, watch)
    if miss <= REACHED:
        return
    demands = _demands(problem)
    for name in list(demands):
        fewer = [other for other in demands if other != name]
        if least_miss(_with_only(problem, fewer), watch) > REACHED:
            demands = fewer
    listed = ", ".join(demands)
    raise InfeasibleError(
        f"No mechanism at epsilon = {float(problem.epsilon):g} meets all of: {listed}. "
        f"The output laws are missed by at least {miss:.3g} in total. Leave any one of these "
        "out and the others can be met.",
        tuple(demands),
    )


def _demands(problem: Problem) -> list[str]:
    least = ["zero_outputs"] if problem.least > 0 else []
    return ["privacy", *problem.properties, *least, *(law.name for law in problem.laws)]


def _with_only(problem: Problem, names: list[str]) -> Problem:
    return replace(
        problem,
        private="privacy" in names,
        delta=problem.delta if "privacy" in names else Fraction(0),
        properties=tuple(name for name in problem.properties if name in names),
        laws=tuple(law for law in problem.laws if law.name in names),
        least=problem.least if "zero_outputs" in names else 0.0,
    )


def least_miss(problem: Problem, watch: Watch | None = None) -> float:
    """A lower bound on sum_j |(source M)_j - target_j| over all laws and private M."""
    if not problem.laws:
        return 0.0
    plain = replace(problem, laws=(), worst_case=False, table=np.zeros(problem.query.shape))
    assembly = assemble(plain, fold_if_even=False)
    base, substitution = assembly.program, assembly.substitution
    size = len(problem.query.outputs)  # the variables are probabilities times this
    columns = np.arange(size)
    forms = sparse.vstack([substitution.apply_column_sums(law.source, columns)
                           for law in problem.laws], format="csr")  # fmt: skip
    count = forms.shape[0]
    forms.resize((count, base.size))
    sides = sparse.hstack([sparse.eye_array(count), -sparse.eye_array(count)])
    equations = sparse.vstack(
        [sparse.hstack([base.A_eq, sparse.csr_array((base.A_eq.shape[0], 2 * count))]),
         sparse.hstack([forms, sides])]
    )  # fmt: skip
    rows = sparse.hstack([base.A_ub, sparse.csr_array((base.A_ub.shape[0], 2 * count))])
    program = Program(
        np.concatenate([np.zeros(base.size), np.ones(2 * count)]),
        equations,
        np.concatenate([base.b_eq, *(size * law.target for law in problem.laws)]),
        rows,
        base.b_ub,
        free=np.concatenate([~base.signed(), np.zeros(2 * count, dtype=bool)]),
    )
    solution = solve(program, watch=watch)
    return lower_bound(program, solution.y_eq, solution.y_ub, upper=float(size)) / size
