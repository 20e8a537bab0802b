"""The interior-point method for counts: its Newton systems, its start, and what it finds."""

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.optimize import path_solver
from tallyveil.optimize.path_solver import is_path_problem
from tallyveil.optimize.problem import PATH_TOLERANCE, SUFFICIENT_GAP, DesignOptions, pose
from tallyveil.optimize.program import assemble
from tallyveil.optimize.search import _Window, solve_problem

SIZE = 15
AT = np.arange(SIZE)
PRIORS = {
    "even": np.ones(SIZE),
    "falling": 0.6**AT,
    "bump": np.exp(-(((AT - 4) / 1.5) ** 2)),
    "wild": 10.0 ** -(7 * AT % 11),
}
SETS = [
    ("weakly_honest",),
    ("column_honest",),
    ("column_monotone",),
    ("row_monotone", "column_monotone"),
    ("symmetric", "column_honest"),
    ("output_private",),
]


def problem_of(prior, properties, epsilon="0.5", **more):
    prior = PRIORS[prior] / PRIORS[prior].sum()
    options = DesignOptions(prior=prior, properties=properties, **more)
    return pose(tv.Query.count(SIZE - 1), epsilon, options)


@pytest.fixture
def for_small_programs(monkeypatch):
    monkeypatch.setattr(path_solver, "LEAST_SIZE", 1)
    monkeypatch.setattr("tallyveil.optimize.search._choose_windows", lambda _: [_Window(None)])


@pytest.mark.usefixtures("for_small_programs")
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("properties", SETS)
def test_it_finds_what_clarabel_finds(prior, properties, monkeypatch):
    problem = problem_of(prior, properties)
    found = solve_problem(problem)
    assert found.solver.startswith("tallyveil ")
    assert found.is_within(SUFFICIENT_GAP)
    monkeypatch.setattr("tallyveil.optimize.search.is_path_problem", lambda _: False)
    other = solve_problem(problem)
    assert other.solver.startswith("clarabel ")
    assert found.objective == pytest.approx(other.objective, rel=2 * SUFFICIENT_GAP)
    assert found.bound <= other.objective * (1 + 1e-9)
    assert other.bound <= found.objective * (1 + 1e-9)


@pytest.mark.usefixtures("for_small_programs")
@pytest.mark.parametrize(
    "asked",
    [
        {"properties": ("fair",)},
        {"properties": ("row_honest",)},
        {"properties": ("column_honest",), "worst_case": True, "prior": None},
        {"properties": (), "fixed_point": PRIORS["even"] / SIZE},
        {"properties": ("weakly_honest",), "delta": "0.01"},
    ],
)
def test_programs_that_couple_distant_rows_are_left_to_clarabel(asked):
    problem = pose(tv.Query.count(SIZE - 1), "0.5", DesignOptions(**asked))
    assert not is_path_problem(problem)


FALLING, BELL = 0.66 ** np.arange(41), np.exp(-(((np.arange(51) - 12) / 4.0) ** 2) / 2)


@pytest.mark.parametrize(
    ("weights", "epsilon", "property", "most"),
    [(FALLING, "0.4", "column_monotone", 30), (FALLING, "0.4", "column_honest", 30),
     (BELL, "1", "column_monotone", 30), (BELL, "1", "column_honest", 40)],
)  # fmt: skip
def test_inputs_that_hardly_matter_cost_no_steps(weights, epsilon, property, most):
    # 18 to 26 steps; targets that followed the prior took 31 to 51
    options = DesignOptions(prior=weights / weights.sum(), properties=(property,))
    problem = pose(tv.Query.count(len(weights) - 1), epsilon, options)
    found = path_solver.solve_path(assemble(problem), PATH_TOLERANCE)
    assert found.status == "optimal"
    assert found.iterations <= most


def test_a_wild_prior_with_a_hundred_answers():
    size = 103
    prior = np.exp(5 * np.random.default_rng(5).normal(size=size))
    options = {"prior": prior / prior.sum(), "properties": "column_honest"}
    made = tv.design(tv.Query.count(size - 1), "0.7", progress=False, **options)
    assert made.gap <= SUFFICIENT_GAP
    assert made.solver.startswith("tallyveil ")
    assert made.mechanism.has("column_honest")
    assert made.mechanism.realised_epsilon() <= 0.7 * (1 + 1e-9)
