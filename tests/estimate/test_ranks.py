"""Rounding a histogram, assigning counts by rank, limits of rows, and two columns together."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallyveil as tv
from tallyveil.estimate import ranks
from tallyveil.estimate.draws import Cells, PrivateDraws, growing_thresholds
from tallyveil.estimate.histogram import Estimate
from tallyveil.estimate.ranks import (
    ALLOWED,
    SPARSE,
    DrawnColumn,
    expect_jointly,
    find_row_limits,
    hand_out_ranks,
    keep_error,
    match_ranks,
    round_histogram,
)
from tallyveil.sampling.entropy import SeededNotPrivate


def single(size):
    return Cells.ending_at(np.arange(size))


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
    released = match_ranks(draws, single(20), histogram, rng.permutation(300))
    assert (np.bincount(released, minlength=20) == histogram).all()
    order = np.argsort(values, kind="stable")
    lowest, highest = {}, {}
    for value, count in zip(values[order], released[order], strict=True):
        lowest[value] = min(lowest.get(value, 99), count)
        highest[value] = max(highest.get(value, -1), count)
    levels = sorted(lowest)
    for low, high in pairwise(levels):
        assert highest[low] <= lowest[high]


class Bits:
    """Uniform bits from a generator, for tests."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def octets(self, count):
        return self.rng.integers(0, 256, count, dtype=np.uint8)

    def words(self, count):
        return self.rng.integers(0, 2**64, count, dtype=np.uint64)

    def permutation(self, size):
        return self.rng.permutation(size)


def test_bins_hand_out_as_sorting_does(monkeypatch):
    """Which draws get which counts does not depend on how ranks are found."""
    rng = np.random.default_rng(8)
    for size, ends in ((20, np.arange(20)), (20, np.array([0, 1, 4, 19]))):
        cells = Cells.ending_at(ends)
        values = np.minimum(rng.geometric(0.2, 30_000) - 1, size - 1).astype(np.uint8)
        histogram = rng.multinomial(30_000, np.full(len(cells), 1 / len(cells)))
        draws = PrivateDraws(values, Fraction(1), None, Fraction(0), size)
        monkeypatch.setattr(ranks, "MOST_SORTED", 1 << 40)
        sorted_out = hand_out_ranks(draws, cells, histogram, Bits(1))
        monkeypatch.setattr(ranks, "MOST_SORTED", 1_000)
        binned = hand_out_ranks(draws, cells, histogram, Bits(2))
        assert binned.dtype == np.uint8
        for one in range(size):
            mine, other = (np.sort(found[values == one]) for found in (binned, sorted_out))
            assert np.array_equal(mine, other)


def test_bins_break_ties_uniformly(monkeypatch):
    """Four rows of one draw get 0, 0, 1, 2: twelve arrangements, equally often.

    Chi-square on 11 degrees of freedom; false alarms once in 10^6 runs.
    """
    from scipy.stats import chi2

    monkeypatch.setattr(ranks, "MOST_SORTED", 3)
    monkeypatch.setattr(ranks, "TIE_BITS", 8)
    draws = PrivateDraws(np.zeros(4, np.uint8), Fraction(1), None, Fraction(0), 3)
    bits, seen = Bits(3), {}

    class Coarse(Bits):
        def octets(self, count):  # two bins, so that many rows need further bits
            return self.rng.integers(0, 2, count, dtype=np.uint8)

    coarse = Coarse(4)
    for source in (bits, coarse):
        seen.clear()
        for _ in range(2_400):
            found = tuple(hand_out_ranks(draws, single(3), np.array([2, 1, 1]), source).tolist())
            seen[found] = seen.get(found, 0) + 1
        assert len(seen) == 12
        statistic = sum((count - 200) ** 2 / 200 for count in seen.values())
        assert statistic < chi2.isf(1e-6, 11)


