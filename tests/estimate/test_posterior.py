"""Limits of a row's count from its draw: against sums over all counts, with cells of any width."""

from fractions import Fraction

import numpy as np
import pytest

from tallyveil.estimate.cells import Cells, growing_thresholds
from tallyveil.estimate.draws import PrivateDraws
from tallyveil.estimate.histogram import Estimate
from tallyveil.estimate.posterior import FARTHEST, find_row_limits


@pytest.mark.parametrize("tradeoff", [0.0, 0.25, 0.9])
def test_limits_are_posterior_quantiles(tradeoff):
    cells = Cells.ending_at(np.append(growing_thresholds(400), 400))
    rng = np.random.default_rng(1)
    histogram = rng.gamma(0.5, 1, len(cells))
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
