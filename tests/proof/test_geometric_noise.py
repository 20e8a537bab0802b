"""The unbounded geometric law: finitely many integers, proved arbitrarily far out."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.proof.geometric_noise import GeometricNoise
from tallyveil.proof.rounding import TOTAL

EPSILONS = ["1e-9", "1e-6", "1e-4", "0.01", "0.1", "1", "5", "20", "30", "43", "100", "700"]


def probability(law: GeometricNoise, distance: int) -> Fraction:
    """Pr(Z = +distance), from the definition in the module's docstring."""
    if distance < len(law.near):
        return Fraction(int(law.near[distance]), TOTAL)
    blocks, place = divmod(distance - len(law.near), len(law.block))
    again = Fraction(law.again, TOTAL)
    start = Fraction(law.beyond, TOTAL) * again**blocks * (1 - again)
    return start * Fraction(int(law.block[place]), TOTAL)


@pytest.mark.parametrize("text", EPSILONS)
def test_the_law_checks(text):
    law = GeometricNoise.of(Fraction(text))
    assert law.check() is None
    assert law.table.sum() == TOTAL


@pytest.mark.parametrize("text", ["0.1", "1", "5", "20"])
def test_neighbouring_probabilities_over_several_blocks(text, private):
    """Ratios as exact fractions, across both joins and into the fourth block."""
    epsilon = Fraction(text)
    law = GeometricNoise.of(epsilon)
    values = [probability(law, d) for d in range(len(law.near) + 3 * len(law.block) + 2)]
    scale = max(value.denominator for value in values)
    whole = [[int(value * scale)] for value in values]
    assert all(value * scale == row[0] for value, row in zip(values, whole, strict=True))
    assert private(whole, [(i, i + 1) for i in range(len(whole) - 1)], epsilon)


@pytest.mark.parametrize("text", ["1e-4", "0.01", "0.1", "1", "5"])
def test_the_law_is_close_to_the_ideal_one(text):
    law, epsilon = GeometricNoise.of(Fraction(text)), float(text)
    ideal = np.tanh(epsilon / 2) * np.exp(-epsilon * np.arange(len(law.near)))
    assert np.abs(law.near / TOTAL / ideal - 1).max() < 1e-5
    tail = np.exp(-epsilon * len(law.near)) / (1 + np.exp(-epsilon))
    assert abs(law.beyond / TOTAL / tail - 1) < 1e-4


@pytest.mark.parametrize("text", ["0.05", "1", "5"])
def test_any_weight_off_by_a_little_is_seen(text):
    law = GeometricNoise.of(Fraction(text))
    for name in ("near", "block"):
        weights = getattr(law, name)
        for at in {0, len(weights) // 2, len(weights) - 1}:
            for change in (-1, 1):
                changed = weights.copy()
                changed[at] += change
                assert replace(law, **{name: changed}).check() is not None
    assert replace(law, beyond=law.beyond + 1).check() is not None
    assert replace(law, again=law.again - law.again // 100 - 1).check() is not None


def test_moving_mass_out_of_the_tail_is_seen_at_the_join():
    law = GeometricNoise.of(Fraction(1))
    near = law.near.copy()
    near[-1] += law.beyond // 2
    moved = replace(law, near=near, beyond=law.beyond - law.beyond // 2)
    assert moved.check() in {
        "the join between near weights and the tail differs too much",
        "near weights 20 and the next differ too much",
    }


def test_an_epsilon_too_small_is_refused():
    with pytest.raises(tv.CertificationError, match="too small for geometric noise"):
        GeometricNoise.of(Fraction(1, 10**12))
