"""The estimate that assumes no shape, its solver, and isotonic regression."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

import tallyveil as tv
from tallyveil.estimate.direct import least_squares_at_total, monotone
from tallyveil.estimate.draws import Cells, Observed, PrivateDraws
from tallyveil.estimate.histogram import estimate_directly
from tests.estimate.drawing import draw


def skewed_counts(rows, size, seed=0):
    rng = np.random.default_rng(seed)
    return np.minimum(rng.geometric(5 / size, size=rows) - 1, size - 1)


def distance(histogram, counts):
    truth = np.bincount(counts, minlength=len(histogram))
    return np.abs(np.cumsum(histogram - truth)).sum() / len(counts)


def test_one_pass_minimises_the_stated_objective():
    size, counts = 8, skewed_counts(200, 8)
    draws = draw(counts, size, "0.3", "0.7", seed=1)
    drawn_bins = np.bincount(draws.values, minlength=size).astype(float)
    cells, variance, smooth = Cells.ending_at(np.arange(size)), 5.0, np.full(size, 25.0)
    observed = Observed(cells, drawn_bins, 0.7, draws.totals.astype(float), 0.3)
    known = observed.of_draws(smooth, 0.1) + observed.of_totals(np.full(size - 1, 1 / variance))
    found = least_squares_at_total(known.gram, known.right, 200.0)

    F = np.cumsum(tv.geometric(tv.Query.count(size - 1), "0.7").matrix, axis=1)[:, :-1]
    S = 0.1 * np.eye(size - 1)
    for i in range(size - 1):
        for j in range(size - 1):
            S[i, j] += (smooth * (F[:, min(i, j)] - F[:, i] * F[:, j])).sum()
    Y = np.cumsum(drawn_bins)[:-1]

    def objective(h):
        near = draws.totals - np.cumsum(h)[:-1]
        far = Y - F.T @ h
        return near @ near / variance + far @ np.linalg.solve(S, far)

    value = found @ known.gram @ found - 2 * known.right @ found + known.square
    assert value == pytest.approx(objective(found))
    best = minimize(
        objective, np.full(size, 25.0), method="SLSQP", bounds=[(0, None)] * size,
        constraints={"type": "eq", "fun": lambda h: h.sum() - 200},
        options={"ftol": 1e-12, "maxiter": 500},
    )  # fmt: skip
    assert objective(found) <= best.fun * (1 + 1e-6)
    assert found.sum() == pytest.approx(200)
    assert (found >= 0).all()


def test_both_releases_together_beat_each_alone():
    # ten fixed seeds; the means differ by many standard errors
    size, counts = 61, skewed_counts(2000, 61)
    errors = {"both": [], "totals": [], "draws": []}
    for seed in range(10):
        draws = draw(counts, size, "0.15", "1.2", seed)
        errors["both"].append(distance(estimate_directly(draws).histogram, counts))
        totals = monotone(draws.totals, 2000)
        errors["totals"].append(distance(np.diff(totals, prepend=0, append=2000), counts))
        alone = PrivateDraws(draws.values, draws.epsilon2, None, Fraction(0), size)
        errors["draws"].append(distance(estimate_directly(alone).histogram, counts))
    means = {name: np.mean(values) for name, values in errors.items()}
    assert means["both"] < 0.9 * means["totals"]
    assert means["both"] < 0.9 * means["draws"]


def test_likeliest_histogram_is_a_fixed_point_of_its_equation():
    size, counts = 12, skewed_counts(500, 12)
    draws = draw(counts, size, 0, "1.5", seed=2)
    h = estimate_directly(draws).histogram
    G = tv.geometric(tv.Query.count(size - 1), "1.5").matrix
    K = np.bincount(draws.values, minlength=size)

    def likelihood(histogram):
        return K @ np.log(histogram @ G)

    assert likelihood(h) > likelihood(np.bincount(counts, minlength=size) + 1e-9) - 1e-6
    assert h.sum() == pytest.approx(500)


def test_monotone_is_isotonic_regression():
    from scipy.optimize import isotonic_regression

    rng = np.random.default_rng(5)
    for size in (1, 2, 7, 300):
        for scale in (0.0, 0.3, 4.0):
            noisy = rng.normal(size=size).cumsum() + scale * rng.normal(size=size)
            weights = rng.uniform(0.1, 3, size)
            for chosen in (None, weights):
                wanted = np.clip(isotonic_regression(noisy, weights=chosen).x, 0.0, 2.5)
                np.testing.assert_allclose(monotone(noisy, 2.5, chosen), wanted, atol=1e-12)
