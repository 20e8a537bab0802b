"""Exact noise on all the whole numbers."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

import tallyveil as tv
from tallyveil.exact import exp_lower, exp_upper
from tallyveil.sampling import noise as module

FALSE_ALARM = 1e-9


def chi_square(draws: np.ndarray, probability, reach: int) -> None:
    """Draws in -reach..reach and beyond, against an ideal law; false alarms once in 10^9."""
    values = np.arange(-reach, reach + 1)
    expected = np.array([probability(int(k)) for k in values]) * len(draws)
    inside = draws[np.abs(draws) <= reach]
    seen = np.bincount(inside + reach, minlength=len(values))
    outside, rest = len(draws) - len(inside), len(draws) - expected.sum()
    statistic = ((seen - expected) ** 2 / expected).sum() + (outside - rest) ** 2 / rest
    assert statistic < chi2.isf(FALSE_ALARM, len(values))


@pytest.mark.parametrize(("epsilon", "reach"), [(0.05, 120), (0.5, 14), (1.0, 7), (3.0, 2)])
def test_geometric_noise_follows_its_law(epsilon, reach):
    draws = tv.geometric_noise(1_000_000, epsilon)
    chi_square(draws, lambda k: np.tanh(epsilon / 2) * np.exp(-epsilon * abs(k)), reach)


def test_geometric_tail_blocks_follow_the_law():
    """At epsilon 1e-5 a quarter of all draws lie beyond the near table, in repeating blocks."""
    draws = tv.geometric_noise(400_000, "1e-5")
    law = np.abs(draws) / 1e5  # close to a standard exponential
    edges = -np.log(1 - np.arange(1, 40) / 40)
    seen = np.bincount(np.searchsorted(edges, law), minlength=40)
    assert ((seen - 10_000) ** 2 / 10_000).sum() < chi2.isf(FALSE_ALARM, 39)
    assert abs((draws > 0).sum() - 200_000) < 6.2 * 400  # six standard deviations and a half


def test_every_outcome_of_a_tail_draw_is_reached_by_the_right_words(scripted):
    """One block further exactly when the 62-bit word is below `again`."""
    law = module.GeometricNoise.of(Fraction(1))
    _, tail = module._make_samplers(law)
    words = [0, 0], [law.again - 1 << 2, law.again << 2], [2**64 - 1]
    assert module._draw_beyond(law, tail, 2, scripted(*words)).tolist() == [len(law.block), 0]


@pytest.mark.parametrize(("sigma2", "reach"), [("0.3", 1), (1, 3), (7, 9), ("123.4", 40)])
def test_discrete_gaussian_noise_follows_its_law(sigma2, reach):
    variance = float(Fraction(sigma2))
    grid = np.arange(-400, 401)
    total = np.exp(-(grid**2) / (2 * variance)).sum()
    draws = tv.discrete_gaussian_noise(200_000, sigma2)
    chi_square(draws, lambda k: np.exp(-(k**2) / (2 * variance)) / total, reach)


@pytest.mark.parametrize("exponent", ["1e-9", "1/3", "1", "7.25", "60"])
def test_close_calls_are_settled_exactly(exponent, scripted):
    """Words one unit around exp(-x): bounds decide, and more bits where they must."""
    x = Fraction(exponent)
    low, high = 1 / exp_upper(x, 256), 1 / exp_lower(x, 256)
    word = int(low * 2**62)
    assert module._settle_coin(word - 1, x, tv.Entropy()) if word else True
    assert not module._settle_coin(word + 1, x, tv.Entropy())
    fraction = low * 2**62 - word  # the share of extensions of `word` that lie below
    assert fraction <= high * 2**62 - word
    threshold = int(fraction * 2**32)
    if 0 < threshold < 2**32 - 1:
        assert module._settle_coin(word, x, scripted([threshold - 1 << 32]))
        assert not module._settle_coin(word, x, scripted([threshold + 1 << 32]))


def test_coins_fall_back_where_a_double_cannot_tell(scripted):
    words, asked = [int(np.exp(-1.0) * 2**62) << 2, 0, (2**62 - 1) << 2], []

    def exact(i):
        asked.append(i)
        return Fraction(1)

    heads = module._toss_coins(np.ones(3), exact, scripted(words, [0], [0]))
    assert asked == [0]
    assert heads[1:].tolist() == [True, False]


def test_a_coin_of_probability_one_always_falls_heads():
    assert module._toss_coins(np.zeros(1000), lambda i: Fraction(0), tv.Entropy()).all()


@pytest.mark.parametrize("size", [-1, 1.5, "3", True])
def test_sizes_are_checked(size):
    with pytest.raises(tv.ArgumentError, match="size"):
        tv.geometric_noise(size, 1.0)
    with pytest.raises(tv.ArgumentError, match="size"):
        tv.discrete_gaussian_noise(size, 1.0)


@pytest.mark.parametrize("sigma2", [0, -1, "nan", "1e30"])
def test_sigma2_is_checked(sigma2):
    with pytest.raises(tv.ArgumentError, match="sigma2"):
        tv.discrete_gaussian_noise(1, sigma2)
