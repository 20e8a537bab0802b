"""Distances between distributions, errors of counts, and the variance of footnote 1."""

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

import tallyveil as tv
from tallyveil.errors import ArgumentError


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


def test_refusals():
    with pytest.raises(ArgumentError, match="'second' must be a distribution with 2 entries"):
        tv.wasserstein([0.5, 0.5], [1.0])
    with pytest.raises(ArgumentError, match="'first' must sum to one"):
        tv.total_variation([0.5, 0.6], [0.5, 0.5])
    with pytest.raises(ArgumentError, match="one count for every true one"):
        tv.count_errors([1, 2], [1])
