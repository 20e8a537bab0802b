"""Reductions: forms keep their values, and solutions, primal and dual, come back optimal."""

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.optimize import program as matrices
from tallyveil.optimize.problem import (
    DesignOptions,
    list_privacy_rows,
    list_property_rows,
    pose,
)
from tallyveil.optimize.program import (
    WORST_CASE,
    ColumnSums,
    RowSums,
    assemble,
)
from tallyveil.optimize.solver import solve
from tallyveil.properties import Rows

DISTRIBUTION = [0.05, 0.1, 0.1, 0.1, 0.2, 0.2, 0.1, 0.1, 0.05]
EVEN = [0.05, 0.1, 0.1, 0.15, 0.2, 0.15, 0.1, 0.1, 0.05]
# what uniform answers become under one mechanism that keeps DISTRIBUTION
REACHED = tv.transport(tv.Query.count(8), 0.4, DISTRIBUTION).matrix.mean(axis=0)


def problem(query=None, **options):
    return pose(query or tv.Query.count(8), 0.7, DesignOptions(**options))


SUBSTITUTIONS = {
    "identity": lambda p: matrices.identity(p.query.shape),
    "mirror": lambda p: matrices.mirror(matrices.identity(p.query.shape)),
    "diagonal": lambda p: matrices.share_diagonal(SUBSTITUTIONS["mirror"](p), p.query.home),
    "tails": lambda p: matrices.geometric_tails(p, 2),
    "tails and mirror": lambda p: matrices.mirror(matrices.geometric_tails(p, 2)),
    "erase": lambda p: matrices.erase(matrices.geometric_tails(p, 3), np.arange(9) % 4 == 0),
}


def evaluate(form, matrix):
    """A form from its definition, one value per row."""
    if isinstance(form, RowSums):
        return (form.weights * matrix).sum(axis=1)[form.chosen]
    if isinstance(form, ColumnSums):
        return (form.source @ matrix)[form.chosen]
    smaller = 0.0 if form.smaller is None else matrix[form.smaller]
    return form.factor * matrix[form.larger] - smaller


# -- the layout of vectors ------------------------------------------------------------------------


# -- substitutions --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SUBSTITUTIONS)
def test_forms_keep_their_values(name):
    given = problem(properties=["column_monotone", "row_honest", "weakly_honest"])
    substitution = SUBSTITUTIONS[name](given)
    rng = np.random.default_rng(1)
    values = rng.random(substitution.size)
    matrix = substitution.expand(values)
    weights = rng.random(matrix.shape)
    assert substitution.apply_total(weights) @ values == pytest.approx((weights * matrix).sum())
    chosen = np.array([0, 3, 8])
    forms = [RowSums(chosen, weights), ColumnSums(rng.dirichlet(np.ones(9)), chosen)]
    forms += [block.rows for block in (*list_privacy_rows(given), *list_property_rows(given))]
    for form in forms:
        assert np.allclose(substitution.apply_form(form) @ values, evaluate(form, matrix))


# -- there and back -------------------------------------------------------------------------------

PROBLEMS = {
    "plain": {},
    "uneven prior": {"prior": np.arange(1, 10)},
    "monotone": {"properties": ["column_monotone"], "prior": np.arange(1, 10)},
    "floors": {"properties": ["weakly_honest"]},
    "worst case": {"worst_case": True, "side_information": range(2, 9)},
    "slack": {"delta": 0.02, "prior": np.arange(1, 10)},
    "marginal": {"fixed_point": DISTRIBUTION},
    "even marginal": {"fixed_point": EVEN},
    "two marginals": {"prior": [1] * 9, "fixed_point": DISTRIBUTION, "target": REACHED},
    "no zeros": {"zero_outputs": False},
    "complete": {"query": tv.Query.maximum(0, 8), "prior": np.arange(1, 10)},
    "symmetric": {"properties": ["symmetric"], "prior": np.arange(1, 10)},
}


def random_problem(seed):
    """A small problem with a random prior, loss table and property."""
    rng = np.random.default_rng(seed)
    query = [tv.Query.count(5), tv.Query.maximum(0, 4), tv.Query.mean(3, 0, 2)][seed % 3]
    names = [(), ("column_monotone",), ("weakly_honest",), ("row_honest",)][seed % 4]
    n, m = query.shape
    options = DesignOptions(
        loss=rng.random((n, m)), prior=rng.dirichlet(np.ones(n)), properties=names
    )
    return pose(query, float(rng.choice([0.3, 1.0])), options)


