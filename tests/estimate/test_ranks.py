"""Rounding a histogram, and handing its counts out in the order of the draws."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tallyveil.estimate import ranks
from tallyveil.estimate.draws import Cells, PrivateDraws
from tallyveil.estimate.ranks import hand_out_ranks, match_ranks, round_histogram


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
        for _ in range(6_000):
            found = tuple(hand_out_ranks(draws, single(3), np.array([2, 1, 1]), source).tolist())
            seen[found] = seen.get(found, 0) + 1
        assert len(seen) == 12
        statistic = sum((count - 500) ** 2 / 500 for count in seen.values())
        assert statistic < chi2.isf(1e-6, 11)


def test_equal_words_are_drawn_again(monkeypatch):
    monkeypatch.setattr(ranks, "MOST_SORTED", 2)

    class Equal(Bits):
        asked = 0

        def octets(self, count):
            return np.zeros(count, np.uint8)

        def words(self, count):
            self.asked += 1
            return np.zeros(count, np.uint64) if self.asked < 3 else np.arange(count, dtype="u8")

    bits = Equal(0)
    draws = PrivateDraws(np.zeros(3, np.uint8), Fraction(1), None, Fraction(0), 3)
    found = hand_out_ranks(draws, single(3), np.ones(3, dtype=np.int64), bits)
    assert (found.tolist(), bits.asked) == ([0, 1, 2], 3)
