"""Closed forms are offered exactly where their own bound confirms them."""

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.loss import is_monge
from tallyveil.optimize.bound import measure_gap
from tallyveil.optimize.closed_forms import find_closed_form
from tallyveil.optimize.problem import DesignOptions, pose

N = np.arange(7)


@pytest.mark.parametrize(
    ("costs", "wanted"),
    [
        (np.abs(N[:, None] - N), True),
        ((N[:, None] - N) ** 2, True),
        (np.abs(N[:, None] - N) ** 0.5, False),
        ((N[:, None] != N).astype(float), False),
        (np.outer(N, N[::-1]), True),
        (np.outer(N, N), False),
        (np.zeros((3, 3)), True),
    ],
)
def test_monge_costs(costs, wanted):
    assert is_monge(costs) is wanted


@pytest.mark.parametrize("options", [{}, {"fixed_point": [1 / 7] * 7}, {"loss": "zero_one"}])
def test_closed_forms_come_with_a_tight_bound(options):
    problem = pose(tv.Query.count(6), 0.5, DesignOptions(**options))
    found = find_closed_form(problem)
    objective = problem.objective(found.mechanism.matrix)
    assert found.bound <= objective
    assert measure_gap(objective, found.bound) < 1e-12


@pytest.mark.parametrize(
    ("query", "options"),
    [
        (tv.Query.maximum(0, 6), {}),
        (tv.Query.count(6), {"worst_case": True}),
        (tv.Query.maximum(0, 6), {"delta": 0.1}),
        (tv.Query.count(6), {"delta": 0.1, "properties": ["fair"]}),
        (tv.Query.count(6), {"zero_outputs": False}),
        (tv.Query.count(6), {"properties": ["fair"]}),
        (tv.Query.count(6), {"loss": np.random.default_rng(0).random((7, 7))}),
    ],
)
def test_other_cases_have_none(query, options):
    assert find_closed_form(pose(query, 0.5, DesignOptions(**options))) is None
