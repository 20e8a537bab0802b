"""What two draws together say of a count."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tallyveil.estimate import together
from tallyveil.estimate.together import DrawnColumn, expect_together, find_partners


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
    assert np.allclose(together._blur(values, ratios), expected, rtol=1e-12)


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
    assert (own.size * other.size > together.MOST_PAIRS) == (scale > 1)
    found = expect_together(own, other)
    ranked = []
    for score in (own.draws, found):
        order = np.lexsort((draw.random(len(small)), score))
        handed = np.empty_like(small)
        handed[order] = np.sort(small)
        ranked.append(float(np.abs(handed - small).mean()))
    assert ranked[1] < 0.95 * ranked[0]


def test_columns_that_go_together_help_each_other_and_others_do_not() -> None:
    draw = np.random.default_rng(4)
    rate = draw.gamma(0.5, 8, 2000)
    alone = np.minimum(draw.poisson(draw.gamma(0.5, 8, 2000)), 60)
    one, two = (np.minimum(draw.poisson(rate), 60) for _ in range(2))
    columns = make_columns(draw, one, alone, two, epsilon=0.5)
    assert find_partners(columns, draw.permutation(2000)) == [2, None, 0]


def test_columns_apart_are_hardly_ever_taken_for_partners() -> None:
    draw, found = np.random.default_rng(5), 0
    for _ in range(30):
        columns = make_columns(draw, draw.poisson(3, 400), draw.poisson(5, 400), epsilon=0.5)
        found += find_partners(columns, draw.permutation(400)) != [None, None]
    assert found <= 4, "chance finds a larger gain than in three shuffles for both at most 1 in 16"


def test_columns_apart_are_ranked_as_before() -> None:
    draw = np.random.default_rng(3)
    own, other = make_columns(draw, draw.poisson(4, 4000), draw.poisson(4, 4000))
    found = expect_together(own, other)
    assert np.corrcoef(found, own.draws)[0, 1] > 0.9


def test_few_rows_and_wide_ranges_take_the_draws_themselves() -> None:
    few = DrawnColumn(np.arange(50), np.arange(50), 1.0)
    assert expect_together(few, few).tolist() == few.draws.tolist()
    assert find_partners([few, few], np.arange(50)) == [None, None]
    many = np.arange(1000) * 10**6
    wide = DrawnColumn(many, many, 1.0)
    assert expect_together(wide, wide).tolist() == many.tolist()
    assert find_partners([wide, wide], np.random.default_rng(1).permutation(1000)) == [None, None]
