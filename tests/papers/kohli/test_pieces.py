"""Histograms, trees, post-processing, the split and the private upper bound."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallyveil as tv
from tallyveil.errors import ArgumentError, TableError
from tallyveil.papers.kohli import tree
from tallyveil.papers.kohli.histogram import checked_counts
from tallyveil.papers.kohli.postprocess import POSTPROCESSING, monotone, to_law
from tallyveil.publish.budget_split import rule_of_thumb, split_budget
from tallyveil.sampling.entropy import SeededNotPrivate


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
        checked_counts(np.array(counts) if counts != [] else [], 40)
    assert str(SECRET) not in str(caught.value)


def test_top_coding_and_whole_floats():
    assert checked_counts([0.0, 41.0, 1e300], 40, "top_code").tolist() == [0, 40, 40]
    with pytest.raises(ArgumentError, match="'refuse' or 'top_code'"):
        checked_counts([1], 40, "drop")
    with pytest.raises(ArgumentError, match="'upper' must be a whole number"):
        checked_counts([1], 0)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=70), st.integers(2, 16))
def test_trees_without_noise_give_the_bins_back(bins, branching):
    histogram = np.array(bins)
    levels = tree.haar(histogram)
    back = tree.inverse_haar(np.concatenate(levels), histogram.sum())
    np.testing.assert_allclose(back[: len(bins)], histogram, atol=1e-9)
    sums = tree.sums(histogram, branching)
    leaves = tree.consistent(np.concatenate(sums), len(sums), branching, histogram.sum())
    np.testing.assert_allclose(leaves[: len(bins)], histogram, atol=1e-9)


def test_consistent_tree_is_least_squares():
    rng = np.random.default_rng(0)
    noisy, total, b = rng.normal(size=3 + 9), 2.5, 3
    design = np.vstack([np.kron(np.eye(3), np.ones(3)), np.eye(9)])
    found = tree.consistent(noisy, 2, b, total)
    # least squares with the sum held: project residuals, then check they are orthogonal
    residual = design.T @ (noisy - design @ found)
    np.testing.assert_allclose(found.sum(), total)
    np.testing.assert_allclose(residual, residual.mean(), atol=1e-12)


@pytest.mark.parametrize("method", POSTPROCESSING)
def test_a_law_is_left_as_it_is(method):
    law = np.array([0.1, 0.0, 0.6, 0.3])
    np.testing.assert_allclose(to_law(50 * law, method), law, atol=1e-12)


def test_simplex_projection_is_nearest():
    rng = np.random.default_rng(1)
    for _ in range(20):
        point = rng.normal(0.2, 0.5, size=6)
        point += (1 - point.sum()) / 6
        nearest = to_law(point, "simplex")
        others = rng.dirichlet(np.ones(6), size=200)
        assert ((nearest - point) ** 2).sum() <= ((others - point) ** 2).sum(axis=1).min()


def test_isotonic_works_on_cumulative_sums():
    found = to_law([3.0, -1.0, 2.0], "isotonic") * 4
    np.testing.assert_allclose(np.cumsum(found), [2.5, 2.5, 4.0])
    assert monotone([], 1.0).tolist() == []


def test_bad_histograms_and_methods():
    with pytest.raises(ArgumentError, match="'method' must be one of isotonic, clip, simplex"):
        to_law([1.0], "median")
    with pytest.raises(ArgumentError, match="positive sum"):
        to_law([1.0, -2.0])


@pytest.mark.parametrize(
    ("epsilon", "share"),
    [  # 002, section 6: the rule of thumb
        (0.1, 0.5060227514701573),
        (0.22, 0.38947428799898776),
        (0.48, 0.24041357455819834),
        (1.05, 0.13218067188387095),
        (2.29, 0.10674544153194003),
        (5.0, 0.106000312321149),
    ],
)
def test_rule_of_thumb(epsilon, share):
    assert rule_of_thumb(epsilon) == pytest.approx(share, abs=1e-15)


@settings(max_examples=60, deadline=None)
@given(
    st.fractions(Fraction(1, 1000), 20),
    st.sampled_from(["combined", "paper", "distribution_first", "0.3", "1/7", 0]),
    st.integers(1, 10**6),
    st.integers(2, 10**5),
)
def test_the_parts_add_up_exactly(epsilon, rule, records, size):
    split = split_budget(epsilon, rule, records=records, size=size)
    assert split.epsilon1 + split.epsilon2 == epsilon
    assert split.epsilon == epsilon
    assert split.epsilon1 >= 0
    assert split.epsilon2 > 0


def test_rules():
    def share(rule, epsilon, records=10_000, size=50):
        split = split_budget(epsilon, rule, records=records, size=size)
        return float(split.epsilon1 / split.epsilon)

    assert share("paper", 5) == pytest.approx(0.106, abs=1e-6)
    assert share("combined", 1) == pytest.approx(0.85 * rule_of_thumb(1), abs=1e-6)
    assert share("combined", 4.2) == 0  # ln(200) - 1.2 = 4.098
    assert share("combined", 1.9, records=5) == pytest.approx(0.85 * rule_of_thumb(1.9), abs=1e-6)
    assert share("combined", 2, records=5) == 0
    assert share("distribution_first", 0.1) == pytest.approx(0.75)
    assert share("distribution_first", 1) == pytest.approx(0.5)
    assert share("distribution_first", 4.2) == 0


@pytest.mark.parametrize("share", [1, 1.5, -0.1, "2"])
def test_shares_outside_zero_and_one_are_refused(share):
    with pytest.raises(ArgumentError, match=r"'split' must lie in \[0, 1\)"):
        split_budget(1, share, records=10, size=10)


def test_unknown_rule_is_refused():
    with pytest.raises(ArgumentError, match="'split' must be one of combined"):
        split_budget(1, "half", records=10, size=10)


def test_private_upper_bound_is_near_the_quantile():
    counts = np.concatenate([np.arange(1000) % 50, np.full(5, 4000)])
    found = tv.private_upper(counts, "0.5", ceiling=5000, entropy=SeededNotPrivate(1))
    assert found.epsilon == Fraction(1, 2)
    assert 45 <= found.upper <= 60
    assert tv.private_upper(counts, 50, ceiling=5000, quantile=1.0).upper == 4000
    with pytest.raises(ArgumentError, match="'quantile' must lie in"):
        tv.private_upper(counts, 1, ceiling=10, quantile=0)


def test_monotone_is_isotonic_regression():
    from scipy.optimize import isotonic_regression

    rng = np.random.default_rng(5)
    for size in (1, 2, 7, 300):
        for scale in (0.0, 0.3, 4.0):
            noisy = rng.normal(size=size).cumsum() + scale * rng.normal(size=size)
            weights = rng.uniform(0.1, 3, size)
            for chosen in (None, weights):
                wanted = np.clip(isotonic_regression(noisy, weights=chosen).x, 0.0, 2.5)
                np.testing.assert_allclose(monotone(noisy, 2.5, chosen), wanted, atol=1e-12)
