from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.exact import exact_delta, exact_ratio, exact_rational


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (0.1, Fraction(1, 10)), (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)), (np.int64(2), Fraction(2)), (1, Fraction(1)),
        ("1/2", Fraction(1, 2)), (" 0.1 ", Fraction(1, 10)), ("1e-3", Fraction(1, 1000)),
        ("0.5/2", Fraction(1, 4)), (Decimal("0.3"), Fraction(3, 10)),
        (Fraction(2, 3), Fraction(2, 3)),
    ],
)  # fmt: skip
def test_a_number_means_what_it_prints_as(given, meant):
    assert exact_rational(given) == meant
    assert tv.geometric(tv.Query.count(2), given).exact_epsilon == meant


@pytest.mark.parametrize("bad", ["", "one", "1/0", "nan", "inf", "1/2/3", float("nan"), [1], None])
def test_nonsense_is_refused(bad):
    with pytest.raises(tv.ArgumentError, match="'value' must be"):
        exact_rational(bad)


@pytest.mark.parametrize("bad", [-1e-9, 1, 2.0, "1e-400"])
def test_delta_lies_in_the_unit_interval(bad):
    with pytest.raises(tv.ArgumentError, match="'delta' must"):
        exact_delta(bad)


def test_ratios_lie_between_zero_and_one():
    assert exact_ratio("0.25") == Fraction(1, 4)
    for bad in (0, 1, "3/2", -0.5, None, "a"):
        with pytest.raises(tv.ArgumentError, match="'ratio' must"):
            exact_ratio(bad)


@pytest.mark.parametrize(
    "text", ["1e6000", "1e-6000", "1e-99999999", "0." + "1" * 6000, "1" * 6000]
)
def test_decimals_of_thousands_of_digits_are_refused(text):
    with pytest.raises(tv.ArgumentError, match="be a finite number"):
        exact_rational(text)
