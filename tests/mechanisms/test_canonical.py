"""Canonical (epsilon, delta) noise: private to the last bit it may use, and optimal."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.mechanisms.geometric import canonical_cells

CASES = [(e, d) for e in (0.05, 0.5, 1.0, 3.0) for d in (1e-9, 1e-4, 0.03, 0.2)]


def largest_delta(matrix, epsilon):
    """The largest sum of max(0, P - e^epsilon Q) over neighbouring rows."""
    grown = math.exp(epsilon) * matrix
    ahead = np.maximum(matrix[:-1] - grown[1:], 0).sum(axis=1)
    back = np.maximum(matrix[1:] - grown[:-1], 0).sum(axis=1)
    return max(ahead.max(), back.max())


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_the_noise_is_private_and_uses_all_of_delta(epsilon, delta):
    cells = canonical_cells(6, epsilon, delta)
    assert np.abs(cells.sum(axis=1) - 1).max() < 1e-13
    assert (cells >= 0).all()
    assert largest_delta(cells, epsilon) == pytest.approx(delta, rel=1e-5, abs=1e-14)
    rounded = tv.canonical(tv.Query.count(5), epsilon, delta)
    assert largest_delta(rounded.matrix, epsilon) <= delta + 1e-14
    assert np.abs(rounded.matrix - rounded.matrix[::-1, ::-1]).max() < 1e-15


def test_two_answers_by_hand():
    """Randomized response with p = (e^epsilon + delta) / (1 + e^epsilon)."""
    p = (math.e + 0.05) / (1 + math.e)
    found = tv.canonical(tv.Query.count(1), 1, 0.05).matrix
    assert np.allclose(found, [[p, 1 - p], [1 - p, p]], atol=1e-15)


def test_without_delta_it_is_geometric():
    query = tv.Query.count(9)
    assert np.array_equal(tv.canonical(query, 0.7, 0).matrix, tv.geometric(query, 0.7).matrix)
    near = tv.canonical(query, 0.7, 1e-250).matrix
    assert np.allclose(near, tv.geometric(query, 0.7).matrix, rtol=1e-12)


@pytest.mark.parametrize("seed", range(24))
def test_no_private_mechanism_is_better(seed, solve_private):
    """Against linear programs: any prior; absolute, squared and zero-one loss."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 7))
    epsilon, delta = CASES[int(rng.integers(len(CASES)))]
    weight = rng.dirichlet(np.full(size, 0.7))
    name = ("absolute", "squared", "zero_one")[seed % 3]
    found = tv.design(tv.Query.count(size - 1), epsilon, delta=delta, loss=name, prior=weight)
    assert found.method == "canonical+remap"
    assert largest_delta(found.mechanism.matrix, epsilon) <= delta + 1e-13
    i = np.arange(size)
    gap = np.abs(i[:, None] - i)
    costs = weight[:, None] * {"absolute": gap, "squared": gap**2, "zero_one": gap > 0}[name]
    best, _ = solve_private(costs, epsilon, delta=delta)
    assert found.objective == pytest.approx(best, abs=2e-8 * costs.max() + 1e-8)
    assert found.lower_bound <= best + 1e-8


@pytest.mark.parametrize("seed", range(8))
def test_no_private_mechanism_with_the_same_output_distribution_is_better(seed, solve_private):
    rng = np.random.default_rng(100 + seed)
    size = int(rng.integers(2, 6))
    epsilon, delta = CASES[int(rng.integers(len(CASES)))]
    source, target = rng.dirichlet(np.ones(size)), rng.dirichlet(np.ones(size))
    made = tv.transport(tv.Query.count(size - 1), epsilon, source, target, delta=delta)
    assert np.abs(source @ made.matrix - target).max() < 1e-14
    assert largest_delta(made.matrix, epsilon) <= delta + 1e-13
    i = np.arange(size)
    costs = source[:, None] * np.abs(i[:, None] - i)
    best, _ = solve_private(costs, epsilon, delta=delta, marginal=(source, target))
    assert (costs * made.matrix).sum() == pytest.approx(best, abs=2e-8)


def test_it_is_certified_for_counts_in_integers():
    made = tv.certify(tv.canonical(tv.Query.count(40), "0.5", "1e-6"))
    assert made.exact_delta == Fraction(1, 10**6)
    assert made.exact_epsilon == Fraction(1, 2)
    assert made.release(17) in range(41)
    with pytest.raises(tv.ArgumentError, match="adjacent"):
        tv.canonical(tv.Query.maximum(0, 5), 1, 0.1)
