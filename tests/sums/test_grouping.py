"""Trees and margins of rows: numbered by first appearance, summed exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallyveil.errors import UsageError
from tallyveil.sums.grouping import Grouping, Margins, Tree


def test_nodes_are_numbered_by_first_appearance_and_the_rows_are_the_last_level() -> None:
    tree = Tree.of_columns([np.array([7, 7, 3, 3]), np.array([1, 0, 2, 2])])
    assert tree.sizes == (1, 2, 3, 4)
    assert [parents.tolist() for parents in tree.parents] == [[0, 0], [0, 0, 1], [0, 1, 2, 2]]


def test_the_same_label_under_two_parents_is_two_nodes() -> None:
    tree = Tree.of_columns([np.array([0, 1, 1, 0]), np.array([5, 5, 5, 5])])
    assert tree.sizes == (1, 2, 2, 4)


def test_sums_are_whole_numbers_and_too_large_ones_are_refused() -> None:
    tree = Tree((np.zeros(2, dtype=np.int64),))
    assert tree.sum_up(np.array([2**51, 1]))[0].tolist() == [2**51 + 1]
    with pytest.raises(UsageError, match="below"):
        tree.sum_up(np.array([2**52, 2**52]))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_sums_of_free_rows_fill_the_sums_of_all(seed: int, rows: int) -> None:
    draw = np.random.default_rng(seed)
    fine = draw.integers(0, 8, rows)
    free = draw.random(rows) < 0.5
    free[0] = True
    counts = np.where(free, draw.integers(0, 9, rows), 0)
    groups = [np.unique(fine % n, return_inverse=True)[1].reshape(-1) for n in (3, 2)]
    for whole in (Tree.of_columns([fine // 4, fine]), Margins(tuple(groups))):
        made = Grouping.of(whole, free)
        parts = made.part.sum_up(counts[free])
        for level, expected in enumerate(whole.sum_up(counts)):
            assert made.fill(level, parts[level]).tolist() == expected.tolist()
            assert len(parts[level]) == made.part.sizes[level]
