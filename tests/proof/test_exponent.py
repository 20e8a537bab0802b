"""Rational bounds of e^epsilon, against decimals with far more digits."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallyveil.exact import exact_epsilon, exp_lower, exp_upper
from tallyveil.proof.exponent import Growth

EPSILONS = ["1e-12", "1e-9", "1e-4", "0.1", "1/3", "1", "2.5", "20", "42.9", "43", "100", "700"]
rationals = st.fractions(min_value=Fraction(1, 10**12), max_value=700, max_denominator=10**12)
weights = st.integers(0, 2**62)


def exponential(epsilon: Fraction) -> Fraction:
    """e^epsilon right to 150 digits, by another route: Python's decimals."""
    with localcontext() as context:
        context.prec = 480
        return Fraction((Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp())


@pytest.mark.parametrize("text", EPSILONS)
def test_bounds_enclose_and_are_tight(text):
    epsilon = exact_epsilon(text)
    true, lower, upper = exponential(epsilon), exp_lower(epsilon), exp_upper(epsilon)
    assert lower < true < upper
    assert (upper - lower) / true < Fraction(1, 10**30)


@given(rationals)
def test_bounds_enclose_any_rational(epsilon):
    assert exp_lower(epsilon) < exponential(epsilon) < exp_upper(epsilon)


@pytest.mark.parametrize("text", EPSILONS)
def test_growth_is_below_by_less_than_1e_18(text):
    epsilon = exact_epsilon(text)
    true, ratio = exponential(epsilon), Growth.of(epsilon).ratio
    assert ratio <= true
    if true < 2**62:
        assert (true - ratio) / true < Fraction(1, 10**18)
    else:
        assert ratio == 2**62


@given(rationals, st.lists(weights, min_size=1, max_size=20))
def test_cap_is_the_exact_floor(epsilon, values):
    growth = Growth.of(epsilon)
    expected = [min(value * growth.numerator >> growth.shift, 2**63 - 1) for value in values]
    assert growth.cap(np.array(values)).tolist() == expected


@given(rationals, st.lists(weights, min_size=1, max_size=20))
def test_need_suffices_and_wastes_at_most_two(epsilon, values):
    growth = Growth.of(epsilon)
    for value, enough in zip(values, growth.need(np.array(values)).tolist(), strict=True):
        smallest = -((-value << growth.shift) // growth.numerator)
        assert smallest <= enough <= min(smallest + 2, value)
