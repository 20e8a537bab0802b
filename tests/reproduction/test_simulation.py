"""The parts of the simulations: errors in five metrics, standard errors, differences of shares."""

import math

import numpy as np
import pytest

import tallyveil as tv
from reproduction.kohli_releases import METRICS, Errors, measure_release
from reproduction.kohli_split import (
    TABLE_3,
    combine_errors,
    compare_shares,
    estimate_fit_error,
    fit_rule,
    make_six_tables,
    predict_share,
    simulate_shares,
)
from tallyveil.papers.kohli.privatizers import distribution_of_counts


def test_a_release_is_measured_in_every_metric():
    table = np.array([0, 1, 2, 2])
    truth = distribution_of_counts(table, 2)
    always_two = tv.Mechanism([[0, 0, 1]] * 3, tv.Query.count(2), 1)
    found = dict(zip(METRICS, measure_release(table, truth, always_two, tv.Entropy()), strict=True))
    assert found == pytest.approx(
        {"W1": 0.75, "KS": 0.5, "TV": 0.5, "absolute": 0.75, "squared": 1.25}
    )


def test_differences_are_measured_run_by_run():
    base = np.random.default_rng(1).normal(5, 1, (50, 5))
    low, high = Errors(base), Errors(base + 0.1 + 0.01 * np.sin(np.arange(50))[:, None])
    assert high.exceeds(low, "W1") > 50  # unpaired, the difference is half a standard error
    assert low.error("W1") == pytest.approx(base[:, 0].std(ddof=1) / math.sqrt(50))


def test_the_standard_error_of_a_difference_of_shares_is_that_of_repeated_simulations():
    """The delta method against 300 independent pairs of simulations: within 25 %."""
    draw = np.random.default_rng(2)
    apart, stated = [], []
    for _ in range(300):
        first, second = (draw.gamma(20, 1, (40, 5)) for _ in range(2))
        difference, error = compare_shares(first, second)
        apart.append(difference)
        stated.append(error)
    assert np.mean(stated) == pytest.approx(np.std(apart), rel=0.25)
    assert combine_errors(np.full((3, 5), 2.0)) == pytest.approx(2 * math.log(2))


def test_more_budget_for_the_distribution_makes_it_better_and_the_counts_worse():
    table = np.tile(np.arange(5), 200)
    runs = simulate_shares(table, 4, 0.5, (0.1, 0.9), times=10, seed=3)
    mean = {share: dict(zip(METRICS, r.mean(axis=0), strict=True)) for share, r in runs.items()}
    assert mean[0.9]["W1"] < mean[0.1]["W1"]
    assert mean[0.9]["absolute"] > mean[0.1]["absolute"]


def test_the_rule_of_thumb_follows_from_the_printed_table():
    points = [(epsilon, share) for epsilon, row in TABLE_3.items() for share in row]
    assert fit_rule(points)[0] == pytest.approx((0.639, 0.106, 2.87), rel=5e-3)


def test_the_error_of_a_fitted_rule_covers_the_truth():
    x = np.repeat(np.geomspace(0.1, 5, 11), 6)
    draw, grid = np.random.default_rng(4), np.array([0.1, 1.0, 5.0])
    truth = (0.6, 0.1, 3.0)
    inside = 0
    for _ in range(40):
        shares = predict_share(x, *truth) + draw.normal(0, 0.05, len(x))
        fit, covariance = fit_rule(list(zip(x, shares, strict=True)))
        apart = np.abs(predict_share(grid, *fit) - predict_share(grid, *truth))
        inside += (apart < 2 * estimate_fit_error(fit, covariance, grid)).sum()
    assert inside >= 0.85 * 120  # 95 % of 120 expected, sd 2.4


def test_the_six_tables_have_their_sizes_and_shapes():
    tables = make_six_tables(1)
    assert [len(t) for t in tables.values()] == [3000, 10_000, 10_000, 20_000, 10_000, 10_000]
    assert all(
        t.max() <= top for t, top in zip(tables.values(), (29, 69, 69, 39, 79, 79), strict=True)
    )
    assert tables["left-skewed"].mean() > 34.5 > tables["right-skewed"].mean()
    # 20,000 draws with share 0.7 or 0.3 of 39: means 27.3 and 11.7, sd 0.03 each
    assert tables["bimodal"][:10_000].mean() == pytest.approx(27.3, abs=0.2)
    assert tables["bimodal"][10_000:].mean() == pytest.approx(11.7, abs=0.2)
