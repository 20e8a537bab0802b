"""What two draws together say of a count."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tallyveil.estimate import together
from tallyveil.estimate.together import expect_together


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
    assert np.allclose(together._blur(values, epsilons), expected, rtol=1e-12)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_both_draws_tell_more_than_one(share: float) -> None:
    draw = np.random.default_rng(2)
    large = np.minimum(draw.poisson(draw.gamma(0.5, 8, 3000)), 60)
    small = draw.binomial(large, share)
    draws = tuple(add_noise(draw, counts, 1.0) for counts in (small, large))
    found = expect_together(draws, (small, large), (1.0, 1.0))
    ranked = []
    for score in (draws[0], found):
        order = np.lexsort((draw.random(len(small)), score))
        handed = np.empty_like(small)
        handed[order] = np.sort(small)
        ranked.append(float(np.abs(handed - small).mean()))
    assert ranked[1] < 0.95 * ranked[0]


def test_columns_apart_are_ranked_as_before() -> None:
    draw = np.random.default_rng(3)
    one, two = (draw.poisson(4, 4000) for _ in range(2))
    draws = tuple(add_noise(draw, counts, 1.0) for counts in (one, two))
    found = expect_together(draws, (one, two), (1.0, 1.0))
    assert np.corrcoef(found, draws[0])[0, 1] > 0.9


def test_few_rows_and_wide_ranges_take_the_draws_themselves() -> None:
    few = np.arange(50)
    assert expect_together((few, few), (few, few), (1.0, 1.0)).tolist() == few.tolist()
    wide = np.arange(1000) * 10**6
    assert expect_together((wide, wide), (wide, wide), (1.0, 1.0)).tolist() == wide.tolist()
