"""The frontier between error and distribution error against generic programs, and by hand."""

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.mechanisms.frontier import Posterior
from tallyveil.mechanisms.transport import monotone_remap

LN2 = "0.693147180559945309417232121458"
BIT, THREE, HALF = tv.Query.count(1), tv.Query.count(2), [0.5, 0.5]


def find_limits(z, epsilon, rate):
    return Posterior(np.asarray(z), epsilon).find_limits(rate, np.arange(len(z)))


def random_distribution(rng, size):
    z = rng.dirichlet(np.full(size, 0.5))
    z[rng.random(size) < 0.15] = 0.0
    return z / z.sum() if z.sum() > 0 else np.eye(size)[0]


def random_monge(rng, n):
    """Any Monge table: non-negative crossings, and a row and a column of its own."""
    crossing = rng.exponential(size=(n - 1, n - 1)) * (rng.random((n - 1, n - 1)) < 0.6)
    table = np.zeros((n, n))
    table[1:, 1:] = -np.cumsum(np.cumsum(crossing, axis=0), axis=1)
    table += rng.normal(size=n)[:, None] + rng.normal(size=n)[None, :]
    return table - table.min(axis=1, keepdims=True)


def subtract(n):
    return np.subtract.outer(np.arange(n), np.arange(n)).astype(float)


