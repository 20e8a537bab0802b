"""The best linear unbiased estimates of sums, with exact covariances and intervals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tallyveil.arrays import Floats
from tallyveil.mechanisms.geometric import noise_variance
from tallyveil.release.methods.sums import LevelBudget, describe_tree
from tallyveil.sums.combine import (
    WeightedNoises,
    combine,
    find_half_width,
    find_half_widths,
    join_totals,
    weigh_measurements,
)
from tallyveil.sums.grouping import Margins, Tree


def incidence(tree: Tree) -> list[Floats]:
    """For every level, which rows each node has."""
    return [
        (tree.group_rows(level) == np.arange(size)[:, None]) * 1.0
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


@pytest.mark.parametrize("epsilon", ["1/10", "1", "3", "5", "7", "10", "20"])
@pytest.mark.parametrize("nines", range(1, 13))
def test_one_noise_lies_inside_as_often_as_stated(epsilon: str, nines: int) -> None:
    rate, confidence = float(Fraction(epsilon)), 1 - 10.0**-nines
    tree = Tree((np.zeros(1, dtype=np.int64),))
    combined = describe_tree(
        tree, LevelBudget((Fraction(0), Fraction(epsilon)), Fraction(0)), 9, -1
    )
    _, half = find_half_width(combined, [(1, rate, 1)], 1, np.ones(1), confidence)
    a = math.exp(-rate)
    beyond = 2 * a ** (math.ceil(half) + 1) / (1 + a)  # intervals are rounded outwards
    assert beyond <= (1 - confidence) * (1 + 1e-3)
    least = max(0.0, math.log(2 / ((1 - confidence) * (1 + a))) / rate - 1)
    assert half <= 1.5 * least + 3 / rate + 2  # and not much wider than it must be


def test_totals_of_margins_are_joined_with_the_variance_and_the_interval_that_is_stated() -> None:
    """Margins share the noise of their rows: their totals are neither independent nor the same."""
    draw, runs = np.random.default_rng(4), 1600
    margins = Margins((np.arange(30) % 5, np.arange(30) // 10))
    epsilons = (0.4, 0.3, 0.2)

    def noise(epsilon: float, size: int) -> np.ndarray:
        parts = draw.geometric(-math.expm1(-epsilon), (2, size))
        return np.asarray(parts[0] - parts[1])

    def measure() -> list[tuple[object, list[tuple[int, float, int]]]]:
        rows, found = noise(epsilons[-1], 30), []
        for at, epsilon in enumerate(epsilons[:-1]):
            tree = margins.tree(at)
            drawn = [None, noise(epsilon, tree.sizes[1]), rows]
            known = [None, noise_variance(epsilon), noise_variance(epsilons[-1])]
            measured = [(1, epsilon, 1), (2, epsilons[-1], 1)]
            found.append((combine(tree, drawn, known), measured))
        return found

    values = []
    for _ in range(runs):
        trees = measure()
        totals = np.array([float(one.estimates[0][0]) for one, _ in trees])
        value, deviation, half = join_totals(trees, totals, 0.95)
        values.append(value)
    alone = [math.sqrt(one.variances[0][0]) for one, _ in trees]
    assert deviation < 0.95 * min(alone)
    assert np.std(values) == pytest.approx(deviation, rel=4 * (1 / runs) ** 0.5)
    assert abs(np.mean(values)) < 4 * deviation / runs**0.5
    covered = np.mean(np.abs(values) <= half)
    assert abs(covered - 0.95) < 4 * (0.95 * 0.05 / runs) ** 0.5
