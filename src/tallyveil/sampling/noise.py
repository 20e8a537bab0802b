"""Draw exact noise on all the whole numbers: two-sided geometric and discrete Gaussian.

For sums and totals, where no bounded table of weights applies. Both distributions are exact: the
geometric one consists of integers that were proved private, the Gaussian is the ideal one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from tallyveil.answers import read_whole
from tallyveil.arrays import Floats, Integers, Mask
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_epsilon, exact_rational, exp_lower, exp_upper
from tallyveil.proof.geometric_noise import GeometricNoise
from tallyveil.proof.rounding import TOTAL, TOTAL_BITS
from tallyveil.sampling.cores import CHUNK
from tallyveil.sampling.entropy import Entropy
from tallyveil.sampling.marks import mark_draws
from tallyveil.sampling.sampler import Sampler

__all__ = ["discrete_gaussian_noise", "draw_noise", "geometric_noise"]

COIN_ERROR = 2.0**-32
"""Far above any error of a coin's probability as a double; closer words are settled exactly."""


def geometric_noise(size: int, epsilon: Epsilon, entropy: Entropy | None = None) -> Integers:
    """Draw two-sided geometric noise, Pr(k) close to a^|k| (1-a)/(1+a) with a = exp(-epsilon).

    Adding a draw to a whole number that one person moves by at most one is epsilon-private,
    exactly: the distribution is a finite list of integers whose neighbouring ratios, in the
    table, at the joins and therefore arbitrarily far out, are at most a proved lower bound of
    e^epsilon (`tallyveil.proof.geometric_noise`). There is no cut-off, so no output gives a
    true value away.

    Parameters
    ----------
    size : int
        How many draws, at least 0.
    epsilon : int, float, str, Decimal or Fraction
        The exact privacy loss per unit step, at least 1e-9.
    entropy : Entropy or None
        None takes new bits from the operating system.

    Returns
    -------
    array of int, shape (size,)
        Independent draws.

    Examples
    --------
    >>> draws = geometric_noise(1000, epsilon=50)
    >>> draws.dtype.name, int(np.abs(draws).max())
    ('int64', 0)
    """
    size = read_whole(size, "size", 0, ArgumentError)
    noise = GeometricNoise.of(exact_epsilon(epsilon))
    source = Entropy.for_one_call(entropy)
    drawn: Integers = mark_draws(draw_noise(noise, size, source), source)
    return drawn


def draw_noise(noise: GeometricNoise, size: int, entropy: Entropy) -> Integers:
    """Draw `size` times from a certified distribution; memory O(CHUNK) beside the result."""
    near, tail = _make_samplers(noise)
    reach = len(noise.near)
    drawn = np.empty(size, dtype=np.int64)
    for start in range(0, size, CHUNK):
        part = drawn[start : start + CHUNK]
        near_or_end = near.draw(np.zeros(len(part), np.int8), entropy)
        np.subtract(near_or_end, reach, out=part, dtype=np.int64)
        far = np.flatnonzero((near_or_end == 0) | (near_or_end == 2 * reach))
        if len(far):
            part[far] += np.sign(part[far]) * _draw_beyond(noise, tail, len(far), entropy)
    return drawn


def _draw_beyond(noise: GeometricNoise, tail: Sampler, size: int, entropy: Entropy) -> Integers:
    """Draw distances beyond the near weights: whole blocks while a coin says so, then a place."""
    distance = tail.draw(np.zeros(size, np.int8), entropy).astype(np.int64)
    going = np.arange(size)
    while len(going):
        words = entropy.numbers(len(going), TOTAL_BITS)
        going = going[words < noise.again]
        distance[going] += len(noise.block)
    return distance


@lru_cache(maxsize=16)
def _make_samplers(noise: GeometricNoise) -> tuple[Sampler, Sampler]:
    return Sampler(noise.table), Sampler(noise.block[None, :])