LOSSES = {
    "absolute": lambda rng, n: np.abs(subtract(n)),
    "squared": lambda rng, n: subtract(n) ** 2,
    "lopsided": lambda rng, n: np.maximum(3 * subtract(n), -subtract(n)),
    "monge": random_monge,
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("case", range(25))
def test_no_private_mechanism_has_a_lower_total(name, case, solve_private):
    rng = np.random.default_rng(case)
    n = int(rng.integers(2, 9))
    epsilon = float(rng.choice([0.05, 0.4, 1.0, 2.5]))
    z, cost = random_distribution(rng, n), LOSSES[name](rng, n)
    scale = np.abs(np.diff(cost, axis=1)).max()
    rate = float(scale * rng.choice([0, 0.02, 0.1, 0.3, 0.7, 1, 1.5]))
    curve = tv.frontier(tv.Query.count(n - 1), epsilon, z, cost, tradeoffs=[rate])
    mechanism = curve.mechanism(rate)
    error = mechanism.expected_loss(cost, z)
    distance = tv.wasserstein(z @ mechanism.matrix, z)
    assert mechanism.realised_epsilon() <= epsilon * (1 + 1e-9)
    assert curve.error[0] == pytest.approx(error, rel=1e-9, abs=1e-12)
    assert curve.distance[0] == pytest.approx(distance, rel=1e-9, abs=1e-12)
    best, _ = solve_private(z[:, None] * cost, epsilon, z=z, rate=rate)
    assert error + rate * distance == pytest.approx(best, rel=1e-7, abs=1e-8)


def test_minimisers_of_single_thresholds_do_not_suffice_for_every_monge_loss(solve_private):
    """A Monge loss that is not convex in the released count: thresholds cannot be solved apart.

    Threshold by threshold the best cumulative probabilities, clip(Z_j, ...), fall with j here, so
    they are no distribution; the optimum per draw and matched count is one.
    """
    cost = np.array([[0.0, 2.0, 1.0], [0.0, 2.0, 1.0], [0.0, 2.0, 1.0]])
    z = np.array([0.2, 0.5, 0.3])
    drawn = tv.geometric(tv.Query.count(2), 1).matrix
    slope = np.diff(drawn.T @ (z[:, None] * cost), axis=1) / (z @ drawn)[:, None]
    level = np.append(0, np.cumsum(z @ drawn))
    apart = [
        np.clip(
            np.cumsum(z)[j], level[(slope[:, j] >= 0.1).sum()], level[(slope[:, j] >= -0.1).sum()]
        )
        for j in range(2)
    ]
    assert apart[0] > apart[1]
    curve = tv.frontier(tv.Query.count(2), 1, z, cost, tradeoffs=[0.1])
    total = curve.error[0] + 0.1 * curve.distance[0]
    best, _ = solve_private(z[:, None] * cost, 1.0, z=z, rate=0.1)
    assert total == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize(
    ("rate", "error", "distance"),
    [(0, 1 / 4, 1 / 4), (0.19, 1 / 4, 1 / 4), (0.21, 0.3, 0), (1, 0.3, 0)],
)
def test_two_answers_by_hand(rate, error, distance):
    """a = 1/2, three quarters zeros: always 0 up to a rate of 1/5, then the distribution kept."""
    curve = tv.frontier(tv.Query.count(1), LN2, [0.75, 0.25], tradeoffs=[rate])
    assert curve.error[0] == pytest.approx(error, abs=1e-15)
    assert curve.distance[0] == pytest.approx(distance, abs=1e-15)


def test_uneven_answers(solve_private):
    rng = np.random.default_rng(3)
    answers = np.array([0.0, 1.0, 4.0, 5.5, 9.0])
    z = rng.dirichlet(np.ones(5))
    query = tv.Query.custom(answers, answers, "path")
    cost = np.abs(np.subtract.outer(answers, answers))
    curve = tv.frontier(query, 0.7, z, tradeoffs=[0.3])
    total = curve.error[0] + 0.3 * curve.distance[0]
    best, _ = solve_private(z[:, None] * cost, 0.7, z=z, rate=0.3 * np.diff(answers))
    assert total == pytest.approx(best, rel=1e-8)


def test_ends_are_the_best_guess_and_rank_matching():
    z = np.random.default_rng(1).dirichlet(np.full(31, 0.4))
    query = tv.Query.count(30)
    curve = tv.frontier(query, 0.5, z)
    plain = tv.design(query, 0.5, prior=z)
    matched = tv.transport(query, 0.5, z)
    assert curve.error[0] == pytest.approx(plain.objective, rel=1e-12)
    assert curve.error[-1] == pytest.approx(matched.expected_loss("absolute", z), rel=1e-12)
    assert curve.distance[-1] < 1e-14
    np.testing.assert_allclose(curve.mechanism(1).matrix, matched.matrix, atol=1e-15)
    # a convex curve: more of the one, less of the other
    assert (np.diff(curve.error) >= -1e-14).all()
    assert (np.diff(curve.distance) <= 1e-14).all()


@pytest.mark.parametrize("epsilon", [0.02, 0.3, 1.0, 4.0, 40.0])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_for_the_absolute_loss_the_optimum_clips_the_matched_count(epsilon, rate):
    z = random_distribution(np.random.default_rng(int(10 * epsilon)), 41)
    curve = tv.frontier(tv.Query.count(40), epsilon, z, tradeoffs=[rate])
    low, high = find_limits(z, epsilon, rate)
    drawn = tv.geometric(tv.Query.count(40), epsilon).matrix
    matched = monotone_remap(z @ drawn, z)
    chosen = np.clip(matched.column, low[matched.row], high[matched.row])
    released = np.zeros((41, 41))
    np.add.at(released, (matched.row, chosen), matched.share)
    made = drawn @ released
    distance = np.abs(np.arange(41)[:, None] - np.arange(41))
    error = float((z[:, None] * made * distance).sum())
    total = error + rate * tv.wasserstein(z @ made, z)
    assert total == pytest.approx(curve.error[0] + rate * curve.distance[0], rel=1e-9, abs=1e-14)


def test_posterior_limits_of_a_wide_range():
    z = 1.0 / (1.0 + np.arange(200_001))
    low, high = find_limits(z / z.sum(), 0.1, 0.5)
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()
    # far from the ends the posterior is the noise around the draw: quartiles at +-ln(2)/epsilon
    assert (low[100_000], high[100_000]) == (100_000 - 7, 100_000 + 7)


def test_draws_far_from_every_known_count_are_clipped_to_the_nearest():
    z = np.zeros(2001)
    z[1000:1003] = 0.3, 0.4, 0.3
    low, high = find_limits(z, 4, 0.5)
    assert (low[[0, 500, 1000]] == 1000).all()
    assert (high[[1002, 1600, 2000]] == 1002).all()
    assert (low[1001], high[1001]) == (1001, 1001)


def test_refusals():
    with pytest.raises(tv.ArgumentError, match="'loss' must be Monge"):
        tv.frontier(tv.Query.count(2), 1, [0.2, 0.3, 0.5], "zero_one")
    with pytest.raises(tv.ArgumentError, match="'tradeoffs' must be finite, at least 0"):
        tv.frontier(BIT, 1, HALF, tradeoffs=[-1])
    with pytest.raises(tv.ArgumentError, match="and increase"):
        tv.frontier(BIT, 1, HALF, tradeoffs=[0.5, 0.5])
    with pytest.raises(tv.QueryError, match="adjacent"):
        tv.frontier(tv.Query.maximum(0, 2), 1, [0.2, 0.3, 0.5])
    with pytest.raises(tv.ArgumentError, match="sum to one"):
        tv.frontier(BIT, 1, [0.5, 0.6])
    with pytest.raises(tv.ArgumentError, match="'tradeoff' must be finite"):
        tv.frontier(BIT, 1, HALF).mechanism(float("inf"))
    with pytest.raises(tv.ArgumentError, match="'tradeoff' must be a number"):
        tv.frontier(BIT, 1, HALF).mechanism("much")


def test_the_picture_has_the_familiar_mechanisms(tmp_path):
    curve = tv.frontier(tv.Query.count(8), 1, np.full(9, 1 / 9))
    figure = curve.plot(tmp_path / "frontier.svg", {"a release": (0.9, 0.1)})
    text = (tmp_path / "frontier.svg").read_text()
    assert figure.axes
    for name in ("plain geometric", "best guess", "rank matching", "a release"):
        assert name in text


def test_the_curve_bounds_every_mechanism():
    rng = np.random.default_rng(5)
    query, z = tv.Query.count(12), rng.dirichlet(np.full(13, 0.6))
    curve = tv.frontier(query, 0.8, z)
    for made in (tv.geometric(query, 0.8), tv.fair(query, 0.8), tv.transport(query, 0.8, z)):
        distance = tv.wasserstein(z @ made.matrix, z)
        assert distance >= curve.bound_distance(made.expected_loss("absolute", z)) - 1e-12
    for error, distance in zip(curve.error, curve.distance, strict=True):
        assert curve.bound_distance(error) == pytest.approx(distance, abs=1e-9)
    with pytest.raises(tv.ArgumentError, match="the least there is"):
        curve.bound_distance(curve.error[0] / 2)
