"""The combined estimate, its solver, rounding and rank matching."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import tallyveil as tv
from tallyveil.publish import estimate as match
from tallyveil.publish import least_squares as nonnegative
from tallyveil.publish.estimate import (
    PrivateDraws,
    estimate_histogram,
    match_ranks,
    round_histogram,
)
from tallyveil.publish.least_squares import least_squares_at_total
from tallyveil.sampling.entropy import SeededNotPrivate
from tallyveil.sampling.noise import geometric_noise


def clamped(values, upper, epsilon, entropy=None):
    return tv.certify_geometric(tv.Query.count(upper), epsilon).release(np.asarray(values), entropy)


def drawn(counts, size, epsilon1, epsilon2, seed):
    source = SeededNotPrivate(seed)
    values = clamped(counts, size - 1, epsilon2, source)
    totals = None
    if epsilon1:
        exact = np.cumsum(np.bincount(counts, minlength=size))[:-1]
        totals = exact + geometric_noise(size - 1, epsilon1, source)
    return PrivateDraws(values, Fraction(epsilon2), totals, Fraction(epsilon1), size)


def skewed_counts(rows, size, seed=0):
    rng = np.random.default_rng(seed)
    return np.minimum(rng.geometric(5 / size, size=rows) - 1, size - 1)


def distance(histogram, counts):
    truth = np.bincount(counts, minlength=len(histogram))
    return np.abs(np.cumsum(histogram - truth)).sum() / len(counts)


# -- the solver ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_optimality_conditions_hold(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    root = rng.normal(size=(n + 5, n))
    gram, right, total = root.T @ root, rng.normal(size=n) * 10, float(rng.uniform(0.1, 20))
    h = least_squares_at_total(gram, right, total)
    assert (h >= 0).all()
    assert h.sum() == pytest.approx(total)
    gradient = gram @ h - right
    level = gradient[h > 1e-9].mean()
    np.testing.assert_allclose(gradient[h > 1e-9], level, atol=1e-6)
    assert (gradient[h <= 1e-9] >= level - 1e-6).all()


def test_both_solvers_agree(monkeypatch):
    rng = np.random.default_rng(9)
    root = rng.normal(size=(40, 30))
    gram, right = root.T @ root, rng.normal(size=30) * 10
    blocks = least_squares_at_total(gram, right, 3.0)
    monkeypatch.setattr(nonnegative, "ROUNDS", 0)
    np.testing.assert_allclose(least_squares_at_total(gram, right, 3.0), blocks, atol=1e-5)


# -- the estimate --------------------------------------------------------------------------------


def test_one_pass_minimises_the_stated_objective():
    size, counts = 8, skewed_counts(200, 8)
    draws = drawn(counts, size, "0.3", "0.7", seed=1)
    drawn_bins = np.bincount(draws.values, minlength=size).astype(float)
    a, variance, pilot = np.exp(-0.7), 5.0, np.full(size, 25.0)
    found = match._joint(draws.totals.astype(float), variance, drawn_bins, a, pilot)

    F = np.cumsum(tv.geometric(tv.Query.count(size - 1), "0.7").matrix, axis=1)[:, :-1]
    smooth = np.full(size, 25.0) + 1e-4 * 200 / size + 0.02
    S = 0.1 * np.eye(size - 1)
    for i in range(size - 1):
        for j in range(size - 1):
            S[i, j] += (smooth * (F[:, min(i, j)] - F[:, i] * F[:, j])).sum()
    Y = np.cumsum(drawn_bins)[:-1]

    def objective(h):
        near = draws.totals - np.cumsum(h)[:-1]
        far = Y - F.T @ h
        return near @ near / variance + far @ np.linalg.solve(S, far)

    best = minimize(
        objective,
        np.full(size, 25.0),
        method="SLSQP",
        bounds=[(0, None)] * size,
        constraints={"type": "eq", "fun": lambda h: h.sum() - 200},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert objective(found) <= best.fun * (1 + 1e-6)
    assert found.sum() == pytest.approx(200)
    assert (found >= 0).all()


def test_both_releases_together_beat_each_alone():
    # ten fixed seeds; the means differ by many standard errors
    size, counts = 61, skewed_counts(2000, 61)
    errors = {"both": [], "totals": [], "draws": []}
    for seed in range(10):
        draws = drawn(counts, size, "0.15", "1.2", seed)
        errors["both"].append(distance(estimate_histogram(draws), counts))
        totals = match.monotone(draws.totals, 2000)
        errors["totals"].append(distance(np.diff(totals, prepend=0, append=2000), counts))
        alone = PrivateDraws(draws.values, draws.epsilon2, None, Fraction(0), size)
        errors["draws"].append(distance(estimate_histogram(alone), counts))
    means = {name: np.mean(values) for name, values in errors.items()}
    assert means["both"] < 0.9 * means["totals"]
    assert means["both"] < 0.9 * means["draws"]


def test_likeliest_histogram_is_a_fixed_point_of_its_equation():
    size, counts = 12, skewed_counts(500, 12)
    draws = drawn(counts, size, 0, "1.5", seed=2)
    h = estimate_histogram(draws)
    G = tv.geometric(tv.Query.count(size - 1), "1.5").matrix
    K = np.bincount(draws.values, minlength=size)

    def likelihood(histogram):
        return K @ np.log(histogram @ G)

    assert likelihood(h) > likelihood(np.bincount(counts, minlength=size) + 1e-9) - 1e-6
    assert h.sum() == pytest.approx(500)


def test_wide_ranges_use_the_bin_by_bin_estimate(monkeypatch):
    size, counts = 400, skewed_counts(3000, 400)
    draws = drawn(counts, size, "0.1", "1", seed=3)
    joint = distance(estimate_histogram(draws), counts)
    monkeypatch.setattr(match, "LARGEST_JOINT", 10)
    apart = distance(estimate_histogram(draws), counts)
    stage_one = match.monotone(draws.totals, 3000)
    assert apart < 1.3 * joint
    assert apart < 0.8 * distance(np.diff(stage_one, prepend=0, append=3000), counts)


def test_unbiased_deconvolution_inverts_the_geometric_matrix():
    # with negligible noise in the draws' law the estimate must be the histogram itself
    size = 30
    truth = np.bincount(skewed_counts(1000, size), minlength=size).astype(float)
    expected = truth @ tv.geometric(tv.Query.count(size - 1), 1.0).matrix
    totals = np.cumsum(truth)[:-1] + 3.0
    found = match._bin_by_bin(totals, 1e12, expected, 1.0)
    np.testing.assert_allclose(found, truth, atol=1e-6)


# -- rounding and matching -----------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 50), min_size=1, max_size=40), st.integers(0, 2000))
def test_rounding_keeps_every_cumulative_sum_within_a_half(values, records):
    total = sum(values)
    histogram = np.array(values) * (records / total) if total > 0 else np.zeros(len(values))
    if total == 0:
        histogram[0] = records
    rounded = round_histogram(histogram, records)
    assert rounded.sum() == records
    assert (rounded >= 0).all()
    assert np.abs(np.cumsum(rounded) - np.cumsum(histogram)).max() <= 0.5 + 1e-6


def test_matching_hands_out_exactly_the_histogram_in_the_order_of_the_draws():
    rng = np.random.default_rng(4)
    values = rng.integers(0, 20, size=300)
    draws = PrivateDraws(values, Fraction(1), None, Fraction(0), 20)
    histogram = rng.multinomial(300, np.full(20, 1 / 20))
    released = match_ranks(draws, histogram, rng.permutation(300))
    assert (np.bincount(released, minlength=20) == histogram).all()
    order = np.argsort(values, kind="stable")
    lowest, highest = {}, {}
    for value, count in zip(values[order], released[order], strict=True):
        lowest[value] = min(lowest.get(value, 99), count)
        highest[value] = max(highest.get(value, -1), count)
    levels = sorted(lowest)
    for low, high in pairwise(levels):
        assert highest[low] <= lowest[high]


def test_ties_are_broken_by_the_given_order_not_by_position():
    draws = PrivateDraws(np.zeros(4, dtype=np.int64), Fraction(1), None, Fraction(0), 4)
    released = match_ranks(draws, np.ones(4, dtype=np.int64), np.array([2, 0, 3, 1]))
    assert released.tolist() == [1, 3, 0, 2]
