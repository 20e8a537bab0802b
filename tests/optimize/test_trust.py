"""Attacks on what a design says: concentrated priors, tiny and huge epsilons, other units."""

import math
from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.mechanisms.geometric import exact_geometric
from tallyveil.optimize.closed_forms import find_closed_form
from tallyveil.optimize.problem import DesignOptions, pose

COUNT = tv.Query.count


def concentrated_priors(n):
    k = np.arange(n)
    ends = np.zeros(n)
    ends[[0, -1]] = 0.5
    return {
        "ends": ends, "halving": 0.5**k, "bump": np.exp(-(((k - n // 3) / 2.0) ** 2)),
        "spike": np.where(k == n // 2, 1.0, 1e-12), "wild": 10.0 ** -(7 * k % 29),
    }  # fmt: skip


def loss_in_fractions(n, ratio, prior, loss):
    """The optimum sum_r min_j (G' diag(prior) loss)[r, j] of domination, exactly."""
    weights = [Fraction(float(p)) for p in prior]
    total = Fraction(0)
    for drawn in exact_geometric(n, ratio).T:
        total += min(
            sum(w * g * loss(i, j) for i, (w, g) in enumerate(zip(weights, drawn, strict=True)))
            for j in range(n)
        )
    return total


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1, 5, 20])
@pytest.mark.parametrize("loss", ["absolute", "squared", "zero_one", ("beyond", 2)])
@pytest.mark.parametrize("name", ["ends", "halving", "bump", "spike", "wild"])
def test_concentrated_priors_get_the_closed_form(name, loss, epsilon):
    found = tv.design(COUNT(40), epsilon, loss, prior=concentrated_priors(41)[name])
    assert found.method in ("geometric", "geometric+remap")
    assert found.gap < 1e-11
    assert "No closed form" not in found.reason


@pytest.mark.parametrize("ratio", [Fraction(3, 4), Fraction(1, 100), Fraction(1, 2**40)])
@pytest.mark.parametrize("name", ["ends", "halving", "spike"])
def test_the_objective_is_the_exact_optimum(name, ratio):
    """In fractions, at epsilons where the optimum is up to 1e-25 of the costs."""
    prior = concentrated_priors(9)[name]
    prior = prior / prior.sum()
    epsilon = repr(-math.log(ratio))
    found = tv.design(COUNT(8), epsilon, "squared", prior=prior)
    exact = float(loss_in_fractions(9, ratio, prior, lambda i, j: (i - j) ** 2))
    assert found.objective == pytest.approx(exact, rel=1e-12)
    assert exact * (1 - 1e-11) <= found.lower_bound <= exact * (1 + 1e-12)


@pytest.mark.parametrize("case", range(30))
def test_unimodal_losses_on_other_outputs_have_the_closed_form(case):
    """Domination needs no square table: best outputs need only be in order."""
    rng = np.random.default_rng(case)
    n, m = int(rng.integers(2, 8)), int(rng.integers(2, 8))
    best = np.sort(rng.integers(0, m, size=n))
    table = np.zeros((n, m))
    for i, at in enumerate(best):
        table[i, at + 1 :] = np.cumsum(rng.exponential(size=m - 1 - at))
        table[i, :at] = np.cumsum(rng.exponential(size=at))[::-1]
    query = tv.Query.custom(np.arange(n), np.arange(m), "path")
    prior = rng.dirichlet(np.full(n, 0.5))
    epsilon = float(rng.choice([0.1, 1.0, 2.5]))
    problem = pose(query, epsilon, DesignOptions(loss=table, prior=prior))
    closed = find_closed_form(problem)
    program = tv.design(query, epsilon, table, prior=prior, method="lp")
    assert closed.proved
    assert problem.objective(closed.mechanism.matrix) <= program.objective * (1 + 1e-9)
    assert closed.bound >= program.lower_bound * (1 - 1e-9)


def best_constant_cost(query, loss, worst_case):
    """The least cost of one distribution of outputs for every truth, by SciPy alone."""
    from scipy.optimize import linprog

    error = np.abs(query.inputs[:, None].astype(float) - query.outputs[None, :])
    table = {"absolute": error, "squared": error**2, "zero_one": error > 0}[loss].astype(float)
    n, m = table.shape
    if not worst_case:
        return float(table.mean(axis=0).min())
    found = linprog(
        np.append(np.zeros(m), 1.0), A_ub=np.hstack([table, -np.ones((n, 1))]), b_ub=np.zeros(n),
        A_eq=[np.append(np.ones(m), 0.0)], b_eq=[1.0], bounds=[(0, None)] * m + [(None, None)],
        method="highs",
    )  # fmt: skip
    return float(found.fun)


RING = tv.Query.custom(range(5), range(5), [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)])
QUERIES = [COUNT(2), COUNT(7), tv.Query.maximum(0, 4), RING]


@pytest.mark.parametrize("query", QUERIES, ids=repr)
@pytest.mark.parametrize("loss", ["absolute", "squared", "zero_one"])
@pytest.mark.parametrize("worst_case", [False, True])
@pytest.mark.parametrize("epsilon", ["1e-3", "1e-5", "1e-6", "1e-7", "1e-9", "1e-12"])
def test_nothing_is_worse_than_the_best_constant_answer(query, loss, worst_case, epsilon):
    found = tv.design(query, epsilon, loss, worst_case=worst_case)
    constant = best_constant_cost(query, loss, worst_case)
    assert found.objective <= constant * (1 + 1e-7)
    assert found.lower_bound <= found.objective
    # e^(-epsilon D) of the best constant is a bound for everything
    assert found.gap <= 1e-6 + float(epsilon) * len(query.inputs)


@pytest.mark.parametrize(
    "properties", [["fair"], ["column_honest"], ["weakly_honest", "symmetric"], ["output_private"]]
)
@pytest.mark.parametrize("epsilon", ["1e-6", "1e-10"])
def test_tiny_epsilons_with_properties(properties, epsilon):
    found = tv.design(COUNT(6), epsilon, "squared", properties=properties)
    assert all(found.mechanism.has(name) for name in properties)
    assert found.gap < 1e-4


@pytest.mark.parametrize(
    "options", [{"properties": "fair"}, {"worst_case": True}, {"delta": "0.01"}]
)
@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1e-3, 1e6, 1e12, 2.0**-400])
def test_other_units_change_nothing(options, unit):
    table = np.abs(np.subtract.outer(np.arange(8.0), np.arange(8.0)))
    one = tv.design(COUNT(7), 1, table, **options)
    other = tv.design(COUNT(7), 1, table * unit, **options)
    assert other.objective == pytest.approx(one.objective * unit, rel=1e-6)
    assert other.gap < 1e-6
    assert other.gap == pytest.approx(
        (other.objective - other.lower_bound) / other.objective, abs=1e-15
    )


