"""`auto` compares predicted errors; the predictions are near what releases of tables get."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.release.methods.auto import choose_method, predict


def measure(counts: Any, upper: int, epsilon: str, method: str, times: int = 3) -> Any:
    """Mean error of rows, distance of distributions, error of sums over 30 rows."""
    groups, ratios = np.arange(len(counts)) // 30, []
    for _ in range(times):
        result = tv.privatize(counts, upper=upper, epsilon=epsilon, method=method).table
        gap = np.asarray(result) - counts
        distance = np.abs(np.sort(result) - np.sort(counts)).mean()
        sums = np.bincount(groups, gap)
        ratios.append((np.abs(gap).mean(), distance, np.sqrt((sums**2).mean())))
    return np.mean(ratios, axis=0)


@pytest.mark.parametrize("epsilon", ["1/2", "1"])
def test_predictions_are_near_what_is_measured(epsilon: str) -> None:
    draw = np.random.default_rng(4)
    level = np.repeat(draw.gamma(2, 0.5, 51), 30)[:1500]
    counts = np.minimum(draw.poisson(draw.gamma(0.5, 8 * level)), 500)
    ratios = measure(counts, 500, epsilon, "preserve") / measure(counts, 500, epsilon, "geometric")
    predicted = predict(len(counts), 500, Fraction(epsilon))
    expected = np.array([predicted.cells, predicted.distribution, predicted.groups])
    assert (np.abs(np.log(ratios / expected)) < np.log(2.5)).all()
    assert choose_method(len(counts), 500, Fraction(epsilon))[0] == "preserve"


def test_a_wide_range_alone_no_longer_decides() -> None:
    """Some 3,000 counties with a generous public bound."""
    for epsilon in ("1/10", "1/2", "1", "2"):
        assert choose_method(3136, 2000, Fraction(epsilon))[0] == "preserve"
    assert choose_method(30, 2000, Fraction(4))[0] == "geometric"
    assert choose_method(19, 2000, Fraction(1, 10))[0] == "geometric"


def test_more_rows_never_speak_against_preserving() -> None:
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(8)):
        chosen = [choose_method(rows, 100, epsilon)[0] for rows in (1, 10, 100, 10**4, 10**7)]
        assert chosen == sorted(chosen)
        assert chosen[-1] == "preserve"


def test_the_receipt_says_what_was_predicted() -> None:
    (column,) = tv.privatize([0, 3, 0, 7, 1] * 100, upper=9, epsilon=1).receipt.columns
    assert column.method.name == "preserve"
    assert str(predict(500, 9, Fraction(1))) in column.why
    (column,) = tv.privatize([0, 3] * 20, upper=9, epsilon=6).receipt.columns
    assert column.method.name == "geometric"
    assert "predicted error of preserve relative" in column.why
    (column,) = tv.privatize([0, 3], upper=9, epsilon=1).receipt.columns
    assert (column.method.name, "2 rows cannot show" in column.why) == ("geometric", True)
    assert "assuming at least" in choose_method(None, 9, Fraction(1))[1]
