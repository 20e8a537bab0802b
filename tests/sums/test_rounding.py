"""Whole numbers that add up, stay inside their bounds, and are near their targets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallyveil.errors import UsageError
from tallyveil.sums.combine import combine
from tallyveil.sums.grouping import Tree, sum_by
from tallyveil.sums.rounding import round_down_levels, round_family


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 60), st.sampled_from([1, 3, 50, 10**6]))
def test_every_level_adds_up_between_its_bounds(seed: int, rows: int, upper: int) -> None:
    draw = np.random.default_rng(seed)
    tree = Tree.of_columns([draw.integers(0, 4, rows), draw.integers(0, 3, rows)])
    uppers = np.where(draw.random(rows) < 0.2, 0, upper)  # some rows are structural zeros
    measured = [draw.normal(0, upper, size) for size in tree.sizes]
    made = combine(tree, measured, [float(v) for v in draw.uniform(0.01, 100, tree.depth + 1)])
    bounds = tree.sum_up(uppers)
    levels = round_down_levels(made, bounds, draw.permutation(rows), tree.depth)
    for level in range(1, tree.depth + 1):
        summed = sum_by(tree.parents[level - 1], levels[level], tree.sizes[level - 1])
        assert summed.tolist() == levels[level - 1].tolist()
    for values, most in zip(levels, bounds, strict=True):
        assert values.dtype == np.int64
        assert values.min() >= 0
        assert (values <= most).all()


@pytest.mark.parametrize("seed", range(40))
def test_with_equal_variances_no_other_whole_numbers_are_nearer(seed: int) -> None:
    draw = np.random.default_rng(seed)
    target, upper = draw.normal(2, 2, 4), np.full(4, 5)
    total = int(draw.integers(0, 21))
    family = np.zeros(4, dtype=np.int64)
    found = round_family(
        target, np.ones(4), family, np.array([total]), uppers=upper, order=np.arange(4)
    )
    best = min(
        sum((x - t) ** 2 for x, t in zip(other, target, strict=True))
        for other in itertools.product(range(6), repeat=4)
        if sum(other) == total
    )
    assert ((found - target) ** 2).sum() == pytest.approx(best)


def test_a_total_that_cannot_be_met_is_refused() -> None:
    family = np.zeros(2, dtype=np.int64)
    with pytest.raises(UsageError, match="outside"):
        round_family(
            np.ones(2),
            np.ones(2),
            family,
            np.array([5]),
            uppers=np.array([2, 2]),
            order=np.arange(2),
        )
