"""Steps give what sorting gives, whoever holds the rows."""

from fractions import Fraction

import numpy as np
import pytest

from tallyveil.arrays import Tally
from tallyveil.estimate.draws import Cells, PrivateDraws
from tallyveil.estimate.ranks import match_ranks
from tallyveil.estimate.steps import FIRST_BITS, find_bins, find_steps


def count_digits_of(draws, words, asked):
    """As a task would: how many rows of each prefix have each next digit."""

    def count(prefixes):
        asked.append(len(prefixes))
        found = []
        for draw, beginning, bits, step in prefixes:
            rows = words[draws == draw]
            rows = rows[(rows >> np.uint64(64 - bits)) == beginning] if bits else rows
            digits = (rows << np.uint64(bits)) >> np.uint64(64 - step)
            found.append(np.unique(digits.astype(np.int64), return_counts=True))
        return found

    return count


def hand_out(draws, words, cells, histogram, size=None):
    """Without a size no bins are counted beforehand."""
    bins = None
    if size is not None:
        bins = np.bincount(find_bins(draws, words), minlength=size << FIRST_BITS)
    asked = []
    counting = count_digits_of(draws, words, asked)
    steps = find_steps(Tally.of(draws), bins, cells, histogram, counting)
    return steps, steps.hand_out(draws, words), asked


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("wide", [False, True])
def test_steps_are_ranks(seed, wide):
    """Every row gets what it gets when all rows are sorted by draw and word."""
    random = np.random.default_rng(seed)
    size, rows = int(random.integers(2, 40)), int(random.integers(1, 5000))
    draws = np.minimum(random.geometric(0.2, rows) - 1, size - 1).astype(np.uint8)
    if wide:
        size = 10**9
        draws = np.minimum(draws.astype(np.int64) ** 7, size - 1)
    words = random.integers(0, 2**64, rows, dtype=np.uint64)
    ends = np.unique(np.append(random.integers(0, size, 40), size - 1))
    cells = Cells.ending_at(ends if wide or seed % 3 else np.arange(size))
    histogram = random.multinomial(rows, random.dirichlet(np.ones(len(cells))))
    steps, found, asked = hand_out(draws, words, cells, histogram, None if wide else size)
    sorted_out = PrivateDraws(draws.astype(np.int64), Fraction(1), None, Fraction(0), size)
    expected = match_ranks(sorted_out, cells, histogram, np.argsort(words))
    assert np.array_equal(found, expected)
    assert len(asked) <= 2 + wide
    pairs = np.unique(np.stack([draws, found]), axis=1, return_counts=True)
    stated = {}
    for draw, count, own in zip(steps.draws, steps.counts, steps.rows, strict=True):
        stated[draw, count] = stated.get((draw, count), 0) + own
    counted = {(d, c): n for d, c, n in zip(*pairs[0].tolist(), pairs[1].tolist(), strict=True)}
    assert {pair: n for pair, n in stated.items() if n} == counted


def test_equal_words_get_one_count():
    """Where a limit falls between equal words, all of them go to the cell before it."""
    draws, cells = np.zeros(9, np.uint8), Cells.ending_at(np.arange(3))
    words = np.array([5, 5, 5, 9, 9, 9, 9, 7, 2**63], np.uint64)
    steps, found, asked = hand_out(draws, words, cells, np.array([2, 4, 3]), 3)
    assert found.tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 2]
    assert steps.rows[steps.draws == 0].tolist() == [3, 5, 1]
    assert len(asked) == 3


def test_a_table_of_one_row():
    cells = Cells.ending_at(np.arange(2))
    _, found, _ = hand_out(np.array([1]), np.array([3], np.uint64), cells, np.array([1, 0]), 2)
    assert found.tolist() == [0]
