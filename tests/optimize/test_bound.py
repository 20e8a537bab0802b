"""Lower bounds hold for poor multipliers and for windows, and are tight for good ones."""

import dataclasses
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.optimize import bound as bounds
from tallyveil.optimize.bound import bound_objective, bound_path
from tallyveil.optimize.problem import DesignOptions, pose
from tallyveil.optimize.program import WORST_CASE, assemble
from tallyveil.optimize.solver import solve
from tallyveil.properties import Rows

FIXED = [0.05, 0.1, 0.2, 0.3, 0.2, 0.1, 0.05]
CASES = {
    "plain": {}, "uneven": {"prior": [1, 2, 3, 4, 5, 6, 9]},
    "fair": {"properties": ["fair", "column_monotone"]},
    "honest": {"properties": ["row_honest", "column_honest"], "prior": [1, 2, 3, 4, 5, 6, 9]},
    "all": {"properties": ["fair", "row_monotone", "column_monotone", "symmetric"]},
    "floor": {"properties": ["weakly_honest"], "prior": [1, 2, 3, 4, 5, 6, 9]},
    "worst": {"worst_case": True, "side_information": range(2, 7)},
    "delta": {"delta": 0.02, "properties": ["weakly_honest"]}, "marginal": {"fixed_point": FIXED},
    "outputs": {"properties": ["output_private"], "zero_outputs": False},
    "complete": {"query": tv.Query.maximum(0, 6), "properties": ["column_monotone"]},
    "band": {"query": tv.Query.mean(3, 0, 2), "properties": ["row_monotone"]},
}  # fmt: skip


def posed(name):
    options = dict(CASES[name])
    query = options.pop("query", tv.Query.count(6))
    return pose(query, 0.4, DesignOptions(**options))


@pytest.mark.parametrize("name", CASES)
def test_spoilt_multipliers_never_exceed_the_optimum(name):
    problem = posed(name)
    assembly = assemble(problem)
    solution = solve(assembly.program, tolerance=1e-11)
    optimum = problem.objective(assembly.invert(solution).matrix)
    rng = np.random.default_rng(3)
    for size in (1e-6, 1e-3, 0.1, 10.0):
        for _ in range(20):
            spoilt = dataclasses.replace(
                solution,
                y_eq=solution.y_eq + size * rng.normal(size=len(solution.y_eq)),
                y_ub=np.abs(solution.y_ub + size * rng.normal(size=len(solution.y_ub))),
            )
            assert bound_objective(assembly, assembly.invert(spoilt).multipliers) <= optimum + 1e-8


@pytest.mark.parametrize("width", [1, 3, 8])
@pytest.mark.parametrize("name", ["none", "column_monotone", "fair", "row_honest"])
def test_a_window_raises_the_objective_but_not_the_bound(width, name):
    properties = [] if name == "none" else [name]
    options = DesignOptions(properties=properties, prior=np.arange(1, 32))
    problem = pose(tv.Query.count(30), 0.5, options)
    whole = assemble(problem)
    solved = solve(whole.program, tolerance=1e-11)
    optimum = problem.objective(whole.invert(solved).matrix)
    assembly = assemble(problem, width)
    solution = solve(assembly.program, tolerance=1e-11)
    if solution.status == "optimal":
        assert problem.objective(assembly.invert(solution).matrix) >= optimum - 1e-7
        assert bound_objective(assembly, assembly.invert(solution).multipliers) <= optimum + 1e-7


def test_bound_path_holds_for_any_potential():
    problem = posed("uneven")
    optimum = tv.design(tv.Query.count(6), 0.4, prior=[1, 2, 3, 4, 5, 6, 9]).objective
    rng = np.random.default_rng(0)
    for _ in range(200):
        assert bound_path(problem, rng.normal(size=7)) <= optimum


# -- the error analysis of the module -------------------------------------------------------------


