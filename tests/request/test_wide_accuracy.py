"""An accuracy or a table of probabilities for a wide range costs no more memory than there is."""

import pytest

import tallyveil as tv
from tests.asking import privatize

COUNTS = [1, 2, 3] * 9


@pytest.mark.parametrize("upper", [1001, 20_000, 10**6])
def test_a_wide_range_needs_the_epsilon_of_a_narrow_one(upper):
    """Far from both ends a count errs as its noise does; a matrix of 7 TB was asked for."""
    narrow = privatize(COUNTS, upper=40, method="geometric", accuracy=3).receipt.epsilon
    wide = privatize(COUNTS, upper=upper, method="geometric", accuracy=3).receipt.epsilon
    assert wide == narrow


@pytest.mark.parametrize("within", [3000, float("inf"), float("nan"), "x"])
def test_an_accuracy_that_would_take_a_large_matrix_is_refused(within):
    with pytest.raises(tv.ArgumentError, match="'within' must be"):
        privatize(COUNTS, upper=10**6, method="geometric", accuracy=within)


def test_fair_tables_of_probabilities_have_a_largest_size():
    with pytest.raises(tv.ArgumentError, match="'upper' must be at most 5,000"):
        privatize(COUNTS, upper=5001, method="fair", epsilon=1)