@pytest.mark.parametrize("tradeoff", [0.0, 0.25, 0.9])
def test_limits_are_posterior_quantiles(tradeoff):
    cells = Cells.ending_at(np.append(growing_thresholds(400), 400))
    rng = np.random.default_rng(1)
    histogram = SPARSE + 100 * rng.gamma(0.5, 1, len(cells))
    values = rng.integers(0, 401, 50)
    draws = PrivateDraws(values, Fraction(1, 5), None, Fraction(0), 401)
    low, high = find_row_limits(draws, Estimate(cells, histogram, False), tradeoff)
    width = cells.high - cells.low + 1
    share = np.repeat(histogram / width, width)
    for row, value in enumerate(values):
        posterior = share * np.exp(-0.2 * np.abs(np.arange(401) - value))
        below = np.cumsum(posterior) / posterior.sum()
        assert low[row] == np.argmax(below >= (1 - tradeoff) / 2 * (1 - 1e-12))
        assert high[row] == np.argmax(below >= (1 + tradeoff) / 2 * (1 - 1e-12))


def expect_error(share, epsilon, draws, counts):
    """The mean over rows of E[|true - count| | draw], by sums over all counts."""
    away = np.abs(np.arange(len(share))[:, None] - np.arange(len(share)))
    posterior = share[:, None] * np.exp(-epsilon * away)
    posterior /= posterior.sum(axis=0)
    return float(
        (posterior[:, draws] * np.abs(np.arange(len(share))[:, None] - counts)).sum(0).mean()
    )


@pytest.mark.parametrize("epsilon", ["1/5", "1", "2", "5"])
def test_kept_counts_are_expected_to_err_as_much_as_plain_noise(epsilon):
    """Under the estimate itself; rows are split by one byte each, so to 1/256 and chance."""
    size, rows = 21, 40_000
    share = np.random.default_rng(2).gamma(3.0, 1, size)
    share /= share.sum()
    cells = Cells.ending_at(np.arange(size))
    true = np.random.default_rng(4).choice(size, rows, p=share)
    source = SeededNotPrivate(5)
    values = tv.certify_geometric(tv.Query.count(size - 1), epsilon).release(true, source)
    draws = PrivateDraws(values, Fraction(epsilon), None, Fraction(0), size)
    estimate = Estimate(cells, rows * share, False)
    ranked = match_ranks(
        draws, cells, round_histogram(estimate.histogram, rows), source.permutation(rows)
    )
    kept = keep_error(draws, estimate, ranked, Fraction(epsilon), source)
    plain = tv.geometric(tv.Query.count(size - 1), epsilon).matrix
    away = np.abs(np.arange(size)[:, None] - np.arange(size))
    most = ALLOWED * float(share @ (plain * away).sum(axis=1))
    before, after = (
        expect_error(share, float(Fraction(epsilon)), values, counts) for counts in (ranked, kept)
    )
    if before <= most:
        assert (kept == ranked).all()
    else:
        assert after <= most * 1.02
        assert after >= most * 0.97


def add_noise(draw: np.random.Generator, counts: np.ndarray, epsilon: float) -> np.ndarray:
    share = -math.expm1(-epsilon)
    noise = draw.geometric(share, len(counts)) - draw.geometric(share, len(counts))
    return np.maximum(counts + noise, 0)


def make_columns(
    draw: np.random.Generator, *columns: np.ndarray, epsilon: float = 1.0
) -> list[DrawnColumn]:
    """Columns whose distributions are known exactly."""
    return [DrawnColumn(add_noise(draw, c, epsilon), draw.permutation(c), epsilon) for c in columns]


@pytest.mark.parametrize("scale", [1, 300], ids=["undoing both noises", "by classes"])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_both_draws_tell_more_than_one(share: float, scale: int) -> None:
    draw = np.random.default_rng(2)
    large = np.minimum(draw.poisson(draw.gamma(0.5, 8, 3000)), 60)
    small = draw.binomial(large, share)
    own, other = make_columns(draw, small, scale * large)
    assert (own.size * other.size > ranks.MOST_PAIRS) == (scale > 1)
    found = expect_jointly(own, other)
    ranked = []
    for score in (own.draws, found):
        order = np.lexsort((draw.random(len(small)), score))
        handed = np.empty_like(small)
        handed[order] = np.sort(small)
        ranked.append(float(np.abs(handed - small).mean()))
    assert ranked[1] < 0.95 * ranked[0]
