"""Lower bounds hold for poor multipliers and for windows, and are tight for good ones."""

import dataclasses

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.optimize.bound import bound_objective, bound_path
from tallyveil.optimize.options import DesignOptions
from tallyveil.optimize.problem import pose
from tallyveil.optimize.program import assemble
from tallyveil.optimize.solver import solve

FIXED = [0.05, 0.1, 0.2, 0.3, 0.2, 0.1, 0.05]
CASES = {
    "plain": {},
    "uneven": {"prior": [1, 2, 3, 4, 5, 6, 9]},
    "fair": {"properties": ["fair", "column_monotone"]},
    "honest": {"properties": ["row_honest", "column_honest"], "prior": [1, 2, 3, 4, 5, 6, 9]},
    "all": {"properties": ["fair", "row_monotone", "column_monotone", "symmetric"]},
    "worst": {"worst_case": True, "side_information": range(2, 7)},
    "delta": {"delta": 0.02, "properties": ["weakly_honest"]},
    "marginal": {"fixed_point": FIXED},
    "outputs": {"properties": ["output_private"], "zero_outputs": False},
    "complete": {"query": tv.Query.maximum(0, 6), "properties": ["column_monotone"]},
    "band": {"query": tv.Query.mean(3, 0, 2), "properties": ["row_monotone"]},
}


def posed(name):
    options = dict(CASES[name])
    query = options.pop("query", tv.Query.count(6))
    return pose(query, 0.4, DesignOptions(**options))


@pytest.mark.parametrize("name", CASES)
def test_solved_multipliers_are_tight(name):
    problem = posed(name)
    assembly = assemble(problem)
    solution = solve(assembly.program, tolerance=1e-11)
    value = problem.objective(assembly.invert(solution).matrix)
    bound = bound_objective(assembly, assembly.invert(solution).multipliers)
    assert value - 1e-7 * abs(value) < bound <= value + 1e-8


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


def test_bounds_are_below_every_private_mechanism():
    query = tv.Query.count(6)
    problem = posed("plain")
    assembly = assemble(problem)
    bound = bound_objective(assembly, assembly.invert(solve(assembly.program)).multipliers)
    for mechanism in (tv.geometric(query, 0.4), tv.fair(query, 0.4), tv.uniform(query, 0.4)):
        assert bound <= mechanism.expected_loss("absolute")


def test_bound_path_holds_for_any_potential():
    problem = posed("uneven")
    optimum = tv.design(tv.Query.count(6), 0.4, prior=[1, 2, 3, 4, 5, 6, 9]).objective
    rng = np.random.default_rng(0)
    for _ in range(200):
        assert bound_path(problem, rng.normal(size=7)) <= optimum
