"""Expected counts given the draws of two columns."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tallyveil.estimate import ranks
from tallyveil.estimate.ranks import DrawnColumn, expect_jointly


def add_noise(draw: np.random.Generator, counts: np.ndarray, epsilon: float) -> np.ndarray:
    share = -math.expm1(-epsilon)
    noise = draw.geometric(share, len(counts)) - draw.geometric(share, len(counts))
    return np.maximum(counts + noise, 0)


def test_blurring_is_the_kernel_of_the_noise() -> None:
    draw = np.random.default_rng(1)
    values, epsilons = draw.random((4, 6)), (0.5, 1.5)
    kernels = [
        np.exp(-e * np.abs(np.subtract.outer(np.arange(n), np.arange(n))))
        for e, n in zip(epsilons, values.shape, strict=True)
    ]
    expected = kernels[0] @ values @ kernels[1]
    ratios = tuple(math.exp(-epsilon) for epsilon in epsilons)
    assert np.allclose(ranks._blur(values, ratios), expected, rtol=1e-12)


def make_columns(
    draw: np.random.Generator, *columns: np.ndarray, epsilon: float = 1.0
) -> list[DrawnColumn]:
    """Columns whose distributions are known exactly."""
    return [DrawnColumn(add_noise(draw, c, epsilon), draw.permutation(c), epsilon) for c in columns]


@pytest.mark.parametrize("scale", [1, 300], ids=["undoing both noises", "by classes"])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_both_draws_tell_more_than_one(share: float, scale: int) -> None:
    draw = np.random.default_rng(2)
    large = np.minimum(draw.poisson(draw.gamma(0.5, 8, 3000)), 60)
    small = draw.binomial(large, share)
    own, other = make_columns(draw, small, scale * large)
    assert (own.size * other.size > ranks.MOST_PAIRS) == (scale > 1)
    found = expect_jointly(own, other)
    ranked = []
    for score in (own.draws, found):
        order = np.lexsort((draw.random(len(small)), score))
        handed = np.empty_like(small)
        handed[order] = np.sort(small)
        ranked.append(float(np.abs(handed - small).mean()))
    assert ranked[1] < 0.95 * ranked[0]


def test_columns_apart_are_ranked_as_before() -> None:
    draw = np.random.default_rng(3)
    own, other = make_columns(draw, draw.poisson(4, 4000), draw.poisson(4, 4000))
    found = expect_jointly(own, other)
    assert np.corrcoef(found, own.draws)[0, 1] > 0.9


def test_few_rows_and_wide_ranges_take_the_draws_themselves() -> None:
    few = DrawnColumn(np.arange(50), np.arange(50), 1.0)
    assert expect_jointly(few, few).tolist() == few.draws.tolist()
    many = np.arange(1000) * 10**6
    wide = DrawnColumn(many, many, 1.0)
    assert expect_jointly(wide, wide).tolist() == many.tolist()
