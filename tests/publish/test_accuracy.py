"""The stated accuracy is the true one."""

from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.publish.accuracy import estimated_spread, geometric_accuracy
from tallyveil.sampling.entropy import SeededNotPrivate


@pytest.mark.parametrize("upper", [1, 2, 7, 40])
@pytest.mark.parametrize("epsilon", ["1/20", "1/2", "1", "3", "20"])
def test_the_formulas_agree_with_the_matrix(upper, epsilon):
    exact = Fraction(epsilon)
    mechanism = tv.geometric(tv.Query.count(upper), exact)
    figures = geometric_accuracy(upper, exact)
    np.testing.assert_allclose(figures.bias, mechanism.bias(), atol=1e-9)
    np.testing.assert_allclose(figures.rmse, mechanism.rmse(), atol=1e-9)
    np.testing.assert_array_equal(figures.interval, mechanism.interval(0.95))


def table(rows=4000, upper=40):
    """Counts like cases by county: many zeros, a long tail, in random order."""
    share = (np.arange(rows) + 0.5) / rows
    counts = np.floor(6 * (-np.log(1 - share)) ** 1.3).astype(int)
    return np.minimum(counts[SeededNotPrivate(1).permutation(rows)], upper)


@pytest.mark.parametrize("method", ["geometric", "fair", "preserve"])
def test_intervals_cover_what_they_say(method):
    """95 % intervals, 8 releases of 4,000 rows: a fair interval fails below 0.935 with a
    chance of less than 1e-9 if rows were independent (sd 0.0012)."""
    true = table()
    inside = []
    for seed in range(8):
        rel = tv.privatize(true, upper=40, epsilon=1, method=method, entropy=SeededNotPrivate(seed))
        figures = rel.receipt.columns[0].accuracy
        low, high = (np.array(figures[f"interval_{end}"])[true] for end in ("low", "high"))
        inside.append(((rel.table >= low) & (rel.table <= high)).mean())
    assert np.mean(inside) > 0.935


def test_stated_bias_and_error_are_seen_in_preserved_tables():
    """Means over 8 releases and thousands of rows; the tolerance is over six standard errors."""
    true = table()
    for at in (0, 1, 3, 10):
        errors, bias, rmse = [], [], []
        for seed in range(8):
            rel = tv.privatize(true, upper=40, epsilon=1, entropy=SeededNotPrivate(seed))
            figures = rel.receipt.columns[0].accuracy
            errors.append((rel.table - true)[true == at])
            bias.append(figures["bias"][at])
            rmse.append(figures["rmse"][at])
        seen = np.concatenate(errors)
        margin = 6 * seen.std() / np.sqrt(len(seen)) + 0.05
        assert abs(seen.mean() - np.mean(bias)) < margin
        assert abs(np.sqrt((seen**2).mean()) - np.mean(rmse)) < margin


def test_the_stated_spread_of_the_distribution_holds():
    """Of 41 bins in 8 releases, two standard errors hold for at least 90 % (stated: 95 %)."""
    true = table()
    histogram = np.bincount(true, minlength=41)
    held = []
    for seed in range(8):
        rel = tv.privatize(true, upper=40, epsilon=1, entropy=SeededNotPrivate(seed))
        found = rel.receipt.to_dict()["columns"][0]["distribution"]
        gap = np.abs(np.array(found["histogram"]) - histogram)
        held.append((gap <= np.array(found["spread"]) + 0.5).mean())
    assert np.mean(held) > 0.90


def test_more_budget_for_the_distribution_means_less_spread():
    histogram = np.bincount(table(), minlength=41)
    wide = estimated_spread(histogram, Fraction(0), Fraction(1))
    narrow = estimated_spread(histogram, Fraction(1, 2), Fraction(1))
    assert (narrow < wide).all()
