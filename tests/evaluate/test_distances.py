"""Distances between distributions, errors of counts, and the variance of footnote 1."""

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

import tallyveil as tv
from tallyveil.errors import ArgumentError


def test_distances_of_point_masses():
    at_zero, at_three = np.eye(5)[0], np.eye(5)[3]
    assert tv.wasserstein(at_zero, at_three) == 3
    assert tv.total_variation(at_zero, at_three) == 1
    assert tv.kolmogorov_smirnov(at_zero, at_three) == 1


def test_against_scipy_and_definitions():
    rng = np.random.default_rng(0)
    one, other = rng.dirichlet(np.ones(12), size=2)
    values = np.arange(12)
    expected = wasserstein_distance(values, values, one, other)
    assert tv.wasserstein(one, other) == pytest.approx(expected, abs=1e-12)
    subsets = ((np.arange(2**12)[:, None] >> values) & 1).astype(bool)
    most = max(abs(one[s].sum() - other[s].sum()) for s in subsets)
    assert tv.total_variation(one, other) == pytest.approx(most, abs=1e-12)
    prefix = max(abs(one[:k].sum() - other[:k].sum()) for k in range(13))
    assert tv.kolmogorov_smirnov(one, other) == pytest.approx(prefix, abs=1e-12)


def test_count_errors():
    found = tv.count_errors([0, 2, 5], [1, 2, 2])
    assert found.absolute == pytest.approx(4 / 3)
    assert found.squared == pytest.approx(10 / 3)


def test_footnote_1_variance_by_enumeration():
    # two rows with true counts 0 and 1: every pair of outputs, weighted by its probability
    mechanism = tv.Mechanism([[0.7, 0.3], [0.2, 0.8]], tv.Query.count(1))
    shares, weights = [], []
    for first in (0, 1):
        for second in (0, 1):
            shares.append(((first == 1) + (second == 1)) / 2)
            weights.append(mechanism.matrix[0, first] * mechanism.matrix[1, second])
    mean = np.average(shares, weights=weights)
    variance = np.average((np.array(shares) - mean) ** 2, weights=weights)
    found = tv.papers.released_share_variance(mechanism, [0.5, 0.5], records=2)
    np.testing.assert_allclose(found, [variance, variance], atol=1e-15)


def test_footnote_1_with_a_fixed_point():
    z = np.array([0.5, 0.3, 0.2])
    T = tv.transport(tv.Query.count(2), 1.0, z)
    expected = (z - z @ T.matrix**2) / 50
    np.testing.assert_allclose(tv.papers.released_share_variance(T, z, 50), expected, atol=1e-15)


def test_refusals():
    with pytest.raises(ArgumentError, match="'second' must be a distribution with 2 entries"):
        tv.wasserstein([0.5, 0.5], [1.0])
    with pytest.raises(ArgumentError, match="'first' must sum to one"):
        tv.total_variation([0.5, 0.6], [0.5, 0.5])
    with pytest.raises(ArgumentError, match="one count for every true one"):
        tv.count_errors([1, 2], [1])
    with pytest.raises(ArgumentError, match="at least 1"):
        tv.papers.released_share_variance(tv.geometric(tv.Query.count(1), 1.0), [0.5, 0.5], 0)
