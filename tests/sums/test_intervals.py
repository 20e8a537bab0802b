"""Half-widths of estimated sums, at confidences that only the far tails of their noise decide."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tallyveil.release.methods.sums import LevelBudget, describe_tree
from tallyveil.sums.combine import (
    WeightedNoises,
    combine,
    find_half_width,
    join_totals,
    noise_variance,
)
from tallyveil.sums.grouping import Margins, Tree


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


def test_weights_that_rows_share_count_as_often_as_there_are_rows() -> None:
    weights, rows = np.array([0.5, -0.2, 0.5, 0.1]), np.array([3, 1, 2, 4])
    shared = WeightedNoises(weights, rows, 0.7, 2)
    single = WeightedNoises(np.repeat(weights, rows), None, 0.7, 2)
    assert shared.variance == pytest.approx(single.variance)
    found, expected = shared.count(weights), single.count(single.weights)
    assert [part.tolist() for part in found] == [part.tolist() for part in expected]
    assert found[1].tolist() == [1, 4, 5]


def test_totals_of_margins_are_joined_with_the_variance_and_the_interval_that_is_stated() -> None:
    """Margins share the noise of their rows: their totals are neither independent nor the same."""
    draw, runs = np.random.default_rng(4), 4000
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
