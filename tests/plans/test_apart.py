"""Rows that are drawn apart get what all rows together get: the same, row by row."""

from fractions import Fraction

import numpy as np
import pytest

from tallyveil.arrays import Tally
from tallyveil.certified.certify import certify_geometric, certify_noise
from tallyveil.estimate.draws import PrivateDraws, growing_thresholds
from tallyveil.estimate.histogram import estimate_histogram
from tallyveil.estimate.ranks import match_ranks
from tallyveil.estimate.steps import FIRST_BITS, find_bins
from tallyveil.plans import apart, methods
from tallyveil.plans.methods import Preserve
from tallyveil.query import Query
from tallyveil.request.ranges import NO_UPPER
from tallyveil.request.tradeoff import BEST
from tallyveil.sampling.entropy import Entropy
from tallyveil.tables.distributed import DistributedCounts

ROWS = 20_000


class Staged:
    """Draws and words in memory, counted as tasks count them."""

    def __init__(self, drawn, words, upper):
        self.drawn, self.words = drawn, words
        bins = Tally.of(drawn)
        if upper <= 4000:
            bins = np.bincount(find_bins(drawn, words), minlength=(upper + 1) << FIRST_BITS)
        self.bins = {("n", 0): bins}

    def count_digits(self, drawn, prefixes):
        assert drawn == ("n", 0)
        found = []
        for draw, beginning, bits, step in prefixes:
            own = self.words[self.drawn == draw]
            own = own[own >> np.uint64(64 - bits) == beginning] if bits else own
            digits = (own << np.uint64(bits)) >> np.uint64(64 - step)
            found.append(np.unique(digits.astype(np.int64), return_counts=True))
        return found


def make_counts(upper, seed):
    random = np.random.default_rng(seed)
    counts = random.negative_binomial(0.5, 0.02, ROWS)
    counts[::50] *= 500
    return np.minimum(counts, upper)


@pytest.mark.parametrize("upper", [40, 900, 5000, 800_000, 2_000_000, NO_UPPER])
@pytest.mark.parametrize("tradeoff", [None, Fraction(0), Fraction(1, 2), Fraction(1)])
def test_counts_are_those_of_one_machine(monkeypatch, upper, tradeoff):
    """With the same draws, words and noise: values, histogram, matching and guesses are equal."""
    rate = Fraction(1, 2)
    noise = certify_noise(rate)
    certified = noise if upper > 10**6 else certify_geometric(Query.count(upper), rate)
    method = Preserve(certified, noise, tradeoff, True, upper)
    counts, entropy = make_counts(upper, upper % 97), Entropy()
    draws = method.draw(counts, entropy)
    words = entropy.words(ROWS)
    monkeypatch.setattr(
        methods,
        "hand_out_ranks",
        lambda draws, cells, histogram, _: match_ranks(draws, cells, histogram, words.argsort()),
    )
    (one,) = method.publish(draws, entropy)
    staged = Staged(draws.values.astype(np.int64), words, upper)
    monkeypatch.setattr(apart, "noisy_cumulative", lambda *_: draws.totals)
    shared = apart.DrawnApart("n", upper, method, lambda: staged)
    known = apart.choose_range(upper)
    tally = known.tally(counts)
    histogram = tally.spread_out(known.size) if isinstance(tally, Tally) else tally
    (many,) = shared.publish(shared.draw(DistributedCounts(histogram), entropy), entropy)
    values = many.values.hand_out(staged.drawn, words)
    assert np.array_equal(values, one.values)
    assert many.values.rows.is_same(Tally.of(one.values))
    assert (many.histogram, many.matching) == (one.histogram, one.matching)
    assert many.guesses == one.guesses
    assert np.array_equal(many.beside[BEST].hand_out(staged.drawn, words), one.beside[BEST])


@pytest.mark.parametrize("upper", [5000, NO_UPPER])
def test_true_counts_are_tallied_for_the_thresholds(upper):
    """The cumulative histogram that noise is added to is that of one machine."""
    counts, known = make_counts(upper, 3), apart.choose_range(upper)
    parts = [known.tally(part) for part in np.split(counts, [10, 10, 7000])]
    whole = parts[0] + parts[1] + parts[2] + parts[3]
    if upper == NO_UPPER:
        ends = growing_thresholds(upper)
        below = [int((counts <= end).sum()) for end in ends]
        assert np.cumsum(whole)[:-1].tolist() == below
    else:
        assert whole.is_same(Tally.of(counts))


def test_draws_with_weights_give_the_same_estimate():
    counts = make_counts(NO_UPPER, 5)
    ends = growing_thresholds(NO_UPPER)
    totals = np.searchsorted(np.sort(counts), ends, side="right")
    facts = Fraction(1), totals, Fraction(1), NO_UPPER + 1, ends
    tally = Tally.of(counts)
    one = estimate_histogram(PrivateDraws(counts, *facts))
    other = estimate_histogram(PrivateDraws(tally.values, *facts, tally.rows))
    assert np.array_equal(one.histogram, other.histogram)
    assert one.cells.high.tolist() == other.cells.high.tolist()
