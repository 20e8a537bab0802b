"""Whole numbers that add up, counts with a distribution and totals, and cuts at ranks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallyveil.arrays import Floats
from tallyveil.sums.combine import combine
from tallyveil.sums.grouping import Tree, sum_by
from tallyveil.sums.rounding import (
    Cuts,
    expect_counts,
    hand_out,
    round_down_levels,
    round_family,
    tilt_to_total,
)


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


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 200), st.integers(1, 40), st.floats(0.01, 6))
def test_groups_get_their_totals_inside_the_range(
    seed: int, rows: int, upper: int, epsilon: float
) -> None:
    draw = np.random.default_rng(seed)
    groups = np.unique(draw.integers(0, 6, rows), return_inverse=True)[1]
    members = np.bincount(groups)
    totals = draw.integers(0, members * upper + 1)
    distribution = draw.dirichlet(np.full(upper + 1, 0.3))
    draws, order = draw.integers(0, upper + 1, rows), draw.permutation(rows)
    histogram = tilt_to_total(distribution, rows, int(totals.sum()))
    assert histogram.sum() == rows
    assert histogram @ np.arange(upper + 1) == totals.sum()
    expected = expect_counts(draws, distribution, epsilon, groups, totals, ties=order)
    counts = hand_out(expected, histogram, groups, totals, order)
    assert sum_by(groups, counts, len(totals)).tolist() == totals.tolist()
    assert counts.min() >= 0
    assert counts.max() <= upper


def test_a_large_table_keeps_the_histogram_almost_exactly() -> None:
    draw = np.random.default_rng(3)
    rows, upper = 4000, 60
    groups = np.repeat(np.arange(40), 100)
    truth = np.minimum(draw.poisson(np.repeat(draw.gamma(0.5, 10, 40), 100)), upper)
    noise = draw.geometric(0.3, rows) - draw.geometric(0.3, rows)
    histogram = np.bincount(truth, minlength=upper + 1)
    totals = sum_by(groups, truth, 40).astype(np.int64)
    values = np.clip(truth + noise, 0, upper)
    order = draw.permutation(rows)
    expected = expect_counts(values, histogram / rows, 0.36, groups, totals, ties=order)
    counts = hand_out(expected, histogram, groups, totals, order)
    moved = np.abs(np.bincount(counts, minlength=upper + 1) - histogram).sum() / 2
    assert moved <= 2 * 40  # about a unit and a half for each group
    # ranks alone, without the groups, are further from the truth
    alone = np.empty(rows, dtype=np.int64)
    alone[order[np.argsort(values[order], kind="stable")]] = np.sort(truth)
    assert np.abs(counts - truth).mean() < 0.9 * np.abs(alone - truth).mean()


def spread_scores(kind: str, draw: np.random.Generator, rows: int) -> Floats:
    if kind == "apart":
        return draw.gamma(0.3, 30, rows) - draw.random(rows)
    if kind == "tied":
        return draw.integers(-2, 3, rows).astype(float)
    if kind == "equal":
        return np.full(rows, -7.5)
    if kind == "of every size":
        return draw.normal(0, 1, rows) * 10.0 ** draw.integers(-300, 300, rows)
    return np.append(draw.random(rows - 1), -1e12)


KINDS = ("apart", "tied", "equal", "of every size", "one far below")


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 400), st.sampled_from(KINDS))
def test_runs_are_those_of_a_stable_sort(seed: int, rows: int, kind: str) -> None:
    draw = np.random.default_rng(seed)
    scores = spread_scores(kind, draw, rows)
    ends = np.flatnonzero(draw.random(rows) < draw.random()) + 1
    ends = ends[ends < rows]
    made = Cuts(scores, ends)
    ranking = np.argsort(scores, kind="stable")
    runs = np.empty(rows, dtype=np.int64)
    runs[ranking] = np.searchsorted(ends, np.arange(rows), side="right")
    assert made.limits.tolist() == scores[ranking][ends - 1].tolist()
    assert made.runs.tolist() == runs.tolist()
    values = np.concatenate([scores, scores + draw.normal(0, 3, rows), [-1e301, 1e301]])
    assert made.count_below(values).tolist() == np.searchsorted(made.limits, values).tolist()
    assert made.below.tolist() == np.searchsorted(made.limits, scores).tolist()
