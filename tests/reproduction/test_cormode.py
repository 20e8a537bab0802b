"""The parts of experiments of Cormode et al. (2018), and how far optima lie apart."""

import math

import pytest

import tallyveil as tv
from reproduction.cormode_optima import build_compared, fair_diagonal
from reproduction.matrices import bound_spread
from tallyveil.papers.croft import VARIANT_2


@pytest.mark.parametrize(("n", "alpha", "truth"), [(4, 10 / 11, 121 / 541), (5, 2 / 3, 27 / 95)])
def test_fair_diagonal_at_both_parities(n, alpha, truth):
    assert fair_diagonal(n, alpha) == pytest.approx(truth)  # section 6.3
    assert build_compared(n, alpha)["EM"].matrix[0, 0] == pytest.approx(truth)


@pytest.mark.parametrize("alpha", [0.3, 0.9])
def test_the_geometric_mechanism_is_the_only_optimum(alpha):
    """Cormode, Kulkarni and Srivastava (2018), Theorem 5."""
    assert bound_spread(tv.Query.count(2), -math.log(alpha), "zero_one") < 1e-6


def test_two_optima_are_told_apart():
    """Errata, Croft 7: entries of Table 2 vary by 0.204 among optima."""
    query = tv.Query.maximum(1, 5)
    assert bound_spread(query, 1.0, "absolute", VARIANT_2) == pytest.approx(0.2037, abs=5e-5)