@pytest.mark.parametrize("epsilon", [10, 20, 30, 36])
def test_worst_cases_of_a_count_at_large_epsilons(epsilon):
    """Two answers: the exact optimum is 1/(1 + e^epsilon)."""
    found = tv.design(COUNT(1), epsilon, worst_case=True)
    exact = 1 / (1 + math.exp(epsilon))
    assert found.objective == pytest.approx(exact, rel=1e-6)
    assert found.lower_bound == pytest.approx(exact, rel=1e-6)
    assert found.gap < 1e-6


@pytest.mark.parametrize("epsilon", [12, 20, 25])
@pytest.mark.parametrize("method", ["auto", "lp"])
def test_a_missed_fixed_point_cannot_look_better_than_the_optimum(epsilon, method):
    z = np.array([0.1, 0.2, 0.3, 0.4])
    best = tv.transport(COUNT(3), epsilon, z).expected_loss("absolute", z)
    found = tv.design(COUNT(3), epsilon, fixed_point=z, method=method)
    assert found.objective >= best * (1 - 1e-4)
    np.testing.assert_allclose(z @ found.mechanism.matrix, z, atol=1e-15)


def test_objectives_known_in_closed_form():
    """Geometric noise is fair to 1e-13 at epsilon 30, and so would count as fair to 1e-9."""
    found = tv.design(COUNT(4), 30, "zero_one", properties="fair")
    assert found.objective == pytest.approx(2 * math.exp(-30), rel=1e-9)
    found = tv.design(COUNT(3), 1, np.zeros((4, 4)))
    assert (found.objective, found.gap) == (0.0, 0.0)
    z = np.array([0.1, 0.2, 0.3, 0.4])
    found = tv.design(COUNT(3), "1e-9", "zero_one", fixed_point=z)
    assert found.objective == pytest.approx(1 - (z * z).sum(), rel=1e-8)
    np.testing.assert_allclose(z @ found.mechanism.matrix, z, atol=1e-15)
