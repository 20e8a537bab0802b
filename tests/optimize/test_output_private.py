"""Output privacy on a path: small programs without tails, filled in afterwards, and the bound."""

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.optimize.problem import DesignOptions, pose
from tallyveil.optimize.search import _choose_windows, solve_problem

SIZE = 61
PRIORS = {
    "even": np.ones(SIZE),
    "falling": 0.9 ** np.arange(SIZE),
    "bump": np.exp(-(((np.arange(SIZE) - 20) / 4.0) ** 2)),
}


def problem_of(prior, epsilon):
    options = DesignOptions(prior=PRIORS[prior] / PRIORS[prior].sum(), properties="output_private")
    return pose(tv.Query.count(SIZE - 1), epsilon, options)


@pytest.mark.parametrize(("prior", "epsilon"), [("even", "1"), ("falling", "2"), ("bump", "5")])
def test_windows_find_what_the_whole_program_finds(prior, epsilon, monkeypatch):
    problem = problem_of(prior, epsilon)
    assert [window.cut for window in _choose_windows(problem)] == [True, False, False]
    found = solve_problem(problem)
    assert found.is_within(1e-6)
    monkeypatch.setattr("tallyveil.optimize.search._choose_windows", lambda _: [_choose(None)])
    whole = solve_problem(problem)
    assert found.objective == pytest.approx(whole.objective, rel=3e-6)
    assert found.bound <= whole.objective * (1 + 1e-9)
    made = tv.Mechanism(found.matrix, problem.query, problem.epsilon)
    assert made.has("output_private")
    assert made.realised_epsilon() <= float(problem.epsilon) * (1 + 1e-9)


def _choose(width):
    from tallyveil.optimize.search import _Window

    return _Window(width)
