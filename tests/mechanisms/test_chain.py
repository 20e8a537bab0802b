import math
from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.mechanisms.chain import (
    exact_geometric,
    exact_step,
    geometric_rate,
    remove_geometric,
    step,
)

# Reference values of paper 003, Lemma 3 (n = 3), in exact fractions.
QUARTER_TO_HALF = [
    ["7/9", "1/9", "1/18", "1/18"],
    ["7/27", "13/27", "7/54", "7/54"],
    ["7/54", "7/54", "13/27", "7/27"],
    ["1/18", "1/18", "1/9", "7/9"],
]
HALF_TO_THREE_QUARTERS = [
    ["5/7", "1/14", "3/56", "9/56"],
    ["5/14", "2/7", "5/56", "15/56"],
    ["15/56", "5/56", "2/7", "5/14"],
    ["9/56", "3/56", "1/14", "5/7"],
]
# Paper 003, Table 1(b) with errata 003.1: G for n = 3, alpha = 1/4.
TABLE_1B = [
    ["4/5", "3/20", "3/80", "1/80"],
    ["1/5", "3/5", "3/20", "1/20"],
    ["1/20", "3/20", "3/5", "1/5"],
    ["1/80", "3/80", "3/20", "4/5"],
]


def fractions(rows):
    return np.array([[Fraction(cell) for cell in row] for row in rows], dtype=object)


def test_geometric_of_table_1():
    assert (exact_geometric(4, Fraction(1, 4)) == fractions(TABLE_1B)).all()


@pytest.mark.parametrize(
    ("less", "more", "expected"),
    [
        (Fraction(1, 4), Fraction(1, 2), QUARTER_TO_HALF),
        (Fraction(1, 2), Fraction(3, 4), HALF_TO_THREE_QUARTERS),
    ],
)
def test_step_of_lemma_3_exactly(less, more, expected):
    assert (exact_step(4, less, more) == fractions(expected)).all()
    floats = step(4, -math.log(less), -math.log(more))
    assert np.abs(floats - fractions(expected).astype(float)).max() < 1e-15


@pytest.mark.parametrize("size", [2, 3, 5, 9])
@pytest.mark.parametrize(("less", "more"), [("1/4", "1/2"), ("1/10", "99/100"), ("2/3", "2/3")])
def test_step_leads_from_one_geometric_to_the_other_exactly(size, less, more):
    T = exact_step(size, less, more)
    assert (exact_geometric(size, less) @ T == exact_geometric(size, more)).all()
    assert (T.sum(axis=1) == 1).all()
    assert T.min() >= 0


@pytest.mark.parametrize("size", [2, 3, 7])
def test_inverse_is_exact(size):
    identity = remove_geometric(exact_geometric(size, Fraction(3, 7)), Fraction(3, 7))
    assert (identity == np.eye(size, dtype=int)).all()


@pytest.mark.parametrize(("less", "more"), [(5.0, 0.01), (1.0, 0.999999), (0.01, 0.0001)])
def test_step_in_floats_keeps_relative_precision(less, more):
    q = tv.Query.count(40)
    derived = tv.geometric(q, less).matrix @ step(41, less, more)
    expected = tv.geometric(q, more).matrix
    assert np.abs(derived / expected - 1).max() < 1e-11


def test_geometric_rate_judges_the_matrix():
    q = tv.Query.count(6)
    assert geometric_rate(tv.geometric(q, 0.3)) == pytest.approx(0.3, abs=1e-12)
    assert geometric_rate(tv.fair(q, 0.3)) is None
    bent = tv.geometric(q, 0.3).matrix.copy()
    bent[3, 2] += 1e-6
    bent[3, 3] -= 1e-6
    assert geometric_rate(tv.Mechanism(bent, q, 0.3)) is None
    assert geometric_rate(tv.geometric(tv.Query.count(6, extend=3), 0.3)) is None


@pytest.mark.parametrize("ratio", [0, 1, "3/2", -0.5])
def test_ratios_outside_0_1_are_refused(ratio):
    with pytest.raises(tv.ArgumentError, match="strictly between 0 and 1"):
        exact_geometric(3, ratio)


def test_a_step_to_less_privacy_is_refused():
    with pytest.raises(tv.ArgumentError, match="more_private"):
        exact_step(3, Fraction(1, 2), Fraction(1, 4))
