"""Counts with a distribution and with totals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallyveil.sums.grouping import sum_by
from tallyveil.sums.rounding import expect_counts, hand_out, tilt_to_total


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


def test_expectations_rise_with_the_draw_and_with_the_total() -> None:
    distribution, draws = np.full(11, 1 / 11), np.arange(11)
    groups, ties = np.zeros(11, dtype=np.int64), np.arange(11)
    some = expect_counts(draws, distribution, 1.0, groups, np.array([55]), ties=ties)
    more = expect_counts(draws, distribution, 1.0, groups, np.array([70]), ties=ties)
    assert (np.diff(some) > 0).all()
    assert (more > some).all()
    assert some.sum() == pytest.approx(55, abs=0.5)