def discrete_gaussian_noise(size: int, sigma2: Epsilon, entropy: Entropy | None = None) -> Integers:
    """Draw discrete Gaussian noise, Pr(k) proportional to exp(-k^2 / (2 sigma2)).

    Exact, by rejection from discrete Laplace noise. Every coin exp(-x) compares a uniform word
    with bounds of exp(-x): a double decides only where the word is further from it than its
    error could be, and exact rational bounds decide the rest, so no probability is rounded. A
    sum that one person moves by at most one is (1 / (2 sigma2))-concentrated private.

    Parameters
    ----------
    size : int
        How many draws, at least 0.
    sigma2 : int, float, str, Decimal or Fraction
        The variance parameter, between 1e-12 and 1e24, taken exactly.
    entropy : Entropy or None
        None takes new bits from the operating system.

    Returns
    -------
    array of int, shape (size,)
        Independent draws.

    References
    ----------
    Canonne, Kamath and Steinke (2020), algorithms 1 to 3.

    Examples
    --------
    >>> int(np.abs(discrete_gaussian_noise(100, sigma2=1)).max()) < 20
    True
    """
    size = read_whole(size, "size", 0, ArgumentError)
    variance = exact_rational(sigma2, "sigma2")
    if not Fraction(1, 10**12) <= variance <= 10**24:
        raise ArgumentError("sigma2", "lie between 1e-12 and 1e24", sigma2)
    scale = math.isqrt(math.floor(variance)) + 1
    source = Entropy.for_one_call(entropy)
    found = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        proposed = _draw_laplace(min(CHUNK, 2 * (size - filled) + 16), scale, source)
        kept = proposed[_accept(proposed, variance, scale, source)][: size - filled]
        found[filled : filled + len(kept)] = kept
        filled += len(kept)
    marked: Integers = mark_draws(found, source)
    return marked


def _accept(proposed: Integers, variance: Fraction, scale: int, entropy: Entropy) -> Mask:
    """Toss coins of probability exp(-(|y| - sigma2/t)^2 / (2 sigma2)), t the scale."""
    centre = float(variance / scale)
    exponent = (np.abs(proposed) - centre) ** 2 / (2 * float(variance))

    def exact(i: int) -> Fraction:
        return (abs(int(proposed[i])) - variance / scale) ** 2 / (2 * variance)

    return _toss_coins(exponent, exact, entropy)


def _draw_laplace(size: int, scale: int, entropy: Entropy) -> Integers:
    """Draw about `size` discrete Laplace numbers, Pr(k) proportional to exp(-|k| / scale)."""
    start = entropy.below(scale, 2 * size)
    kept = start[_toss_coins(start / scale, lambda i: Fraction(int(start[i]), scale), entropy)]
    blocks = np.zeros(len(kept), dtype=np.int64)
    going = np.arange(len(kept))
    while len(going):
        going = going[_toss_coins(np.ones(len(going)), lambda i: Fraction(1), entropy)]
        blocks[going] += 1
    magnitude = kept + scale * blocks
    negative = (entropy.octets(len(kept)) & 1).astype(bool)
    once = ~(negative & (magnitude == 0))  # zero must not count twice
    signed: Integers = np.where(negative, -magnitude, magnitude)[once]
    return signed


def _toss_coins(exponent: Floats, exact: Callable[[int], Fraction], entropy: Entropy) -> Mask:
    """Toss exact coins of probability exp(-x), x >= 0; `exact(i)` is x of coin i as a rational.

    The word's first 62 bits are compared with the double; about one coin in 2^31 comes so
    close that it needs exact bounds and further bits.
    """
    words = entropy.numbers(len(exponent), TOTAL_BITS)
    uniform = words / TOTAL
    likely = np.exp(-exponent)
    heads: Mask = uniform < likely
    for i in np.flatnonzero(np.abs(uniform - likely) < COIN_ERROR).tolist():
        heads[i] = _settle_coin(int(words[i]), exact(i), entropy)
    return heads


def _settle_coin(word: int, exponent: Fraction, entropy: Entropy) -> bool:
    """Whether a uniform number that starts with these 62 bits lies below exp(-exponent)."""
    if exponent == 0:
        return True
    bits = TOTAL_BITS
    while True:
        below, above = 1 / exp_upper(exponent, 2 * bits), 1 / exp_lower(exponent, 2 * bits)
        if Fraction(word + 1, 1 << bits) <= below:
            return True
        if Fraction(word, 1 << bits) >= above:
            return False
        word, bits = (word << 32) | int(entropy.numbers(1, 32)[0]), bits + 32
