"""Limits of a row's count from its draw: against sums over all counts, with cells of any width."""

from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.estimate.draws import Cells, PrivateDraws, growing_thresholds
from tallyveil.estimate.histogram import Estimate
from tallyveil.estimate.ranks import (
    ALLOWED,
    FARTHEST,
    SPARSE,
    find_row_limits,
    keep_error,
    match_ranks,
    round_histogram,
)
from tallyveil.sampling.entropy import SeededNotPrivate


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


def test_sparse_counts_are_judged_together():
    """A lone row's own draw is no evidence that its noise was small."""
    full, lone = 40.0, [0.0, 9.0, 0.0, 25.0, 0.0, 4.0]
    cells, values = Cells.ending_at(np.arange(8)), np.arange(8)
    draws = PrivateDraws(values, Fraction(1), None, Fraction(0), 8)

    def limits(histogram, tradeoff):
        return np.array(
            find_row_limits(draws, Estimate(cells, np.array(histogram), False), tradeoff)
        )

    even = [full, *[34 / 4] * 4, *[2.0] * 2, full]  # at the fourth 34 rows are reached: a new part
    for tradeoff in (0.0, 0.3, 0.8):
        assert (limits([full, *lone, full], tradeoff) == limits(even, tradeoff)).all()
    gap = [
        full,
        0.0,
        0.0,
        full,
        full,
        0.0,
        full,
        full,
    ]  # and full counts are never mixed with others
    assert limits(gap, 0.0)[0].tolist() == [0, 0, 3, 3, 4, 4, 6, 7]


def test_far_draws_keep_what_they_say():
    ends = np.append(growing_thresholds(10**9), 10**9)
    cells = Cells.ending_at(ends)
    values = np.array([0, 5, FARTHEST + 1, 10**9])
    draws = PrivateDraws(values, Fraction(1), None, Fraction(0), 10**9 + 1, ends[:-1])
    estimate = Estimate(cells, np.full(len(cells), 1.0), False)
    low, high = find_row_limits(draws, estimate, 0.0)
    assert low.tolist() == high.tolist()
    assert low[2:].tolist() == values[2:].tolist()
    low, high = find_row_limits(draws, estimate, 0.5)
    assert (low[2:] == 0).all()
    assert (high[2:] == 10**9).all()
    assert (high[:2] < 20).all()


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


def test_kept_counts_without_anything_near_stay():
    ends = np.append(growing_thresholds(10**9), 10**9)
    cells = Cells.ending_at(ends)
    values = np.array([10**8, 10**9])
    draws = PrivateDraws(values, Fraction(1), None, Fraction(0), 10**9 + 1, ends[:-1])
    histogram = np.zeros(len(cells))
    histogram[-1] = 2.0
    kept = keep_error(
        draws, Estimate(cells, histogram, False), values, Fraction(1), SeededNotPrivate(1)
    )
    assert kept.tolist() == values.tolist()
