"""Naive Bayes and the Chow-Liu tree against what they must give."""

import numpy as np
import pytest

from reproduction.cormode_learning import build_tree, classify, mutual_information


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
