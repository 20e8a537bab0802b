"""Rounding a histogram, and handing its counts out in the order of the draws."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tallyveil.estimate.cells import Cells
from tallyveil.estimate.draws import PrivateDraws
from tallyveil.estimate.ranks import match_ranks, round_histogram


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


def test_ties_are_broken_by_the_given_order_not_by_position():
    draws = PrivateDraws(np.zeros(4, dtype=np.int64), Fraction(1), None, Fraction(0), 4)
    released = match_ranks(draws, single(4), np.ones(4, dtype=np.int64), np.array([2, 0, 3, 1]))
    assert released.tolist() == [1, 3, 0, 2]
