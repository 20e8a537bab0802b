"""Cells of counts, and the estimate from both draws: better where smooth, never worse where not."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallyveil.estimate.draws import (
    MOST_CELLS,
    Cells,
    Observed,
    PrivateDraws,
    growing_thresholds,
)
from tallyveil.estimate.histogram import estimate_directly, estimate_histogram
from tallyveil.estimate.ranks import match_ranks, round_histogram
from tallyveil.estimate.smooth import estimate_smooth
from tallyveil.release.split import split_budget
from tallyveil.sampling.entropy import SeededNotPrivate
from tallyveil.sampling.noise import geometric_noise
from tests.estimate.drawing import draw


def draw_split(counts, size, epsilon, seed):
    split = split_budget(epsilon, records=len(counts), size=size)
    return draw(counts, size, split.epsilon1, split.epsilon2, seed)


def draw_open(counts, ceiling, epsilon1, epsilon2, seed):
    source = SeededNotPrivate(seed)
    thresholds = growing_thresholds(ceiling)
    below = np.searchsorted(np.sort(counts), thresholds, side="right")
    totals = below + geometric_noise(len(thresholds), epsilon1, source)
    values = counts + geometric_noise(len(counts), epsilon2, source)
    costs = Fraction(epsilon2), totals, Fraction(epsilon1)
    return PrivateDraws(values, *costs, ceiling + 1, thresholds)


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 10**9))
def test_thresholds_rise_and_are_few(ceiling):
    thresholds = growing_thresholds(ceiling)
    assert thresholds[0] == 0
    assert (np.diff(thresholds) >= 1).all()
    assert thresholds[-1] < ceiling
    assert len(thresholds) <= MOST_CELLS - 1
    width = np.diff(np.append(thresholds, ceiling))
    assert (width <= 1 + 0.1 * np.append(thresholds[1:], ceiling)).all()


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 5.0])
def test_draws_of_a_cell_are_the_mean_over_its_counts(epsilon):
    cells = Cells.ending_at(np.array([0, 1, 4, 11, 30]))
    fine = Cells.ending_at(np.arange(31)).draw_cumulative(epsilon)
    for cell, (low, high) in enumerate(zip(cells.low, cells.high, strict=True)):
        mean = fine[low : high + 1].mean(axis=0)[cells.high[:-1]]
        np.testing.assert_allclose(cells.draw_cumulative(epsilon)[cell], mean, atol=1e-12)


def distance(found, counts, draws):
    histogram = round_histogram(found.histogram, len(counts))
    released = match_ranks(draws, found.cells, histogram, np.arange(len(counts)))
    return np.abs(np.sort(released) - np.sort(counts)).mean()


def long_tail(rows, upper, seed=0):
    rng = np.random.default_rng(seed)
    return np.minimum(rng.negative_binomial(0.4, 0.05, rows), upper)


def measure_ratio(counts, size, epsilon, seed):
    """The estimate, and its distance from the truth as a share of the direct estimate's."""
    draws = draw_split(counts, size, epsilon, seed)
    found = estimate_histogram(draws)
    direct = distance(estimate_directly(draws), counts, draws)
    return found, distance(found, counts, draws) / direct


def test_the_order_of_rows_does_not_matter():
    draws = draw_split(long_tail(800, 30), 31, "0.5", seed=2)
    turned = PrivateDraws(draws.values[::-1], draws.epsilon2, draws.totals, draws.epsilon1, 31)
    assert (estimate_histogram(turned).histogram == estimate_histogram(draws).histogram).all()


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1"])
def test_smooth_tables_are_estimated_better(epsilon):
    # over six paired seeds the mean ratio is 0.45 to 0.65; 0.85 is many standard errors away
    counts = long_tail(3000, 60)
    found, ratios = zip(
        *(measure_ratio(counts, 61, epsilon, seed) for seed in range(6)), strict=True
    )
    assert all(one.smooth for one in found)
    assert np.mean(ratios) < 0.85


@pytest.mark.parametrize(("period", "part"), [(2, 0.3), (2, 1.0), (5, 0.3), (5, 1.0), (10, 0.3)])
def test_rounded_counts_are_estimated_better(period, part):
    # over four paired seeds the mean ratio is 0.45 to 0.75; 0.95 is many standard errors away
    rng = np.random.default_rng(period)
    counts = np.minimum(rng.negative_binomial(1, 0.07, 6000), 60)
    counts = np.where(rng.random(6000) < part, period * (counts // period), counts)
    assert np.mean([measure_ratio(counts, 61, "0.5", seed)[1] for seed in range(4)]) < 0.95


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: rng.integers(0, 8, 4000) * 7,
        lambda rng: np.where(rng.random(4000) < 0.3, 30, 5),
        lambda rng: np.full(4000, 17),
        lambda rng: np.append(rng.integers(1, 51, 20), np.zeros(3980, np.int64)),
    ],
    ids=["multiples of 7", "two atoms", "one atom", "20 rows not zero"],
)
def test_tables_that_are_not_smooth_keep_the_direct_estimate(make):
    counts = make(np.random.default_rng(5))
    for epsilon in ("0.25", "1"):
        draws = draw_split(counts, 51, epsilon, seed=3)
        found = estimate_histogram(draws)
        assert not found.smooth
        assert (found.histogram == estimate_directly(draws).histogram).all()


@pytest.mark.parametrize(
    ("rows", "upper", "epsilon"), [(50, 40, "0.5"), (3000, 40, "4"), (500, 5, "0.5")]
)
def test_few_rows_no_totals_and_few_counts_keep_the_direct_estimate(rows, upper, epsilon):
    draws = draw_split(long_tail(rows, upper), upper + 1, epsilon, seed=4)
    assert not estimate_histogram(draws).smooth


def test_wide_ranges_are_estimated_on_cells():
    counts = np.minimum(np.random.default_rng(1).negative_binomial(0.5, 0.004, 4000), 14_000)
    found, ratio = measure_ratio(counts, 14_001, "0.5", seed=5)
    assert found.smooth
    assert len(found.cells) <= 256
    assert ratio < 0.7


@pytest.mark.parametrize("epsilon", ["0.01", "0.2", "3", "20"])
@pytest.mark.parametrize("rows", [1, 2, 60, 2000])
@pytest.mark.parametrize("ceiling", [1, 2, 50, 3000, 10**9])
def test_any_sizes_give_a_histogram(epsilon, rows, ceiling):
    counts = np.minimum(long_tail(rows, ceiling) ** 2, ceiling)
    both = [draw_open(counts, ceiling, "0.1", epsilon, seed=8)]
    if ceiling <= 3000:
        both.append(draw_split(counts, ceiling + 1, epsilon, seed=8))
    for draws in both:
        found = estimate_histogram(draws)
        assert np.isfinite(found.histogram).all()
        assert (found.histogram >= 0).all()
        assert found.histogram.sum() == pytest.approx(rows)
        assert found.cells.low[0] == 0
        assert (found.cells.low[1:] == found.cells.high[:-1] + 1).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 5.0, 20.0])
def test_a_hundred_million_rows_are_no_problem(epsilon):
    records = 1e8
    cells = Cells.ending_at(np.arange(51))
    truth = np.exp(-np.arange(51) / 8)
    truth *= records / truth.sum()
    shares = np.diff(cells.draw_cumulative(epsilon), axis=1, prepend=0.0, append=1.0)
    observed = Observed(cells, np.round(truth @ shares), epsilon, np.cumsum(truth)[:-1], 0.1)
    found = estimate_smooth(observed)
    assert found is not None
    assert np.abs(np.cumsum(found - truth)).max() < 1e-4 * records