def measure_reduced_costs(assembly, multipliers):
    """weights - sum l A + sum y E for each entry of the matrix, from the definitions."""
    problem, written = assembly.problem, assembly.stages[0]
    costs = np.zeros(problem.query.shape) if written.weights is None else written.weights.copy()
    groups = [(written.equations, 1.0), (written.inequalities, -1.0)]
    for key, group, sign in ((k, g, s) for part, s in groups for k, g in part.items()):
        multiplier = sign * multipliers[key]
        if isinstance(group.form, RowSums):
            chosen = group.form.chosen
            costs[chosen] += multiplier[:, None] * group.form.weights[chosen]
        elif isinstance(group.form, ColumnSums):
            costs[:, group.form.chosen] += group.form.source[:, None] * multiplier
        elif isinstance(group.form, Rows):
            np.add.at(costs, group.form.larger, group.form.factor * multiplier)
            if group.form.smaller is not None:
                np.subtract.at(costs, group.form.smaller, multiplier)
    return costs


def check_optimality(assembly):
    """Feasibility, signs, complementarity and stationarity of the inverted solution."""
    solution = solve(assembly.program, tolerance=1e-11)
    assert solution.status == "optimal"
    found = assembly.invert(solution)
    matrix, multipliers = found.matrix, found.multipliers
    written = assembly.stages[0]
    scale = max(1.0, np.abs(assembly.problem.loss_table).max())
    assert np.allclose(matrix.sum(axis=1), 1, atol=1e-8)
    assert matrix.min() > -1e-8
    for key, group in written.inequalities.items():
        assert multipliers[key].min(initial=0.0) >= 0
        if not group.others:
            slack = evaluate(group.form, matrix) - group.bound
            assert slack.min(initial=0.0) > -1e-8
            assert np.abs(multipliers[key] * slack).max(initial=0.0) < 1e-7 * scale
    reduced = measure_reduced_costs(assembly, multipliers)
    if assembly.selection.folded:
        reduced = (reduced + reduced[::-1, ::-1]) / 2
    assert reduced.min() > -1e-7 * scale
    assert np.abs(reduced * matrix).max() < 1e-7 * scale
    if written.free:
        assert np.abs(reduced).max() < 1e-7 * scale


@pytest.mark.parametrize("fold", [True, False])
@pytest.mark.parametrize("name", PROBLEMS)
def test_inverted_solutions_are_optimal(name, fold):
    check_optimality(assemble(problem(**PROBLEMS[name]), fold_if_mirrored=fold))


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_inverted_solutions_of_random_problems_are_optimal(seed, scaled):
    check_optimality(assemble(random_problem(seed), scaled=scaled))


def test_worst_case_multipliers_are_a_distribution():
    """Stationarity in the largest loss itself: the least favourable prior sums to one."""
    assembly = assemble(problem(worst_case=True, side_information=range(2, 9)))
    multipliers = assembly.invert(solve(assembly.program, tolerance=1e-11)).multipliers
    assert multipliers[WORST_CASE].sum() == pytest.approx(1, abs=1e-8)


# -- folding --------------------------------------------------------------------------------------


def test_a_folded_program_has_half_the_variables_and_the_same_optimum():
    both = [assemble(problem(), fold_if_mirrored=fold) for fold in (True, False)]
    assert both[0].program.size == (both[1].program.size + 1) // 2
    values = [solve(one.program, tolerance=1e-10).objective for one in both]
    assert values[0] == pytest.approx(values[1], rel=1e-8)


def test_uneven_problems_are_not_folded():
    """Cormode, Kulkarni and Srivastava (2018), Theorem 1, needs a symmetric prior (errata 10)."""
    assert problem().is_mirrored
    assert not problem(prior=np.arange(1, 10)).is_mirrored
    assert not problem(loss=np.triu(np.ones((9, 9)), 1)).is_mirrored
    assert not problem(worst_case=True, side_information=range(3)).is_mirrored
    prior = np.array([0.7, 0.1, 0.1, 0.1])  # symmetry costs here
    query = tv.Query.count(3)
    free = tv.design(query, -np.log(0.6), "zero_one", prior=prior)
    even = tv.design(query, -np.log(0.6), "zero_one", prior=prior, properties=["symmetric"])
    assert free.objective < even.objective - 0.05
