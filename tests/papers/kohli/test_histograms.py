"""Histograms, trees and post-processing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallyveil as tv
from tallyveil.errors import ArgumentError, TableError
from tallyveil.papers.kohli.privatizers import (
    POSTPROCESSING,
    check_counts,
    invert_haar,
    make_consistent,
    sum_levels,
    to_distribution,
    transform_haar,
)


def test_bird_flu_like_table():
    counts = np.array([0] * 38 + [1] * 8 + [2] * 2 + [10, 38])
    assert tv.papers.histogram_of_counts(counts, 40)[[0, 1, 2, 10, 38]].tolist() == [38, 8, 2, 1, 1]
    assert tv.papers.distribution_of_counts(counts, 5, above="top_code")[5] == pytest.approx(0.04)


SECRET = 987_654


@pytest.mark.parametrize(
    ("counts", "rule"),
    [
        ([], "no rows"),
        ([[1, 2]], "one column"),
        ([1.5, 2.0], "whole numbers"),
        ([1.0, float("nan")], "whole numbers"),
        (["3"], "whole numbers"),
        ([-SECRET], "at least 0"),
        ([SECRET], "above upper=40"),
    ],
)
def test_bad_tables_are_refused_without_quoting_a_count(counts, rule):
    with pytest.raises(TableError, match=rule) as caught:
        check_counts(np.array(counts) if counts != [] else [], 40)
    assert str(SECRET) not in str(caught.value)


def test_top_coding_and_whole_floats():
    assert check_counts([0.0, 41.0, 1e300], 40, "top_code").tolist() == [0, 40, 40]
    with pytest.raises(ArgumentError, match="'refuse' or 'top_code'"):
        check_counts([1], 40, "drop")
    with pytest.raises(ArgumentError, match="'upper' must be a whole number"):
        check_counts([1], 0)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=70), st.integers(2, 16))
def test_trees_without_noise_give_the_bins_back(bins, branching):
    histogram = np.array(bins)
    levels = transform_haar(histogram)
    back = invert_haar(np.concatenate(levels), histogram.sum())
    np.testing.assert_allclose(back[: len(bins)], histogram, atol=1e-9)
    sums = sum_levels(histogram, branching)
    leaves = make_consistent(np.concatenate(sums), len(sums), branching, histogram.sum())
    np.testing.assert_allclose(leaves[: len(bins)], histogram, atol=1e-9)


def test_consistent_tree_is_least_squares():
    rng = np.random.default_rng(0)
    noisy, total, b = rng.normal(size=3 + 9), 2.5, 3
    design = np.vstack([np.kron(np.eye(3), np.ones(3)), np.eye(9)])
    found = make_consistent(noisy, 2, b, total)
    # least squares with the sum held: project residuals, then check they are orthogonal
    residual = design.T @ (noisy - design @ found)
    np.testing.assert_allclose(found.sum(), total)
    np.testing.assert_allclose(residual, residual.mean(), atol=1e-12)


@pytest.mark.parametrize("method", POSTPROCESSING)
def test_a_distribution_is_left_as_it_is(method):
    shares = np.array([0.1, 0.0, 0.6, 0.3])
    np.testing.assert_allclose(to_distribution(50 * shares, method), shares, atol=1e-12)


def test_simplex_projection_is_nearest():
    rng = np.random.default_rng(1)
    for _ in range(20):
        point = rng.normal(0.2, 0.5, size=6)
        point += (1 - point.sum()) / 6
        nearest = to_distribution(point, "simplex")
        others = rng.dirichlet(np.ones(6), size=200)
        assert ((nearest - point) ** 2).sum() <= ((others - point) ** 2).sum(axis=1).min()


def test_isotonic_works_on_cumulative_sums():
    found = to_distribution([3.0, -1.0, 2.0], "isotonic") * 4
    np.testing.assert_allclose(np.cumsum(found), [2.5, 2.5, 4.0])


def test_bad_histograms_and_methods():
    with pytest.raises(ArgumentError, match="'method' must be one of isotonic, clip, simplex"):
        to_distribution([1.0], "median")
    with pytest.raises(ArgumentError, match="positive sum"):
        to_distribution([1.0, -2.0])
