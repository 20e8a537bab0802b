"""Trees of rows: numbered by first appearance, summed exactly."""

from __future__ import annotations

import numpy as np
import pytest

from tallyveil.errors import UsageError
from tallyveil.sums.grouping import Tree


def test_nodes_are_numbered_by_first_appearance_and_the_rows_are_the_last_level() -> None:
    tree = Tree.of_columns([np.array([7, 7, 3, 3]), np.array([1, 0, 2, 2])])
    assert tree.sizes == (1, 2, 3, 4)
    assert [parents.tolist() for parents in tree.parents] == [[0, 0], [0, 0, 1], [0, 1, 2, 2]]


def test_a_column_that_tells_all_rows_apart_is_the_level_of_the_rows() -> None:
    tree = Tree.of_columns([np.array([0, 0, 1]), np.array([0, 1, 2])])
    assert tree.sizes == (1, 2, 3)


def test_the_same_label_under_two_parents_is_two_nodes() -> None:
    tree = Tree.of_columns([np.array([0, 1, 1, 0]), np.array([5, 5, 5, 5])])
    assert tree.sizes == (1, 2, 2, 4)


def test_sums_are_whole_numbers_and_too_large_ones_are_refused() -> None:
    tree = Tree((np.zeros(2, dtype=np.int64),))
    assert tree.sum_up(np.array([2**51, 1]))[0].tolist() == [2**51 + 1]
    with pytest.raises(UsageError, match="below"):
        tree.sum_up(np.array([2**52, 2**52]))


def test_values_spread_down_to_every_descendant() -> None:
    tree = Tree.of_columns([np.array([0, 0, 1])])
    assert tree.spread_down(np.array([4, 9]), 1, 2).tolist() == [4, 4, 9]
