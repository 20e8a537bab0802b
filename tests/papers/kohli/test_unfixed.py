"""Algorithm 2 against the program, and the loss testers."""

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.errors import ArgumentError
from tallyveil.loss import is_monge, loss_table
from tallyveil.papers.kohli.greedy import is_row_wise_concentrating, is_row_wise_convex

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
def test_no_private_mechanism_is_cheaper(loss, seed, solve_private):
    # Theorem 8, and beyond it every Monge loss
    rng = np.random.default_rng(seed)
    n, epsilon = int(rng.integers(2, 10)), float(rng.choice([0.2, 1.0, 2.0]))
    z = rng.dirichlet(np.full(n, 0.6))
    found = tv.papers.unfixed_optimum(z, epsilon, loss)
    cost = loss_table(found.query, loss)
    best, _ = solve_private(z[:, None] * cost, epsilon)
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
