"""Programs of counts: the interior-point method, and output privacy without tails."""

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.optimize import path_solver
from tallyveil.optimize.problem import SUFFICIENT_GAP, DesignOptions, pose
from tallyveil.optimize.search import _choose_windows, _Window, solve_problem

SIZE = 15
AT = np.arange(SIZE)
PRIORS = {
    "even": np.ones(SIZE), "falling": 0.6**AT, "bump": np.exp(-(((AT - 4) / 1.5) ** 2)),
    "wild": 10.0 ** -(7 * AT % 11),
}  # fmt: skip
SETS = [
    ("weakly_honest",), ("column_honest",), ("column_monotone",),
    ("row_monotone", "column_monotone"), ("symmetric", "column_honest"), ("output_private",),
]  # fmt: skip


def problem_of(weights, properties, epsilon="0.5"):
    options = DesignOptions(prior=weights / weights.sum(), properties=properties)
    return pose(tv.Query.count(len(weights) - 1), epsilon, options)


@pytest.fixture
def for_small_programs(monkeypatch):
    monkeypatch.setattr(path_solver, "LEAST_SIZE", 1)
    monkeypatch.setattr("tallyveil.optimize.search._choose_windows", lambda _: [_Window(None)])


@pytest.mark.usefixtures("for_small_programs")
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("properties", SETS)
def test_it_finds_what_clarabel_finds(prior, properties, monkeypatch):
    problem = problem_of(PRIORS[prior], properties)
    found = solve_problem(problem)
    assert found.solver.startswith("tallyveil ")
    assert found.is_within(SUFFICIENT_GAP)
    monkeypatch.setattr("tallyveil.optimize.search.suits_path_solver", lambda _: False)
    other = solve_problem(problem)
    assert other.solver.startswith("clarabel ")
    assert found.objective == pytest.approx(other.objective, rel=2 * SUFFICIENT_GAP)
    assert found.bound <= other.objective * (1 + 1e-9)
    assert other.bound <= found.objective * (1 + 1e-9)


def test_a_wild_prior_with_a_hundred_answers():
    size = 103
    prior = np.exp(5 * np.random.default_rng(5).normal(size=size))
    options = {"prior": prior / prior.sum(), "properties": "column_honest"}
    made = tv.design(tv.Query.count(size - 1), "0.7", progress=False, **options)
    assert made.gap <= SUFFICIENT_GAP
    assert made.solver.startswith("tallyveil ")
    assert made.mechanism.has("column_honest")
    assert made.mechanism.realised_epsilon() <= 0.7 * (1 + 1e-9)


FAR = np.arange(61)
WIDE = {"even": np.ones(61), "falling": 0.9**FAR, "bump": np.exp(-(((FAR - 20) / 4.0) ** 2))}


@pytest.mark.parametrize(("prior", "epsilon"), [("even", "1"), ("falling", "2"), ("bump", "5")])
def test_windows_find_what_the_whole_program_finds(prior, epsilon, monkeypatch):
    """Small programs without tails, filled in afterwards, and the bound."""
    problem = problem_of(WIDE[prior], "output_private", epsilon)
    assert [window.cut for window in _choose_windows(problem)] == [True, False, False]
    found = solve_problem(problem)
    assert found.is_within(1e-6)
    monkeypatch.setattr("tallyveil.optimize.search._choose_windows", lambda _: [_Window(None)])
    whole = solve_problem(problem)
    assert found.objective == pytest.approx(whole.objective, rel=3e-6)
    assert found.bound <= whole.objective * (1 + 1e-9)
    made = tv.Mechanism(found.matrix, problem.query, problem.epsilon)
    assert made.has("output_private")
    assert made.realised_epsilon() <= float(problem.epsilon) * (1 + 1e-9)
