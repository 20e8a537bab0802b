"""The two-pass estimate is the best linear unbiased one, with exact (co)variances."""

from __future__ import annotations

import numpy as np
import pytest

from tallyveil.arrays import Floats
from tallyveil.sums.combine import (
    WeightedNoises,
    combine,
    find_half_widths,
    noise_variance,
    weigh_measurements,
)
from tallyveil.sums.grouping import Tree


def incidence(tree: Tree) -> list[Floats]:
    """For every level, which rows each node has."""
    rows = tree.sizes[-1]
    return [
        (tree.spread_down(np.arange(size), level, tree.depth) == np.arange(size)[:, None]) * 1.0
        if level < tree.depth
        else np.eye(rows)
        for level, size in enumerate(tree.sizes)
    ]


def spread_out(part: WeightedNoises, tree: Tree) -> Floats:
    """The weight of every single noise: rows of one group may share theirs."""
    return part.weights if part.times is None else part.weights[tree.parents[-1]]


@pytest.mark.parametrize("seed", range(12))
def test_it_equals_dense_least_squares(seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows = int(draw.integers(4, 14))
    tree = Tree.of_columns([draw.integers(0, 3, rows), draw.integers(0, 2, rows)])
    epsilons = [
        float(draw.uniform(0.1, 2)) if level == tree.depth or draw.random() < 0.7 else None
        for level in range(tree.depth + 1)
    ]
    variances = [None if e is None else noise_variance(e) for e in epsilons]
    sums = incidence(tree)
    measured = [
        None if e is None else draw.normal(0, 9, size)
        for e, size in zip(epsilons, tree.sizes, strict=True)
    ]
    made = combine(tree, measured, variances)

    known = [level for level, e in enumerate(epsilons) if e is not None]
    design = np.vstack([sums[level] for level in known])
    weight = np.concatenate([np.full(tree.sizes[i], 1 / variances[i]) for i in known])  # type: ignore[operator]
    covariance = np.linalg.inv(design.T @ (weight[:, None] * design))
    values = np.concatenate([measured[level] for level in known])  # type: ignore[misc]
    best = covariance @ (design.T @ (weight * values))
    gain = covariance @ (design.T * weight)
    for level in range(tree.depth + 1):
        np.testing.assert_allclose(made.estimates[level], sums[level] @ best, atol=1e-9)
        exact = np.diag(sums[level] @ covariance @ sums[level].T)
        np.testing.assert_allclose(made.variances[level], exact, atol=1e-9)
        found = [(i, e, 1) for i, e in enumerate(epsilons) if e is not None]
        for node in range(tree.sizes[level]):
            weights = weigh_measurements(made, found, level, node)
            joined = np.concatenate([spread_out(part, tree) for part in weights])
            np.testing.assert_allclose(joined, sums[level][node] @ gain, atol=1e-9)
    first, second = draw.normal(size=rows), draw.normal(size=rows)
    assert made.covariance(first, second) == pytest.approx(first @ covariance @ second)
    assert made.covariance(first) == pytest.approx(first @ covariance @ first)


def test_exact_sums_stay_as_they_are() -> None:
    tree = Tree.of_columns([np.array([0, 0, 1, 1])])
    known = np.array([10.0, 4.0])
    made = combine(tree, [None, known, np.array([1, 2, 3, 4])], [None, 0.0, 2.0])
    assert made.estimates[1].tolist() == known.tolist()
    assert made.estimates[0].tolist() == [14.0]
    assert made.variances[1].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(tree.sum_children(made.estimates[2], 2), known)


@pytest.mark.parametrize(("epsilon", "rows"), [(4.0, 3), (4.0, 1), (0.1, 1), (1.0, 30), (2.0, 5)])
def test_intervals_hold_the_truth_as_often_as_they_say_and_little_more(
    epsilon: float, rows: int
) -> None:
    tree = Tree((np.zeros(rows, dtype=np.int64),))
    made = combine(tree, [None, np.zeros(rows)], [None, noise_variance(epsilon)])
    half = find_half_widths(made, [(1, epsilon, 1)], 0, 0.95)[0]
    chance = -np.expm1(-epsilon)
    draw = np.random.default_rng(1)
    noise = (draw.geometric(chance, (40_000, rows)) - draw.geometric(chance, (40_000, rows))).sum(1)
    error = 3 * np.sqrt(0.05 * 0.95 / 40_000)
    assert (np.abs(noise) <= half).mean() >= 0.95 - error
    assert (np.abs(noise) <= half - 1.05).mean() <= 0.95 + error
