"""The parts of experiments of Cormode et al. (2018), and how far optima lie apart."""

import math

import numpy as np
import pytest

import tallyveil as tv
from reproduction.cormode_groups import count_by_group
from reproduction.cormode_learning import build_tree, classify, mutual_information
from reproduction.cormode_optima import bound_least_mass, build_compared, fair_diagonal
from reproduction.matrices import bound_over_optima, bound_spread
from tallyveil.papers.croft import VARIANT_2


def test_the_mass_bound_is_a_bound():
    assert bound_least_mass(5, ("beyond", 1), (1, 4), 0.62) == pytest.approx(0.62, abs=1e-4)


def test_an_incomplete_group_is_left_out():
    assert count_by_group(np.array([1, 0, 1, 1, 1]), 2).tolist() == [1, 2]


@pytest.mark.parametrize(("n", "alpha", "truth"), [(4, 10 / 11, 121 / 541), (5, 2 / 3, 27 / 95)])
def test_fair_diagonal_at_both_parities(n, alpha, truth):
    assert fair_diagonal(n, alpha) == pytest.approx(truth)  # section 6.3
    assert build_compared(n, alpha)["EM"].matrix[0, 0] == pytest.approx(truth)


def test_information_of_independent_and_of_equal_attributes():
    assert mutual_information(np.outer([1.0, 3.0], [2.0, 5.0, 1.0])) == pytest.approx(0, abs=1e-15)
    assert mutual_information(np.diag([1.0, 1.0, 2.0])) == pytest.approx(1.5 * np.log(2))


def test_the_tree_takes_the_best_edges_without_a_circle():
    worth = {("a", "b"): 1.0, ("b", "c"): 2.0, ("a", "c"): 3.0, ("c", "d"): 0.5, ("a", "d"): 0.1}
    assert build_tree(worth) == [("a", "c"), ("b", "c"), ("c", "d")]


def test_naive_bayes_multiplies_what_each_attribute_says():
    tables = {"x": np.array([[6.0, 2.0], [2.0, 2.0]]), "y": np.array([[7.0, 1.0], [1.0, 3.0]])}
    people = {"x": np.array([0, 1, 1]), "y": np.array([0, 0, 1])}
    # class odds 16:8; x = 1 gives 2/8 : 2/4, y = 0 gives 7/8 : 1/4, y = 1 gives 1/8 : 3/4
    assert classify(tables, people, smoothing=0).tolist() == [0, 0, 1]


def test_a_value_never_seen_is_not_impossible():
    tables = {"x": np.array([[9.0, 0.0], [0.0, 1.0]])}
    with np.errstate(divide="raise"):
        assert classify(tables, {"x": np.array([0, 1])}).tolist() == [0, 1]


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
