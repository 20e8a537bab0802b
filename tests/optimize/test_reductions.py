"""Substitutions: what goes in comes back out, and rows mean the same on both sides."""

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.optimize import reductions as fold
from tallyveil.optimize.constraints import privacy_rows, property_rows
from tallyveil.optimize.problem import pose
from tallyveil.optimize.program import assemble


def problem(**options):
    return pose(tv.Query.count(8), 0.7, **options)


SUBSTITUTIONS = {
    "nothing": lambda p: fold.nothing(p.query.shape),
    "mirror": lambda p: fold.mirror(fold.nothing(p.query.shape)),
    "fair": lambda p: fold.fair(fold.mirror(fold.nothing(p.query.shape)), p.query.home),
    "tails": lambda p: fold.tails(p, 2),
    "tails and mirror": lambda p: fold.mirror(fold.tails(p, 2)),
    "erase": lambda p: fold.erase(fold.tails(p, 3), np.arange(9) % 4 == 0),
}


@pytest.mark.parametrize("name", SUBSTITUTIONS)
def test_forms_and_rows_keep_their_values(name):
    given = problem(properties=["column_monotone", "row_honest", "weakly_honest"])
    substitution = SUBSTITUTIONS[name](given)
    rng = np.random.default_rng(1)
    values = rng.random(substitution.size)
    matrix = substitution.invert(values)
    weights = rng.random(matrix.shape)
    assert substitution.apply_form(weights) @ values == pytest.approx((weights * matrix).sum())
    everything = np.arange(9)
    sums = substitution.apply_row_sums(everything, weights) @ values
    assert np.allclose(sums, (weights * matrix).sum(axis=1))
    law = rng.dirichlet(np.ones(9))
    assert np.allclose(substitution.apply_column_sums(law, everything) @ values, law @ matrix)
    for block in (*privacy_rows(given), *property_rows(given)):
        slack = substitution.apply_rows(block.rows) @ values - block.rows.floor
        assert np.allclose(slack, block.rows.slack(matrix))


def test_every_variable_is_used():
    for build in SUBSTITUTIONS.values():
        substitution = build(problem())
        used = np.unique(substitution.variable[substitution.scale > 0])
        assert np.array_equal(used, np.arange(substitution.size))


def test_mirror_makes_symmetric_matrices():
    substitution = SUBSTITUTIONS["mirror"](problem())
    matrix = substitution.invert(np.random.default_rng(0).random(substitution.size))
    assert np.array_equal(matrix, matrix[::-1, ::-1])
    assert substitution.size == (81 + 1) // 2


def test_fair_shares_one_variable():
    substitution = SUBSTITUTIONS["fair"](problem())
    matrix = substitution.invert(np.random.default_rng(0).random(substitution.size))
    assert len(set(np.diag(matrix))) == 1


def test_tails_fall_by_exactly_epsilon():
    matrix = fold.tails(problem(), 2).invert(np.ones(fold.tails(problem(), 2).size))
    assert matrix[5, 0] == pytest.approx(np.exp(-0.7 * 3))
    assert matrix[2, 0] == 1.0


def test_a_folded_program_has_half_the_variables_and_the_same_optimum():
    both = [assemble(problem(), fold_if_even=fold_it) for fold_it in (True, False)]
    assert both[0].program.size == (both[1].program.size + 1) // 2
    from tallyveil.optimize.solver import solve

    values = [solve(one.program, tolerance=1e-10).objective for one in both]
    assert values[0] == pytest.approx(values[1], rel=1e-8)


def test_uneven_problems_are_not_folded():
    """000, Theorem 1 needs a symmetric prior (errata 000.10)."""
    assert problem().is_mirrored
    assert not problem(prior=np.arange(1, 10)).is_mirrored
    assert not problem(loss=np.triu(np.ones((9, 9)), 1)).is_mirrored
    assert not problem(worst_case=True, side_information=range(3)).is_mirrored
    law = np.array([0.7, 0.1, 0.1, 0.1])  # errata 000.10: symmetry costs here
    query = tv.Query.count(3)
    free = tv.design(query, -np.log(0.6), "zero_one", prior=law)
    even = tv.design(query, -np.log(0.6), "zero_one", prior=law, properties=["symmetric"])
    assert free.objective < even.objective - 0.05