def bound_exactly(assembly, multipliers):
    """The bound in rational arithmetic: no folding, tails, delta, fairness or minimum."""
    problem, selection = assembly.problem, assembly.selection
    n, m = problem.query.shape
    exact = np.vectorize(Fraction, otypes=[object])
    weight, constant, total = exact(problem.prior), Fraction(0), Fraction(1)
    if problem.worst_case:
        weight = np.full(n, Fraction(0))
        weight[selection.worst_inputs] = exact(multipliers[WORST_CASE])
        total = weight.sum()
    costs = weight[:, None] * exact(problem.loss_table)
    growth = Fraction(bounds._round_growth_up(problem))
    for block in selection.blocks:
        factor = Fraction(1) if block.rows.factor == 1.0 else growth
        for at, multiplier in enumerate(exact(multipliers[block])):
            costs[block.rows.larger[0][at], block.rows.larger[1][at]] -= factor * multiplier
            if block.rows.smaller is not None:
                costs[block.rows.smaller[0][at], block.rows.smaller[1][at]] += multiplier
            constant += Fraction(block.rows.floor) * multiplier
    for marginal, outputs in selection.marginals:
        price = np.full(m, Fraction(0))
        price[outputs] = exact(multipliers[marginal])
        costs = costs + exact(marginal.source)[:, None] * price
        constant -= (price * exact(marginal.target)).sum()
    return (constant + sum(min(row) for row in costs.tolist())) / total


def test_reduced_costs_are_rounded_down_where_large_terms_cancel():
    rng = np.random.default_rng(2)
    start = rng.normal(size=(4, 3))
    costs, exact = bounds._ReducedCosts(start), np.vectorize(Fraction, otypes=[object])(start)
    for _ in range(30):
        larger, smaller = ((rng.integers(0, 4, 9), rng.integers(0, 3, 9)) for _ in range(2))
        multiplier = rng.normal(size=9) * 10.0 ** rng.integers(0, 8, 9)
        for sign in (1, -1):  # nearly cancels: the factors differ in the last digits
            factor = 1.7 * (1 + sign * 1e-15)
            costs.subtract_rows(Rows(larger, smaller), sign * multiplier, factor)
            for at, one in enumerate(multiplier.tolist()):
                exact[larger[0][at], larger[1][at]] -= sign * Fraction(factor) * Fraction(one)
                exact[smaller[0][at], smaller[1][at]] += sign * Fraction(one)
    assert (costs.value > exact).any()  # rounding alone would not do
    assert (costs.lower_limits() <= exact).all()
    assert (exact - costs.lower_limits() <= 1e-3).all()


@pytest.mark.parametrize("size", [0.0, 1e-3, 1e6])
@pytest.mark.parametrize("name", ["uneven", "honest", "worst", "marginal", "floor"])
def test_rounding_never_lifts_the_bound(name, size):
    """The computed bound is below the exact one for the same multipliers, and close to it."""
    problem = posed(name)
    assembly = assemble(problem, fold_if_mirrored=False)
    solution = solve(assembly.program, tolerance=1e-11)
    rng = np.random.default_rng(5)
    for _ in range(5):
        spoilt = dataclasses.replace(
            solution,
            y_eq=solution.y_eq + size * rng.normal(size=len(solution.y_eq)),
            y_ub=np.abs(solution.y_ub + size * rng.normal(size=len(solution.y_ub))),
        )
        multipliers = assembly.invert(spoilt).multipliers
        computed = Fraction(bound_objective(assembly, multipliers))
        exact = bound_exactly(assembly, multipliers)
        assert computed <= exact
        assert exact - computed <= 1e-10 * max(1, size)


@pytest.mark.parametrize("epsilon", ["1e-9", "0.1", "1/3", "1", "7.7", "40", "700"])
def test_the_growth_is_rounded_up(epsilon):
    problem = pose(tv.Query.count(2), epsilon)
    growth = bounds._round_growth_up(problem)
    with localcontext() as context:
        context.prec = 60
        exact = (Decimal(problem.epsilon.numerator) / problem.epsilon.denominator).exp()
        assert Decimal(growth) >= exact
        assert Decimal(growth) <= exact * (1 + Decimal("1e-12"))
