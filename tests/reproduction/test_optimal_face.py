"""How far optima lie apart: none where the optimum is unique, as far as known where it is not."""

import math

import numpy as np
import pytest

import tallyveil as tv
from reproduction.matrices import bound_over_optima, bound_spread
from tallyveil.papers.croft import VARIANT_2


@pytest.mark.parametrize("alpha", [0.3, 0.9])
def test_the_geometric_mechanism_is_the_only_optimum(alpha):
    """Cormode, Kulkarni and Srivastava (2018), Theorem 5."""
    assert bound_spread(tv.Query.count(2), -math.log(alpha), "zero_one") < 1e-6


def test_two_optima_are_told_apart():
    """Errata, Croft 7: entries of Table 2 vary by 0.204 among optima."""
    query = tv.Query.maximum(1, 5)
    assert bound_spread(query, 1.0, "absolute", VARIANT_2) == pytest.approx(0.2037, abs=5e-5)


def test_a_constant_loss_leaves_everything_open():
    query = tv.Query.count(1)
    assert bound_spread(query, 0.5, np.ones((2, 2))) == pytest.approx(1.0, abs=1e-6)


def test_no_optimum_exceeds_the_bound():
    query, weights = tv.Query.count(3), np.arange(16.0).reshape(4, 4)
    best = tv.design(query, 0.4, "absolute", method="lp").mechanism.matrix
    assert (weights * best).sum() <= bound_over_optima(query, 0.4, "absolute", weights) + 1e-6
