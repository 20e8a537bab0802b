"""Algorithm 2 against the program, and the loss testers."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

import tallyveil as tv
from tallyveil.errors import ArgumentError
from tallyveil.loss import is_monge, loss_table
from tallyveil.papers.kohli.greedy import is_row_wise_concentrating, is_row_wise_convex

LN2 = "0.693147180559945309417232121458"


def best_unfixed(z, epsilon, cost):
    n = len(z)
    rows = sparse.kron(sparse.eye_array(n), np.ones((1, n)))
    grow = np.exp(epsilon)
    up = sparse.diags_array(
        [np.ones(n - 1), np.full(n - 1, -grow)], offsets=[0, 1], shape=(n - 1, n)
    )
    down = sparse.diags_array(
        [np.full(n - 1, -grow), np.ones(n - 1)], offsets=[0, 1], shape=(n - 1, n)
    )
    private = sparse.kron(sparse.vstack([up, down]), sparse.eye_array(n))
    solved = linprog(
        (z[:, None] * cost).ravel(),
        A_ub=private,
        b_ub=np.zeros(private.shape[0]),
        A_eq=rows,
        b_eq=np.ones(n),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10},
    )
    assert solved.status == 0
    return solved.fun


@pytest.mark.parametrize(
    ("z", "epsilon", "absolute", "squared"),
    [  # reference optima over U, section 5.3
        ([0.5, 0.25, 0.125, 0.0625, 0.0625], LN2, 0.6640624999999999, 1.0338541666666665),
        ([0.5, 0.0, 0.2, 0.0, 0.3], 0.1, 1.453173419061173, 3.0231002921211845),
        ([0.5, 0.0, 0.2, 0.0, 0.3], 1.5, 0.22559972843366735, 0.41312580877198435),
        (
            np.array([1, 9, 36, 84, 126, 126, 84, 36, 9, 1]) / 512,
            LN2,
            0.86651611328125,
            1.40252685546875,
        ),
    ],
)
def test_reference_optima(z, epsilon, absolute, squared):
    first = tv.papers.unfixed_optimum(z, epsilon)
    assert first.expected_loss("absolute", z) == pytest.approx(absolute, abs=1e-12)
    second = tv.papers.unfixed_optimum(z, epsilon, loss="squared")
    assert second.expected_loss("squared", z) == pytest.approx(squared, abs=1e-12)


LOSSES = [
    "absolute",
    "squared",
    "zero_one",
    ("beyond", 2),
    ("power", 0.5),
    lambda true, released: np.where(released > true, 3 * (released - true), true - released),
]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(4))
def test_no_private_mechanism_is_cheaper(loss, seed):
    # Theorem 8, and beyond it every Monge loss
    rng = np.random.default_rng(seed)
    n, epsilon = int(rng.integers(2, 10)), float(rng.choice([0.2, 1.0, 2.0]))
    z = rng.dirichlet(np.full(n, 0.6))
    found = tv.papers.unfixed_optimum(z, epsilon, loss)
    cost = loss_table(found.query, loss)
    best = best_unfixed(z, epsilon, cost)
    assert found.expected_loss(loss, z) == pytest.approx(best, rel=1e-7, abs=1e-9)
    assert found.realised_epsilon() <= epsilon * (1 + 1e-9)


def test_walking_finds_what_searching_finds():
    rng = np.random.default_rng(1)
    for _ in range(10):
        z = rng.dirichlet(np.full(60, 0.2))
        found = tv.papers.unfixed_optimum(z, 0.4)
        drawn = tv.geometric(found.query, 0.4).matrix
        costs = drawn.T @ (z[:, None] * loss_table(found.query, "absolute"))
        assert found.expected_loss("absolute", z) == pytest.approx(costs.min(axis=1).sum())


def test_mass_far_from_every_draw_does_not_stop_the_walk():
    # with sums that underflow to 0 the first tie would hold every column at 0
    z = np.zeros(900)
    z[899] = 1.0
    found = tv.papers.unfixed_optimum(z, 2.0)
    assert found.expected_loss("absolute", z) == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(found.matrix[:, 899], 1)


def weigh_sides(true, released):
    """Twice the error above the truth."""
    return np.where(released > true, 2 * (released - true), true - released)


@pytest.mark.parametrize(
    ("loss", "concentrating", "convex", "monge"),
    [
        ("absolute", True, True, True),
        ("squared", True, True, True),
        ("zero_one", True, False, False),
        (("power", 0.5), True, False, False),
        (weigh_sides, False, True, True),
    ],
)
def test_testers(loss, concentrating, convex, monge):
    table = loss_table(tv.Query.count(5), loss)
    assert is_row_wise_concentrating(table) is concentrating
    assert is_row_wise_convex(table) is convex
    assert is_monge(table) is monge


def test_refusals():
    with pytest.raises(ArgumentError, match="grow with the distance"):
        tv.papers.unfixed_optimum([0.5, 0.5], 1.0, [[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(ArgumentError, match="'z' must sum to one"):
        tv.papers.unfixed_optimum([0.5, 0.6], 1.0)
    with pytest.raises(ArgumentError, match="at least 2 entries"):
        tv.papers.unfixed_optimum([1.0], 1.0)
