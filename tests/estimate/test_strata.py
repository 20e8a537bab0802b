"""Strata: rows stay near their draws, parts add up to the whole, and few rows gain from others."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tallyveil.arrays import Floats, Integers
from tallyveil.estimate import histogram
from tallyveil.estimate.draws import PrivateDraws
from tallyveil.estimate.histogram import estimate_histogram, estimate_strata
from tallyveil.estimate.ranks import match_ranks, round_histogram
from tests.estimate.drawing import draw


def draw_strata(
    strata: list[Integers], epsilon: float, upper: int, seed: int
) -> list[PrivateDraws]:
    """Draw as `preserve` does, half of epsilon for each part."""
    half = Fraction(epsilon) / 2
    return [draw(c, upper + 1, half, half, seed * 100 + i) for i, c in enumerate(strata)]


def hand_out(draws: list[PrivateDraws], random: np.random.Generator) -> list[Integers]:
    cells, found = estimate_strata(draws)
    return [
        match_ranks(own, cells, round_histogram(part, own.records), random.permutation(own.records))
        for own, part in zip(draws, found, strict=True)
    ]


@pytest.mark.parametrize("epsilon", [5, 10, 50])
def test_rows_stay_near_their_counts(epsilon: int) -> None:
    for seed in range(12):
        random = np.random.default_rng(seed)
        counts = [random.integers(0, 80, 20) for _ in range(3)]
        draws = draw_strata(counts, epsilon, 90, seed)
        released = hand_out(draws, random)
        worst = max(np.abs(a - b).max() for a, b in zip(released, counts, strict=True))
        assert worst <= 30 / epsilon + 4, seed


def test_no_noise_moves_no_row_of_skewed_strata() -> None:
    random = np.random.default_rng(5)
    counts = [
        np.minimum(random.negative_binomial(0.8, 0.8 / (0.8 + mean), rows), 300)
        for mean, rows in [(60, 40), (20, 900), (5, 200), (90, 400)]
    ]
    draws = draw_strata(counts, 40, 300, 5)
    for released, true in zip(hand_out(draws, random), counts, strict=True):
        assert np.abs(released - true).max() <= 1
        assert np.abs(released - true).mean() < 0.01


def test_rows_stay_as_drawn_where_the_fit_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def lose_digits(*_: object) -> list[Floats]:
        return [np.full(3, np.nan)]

    random = np.random.default_rng(3)
    counts = [random.integers(0, 4, 80), random.integers(16, 21, 80)]
    draws = draw_strata(counts, 20, 20, 3)
    monkeypatch.setattr(histogram, "_fit_all", lose_digits)
    for released, true in zip(hand_out(draws, random), counts, strict=True):
        assert np.abs(released - true).max() <= 2


def test_rows_are_shared_where_totals_say_that_there_are_none() -> None:
    # Two rows are drawn at 0; sharp totals put every row far up.
    far = np.arange(20, 220, 4)
    values = np.append(far, [0, 0])
    totals = np.cumsum(np.bincount(np.append(far, [100, 100]), minlength=301))[:-1]
    draws = [PrivateDraws(values, Fraction(8), totals, Fraction(30), 301) for _ in range(3)]
    _, found = estimate_strata(draws)
    assert all(np.isfinite(one).all() for one in found)
    assert np.allclose([one.sum() for one in found], len(values))


def test_small_strata_gain_from_each_other() -> None:
    together, apart = [], []
    for seed in range(3):
        random = np.random.default_rng(seed)
        counts = [np.minimum(random.negative_binomial(1, 0.15, 40), 40) for _ in range(12)]
        draws = draw_strata(counts, 0.5, 40, seed)
        cells, found = estimate_strata(draws)
        for own, part, true in zip(draws, found, counts, strict=True):
            single = estimate_histogram(own)
            for where, told, kept in (
                (cells, part, together),
                (single.cells, single.histogram, apart),
            ):
                rounded = round_histogram(told, own.records)
                kept.append(np.abs(np.repeat(where.low, rounded) - np.sort(true)).mean())
    assert np.mean(together) < 0.85 * np.mean(apart)
