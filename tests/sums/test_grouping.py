"""Groups of rows some of which are 0 for certain."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tallyveil.sums.grouping import Grouping, Margins, Tree


def test_all_rows_free_changes_nothing() -> None:
    tree = Tree.of_columns([np.array([0, 0, 1])])
    for made in (Grouping.of(tree), Grouping.of(tree, np.ones(3, dtype=bool))):
        assert made.part is tree
        assert made.fill(1, np.array([4, 5])).tolist() == [4, 5]


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
