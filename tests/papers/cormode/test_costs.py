"""Closed forms of what WM costs, against the programs."""

import math

import pytest

import tallyveil as tv
from tallyveil.errors import ArgumentError

GRID = [(n, a) for n in (1, 2, 3, 4, 7, 12) for a in (0.3, 0.5, 0.55, 2 / 3, 0.8, 0.9, 0.99)]


def solve(n, alpha, properties):
    found = tv.design(tv.Query.count(n), -math.log(alpha), "zero_one", properties=properties)
    return (n + 1) / n * found.objective


@pytest.mark.parametrize(("n", "alpha"), GRID)
def test_weak_honesty_costs_what_the_program_says(n, alpha):
    wanted = solve(n, alpha, ["weakly_honest"])
    assert tv.papers.compute_wm_cost(n, alpha) == pytest.approx(wanted, abs=1e-7)


@pytest.mark.parametrize(("n", "alpha"), [(n, a) for n, a in GRID if a <= 2 / 3 or n <= 2])
def test_column_monotonicity_costs_what_the_program_says(n, alpha):
    cost = tv.papers.compute_wm_cost(n, alpha, "monotone")
    for names in (["column_honest"], ["column_monotone"], ["weakly_honest", "column_monotone"]):
        assert cost == pytest.approx(solve(n, alpha, names), abs=1e-7)


def test_the_geometric_mechanism_costs_least():
    assert tv.papers.compute_gm_cost(0.9) == pytest.approx(solve(6, 0.9, []), abs=1e-9)
    assert tv.papers.compute_gm_cost(0.9) < tv.papers.compute_wm_cost(6, 0.9)


def test_where_no_closed_form_is_known_none_is_given():
    with pytest.raises(ArgumentError, match=r"2/3.*tallyveil\.papers\.wm"):
        tv.papers.compute_wm_cost(5, 0.9, "monotone")
    for wrong in ({"n": 0}, {"n": 2.5}, {"alpha": 1.0}, {"reading": "strong"}):
        with pytest.raises(ArgumentError):
            tv.papers.compute_wm_cost(**({"n": 5, "alpha": 0.6} | wrong))
