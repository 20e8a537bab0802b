"""Exact noise on all the whole numbers: two-sided geometric and discrete Gaussian.

For sums and totals, where no bounded table of weights applies. Every law here is exact: the
geometric law consists of integers that were proved private, the Gaussian is the ideal one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_epsilon, exact_rational
from tallyveil.proof.exponent import exp_lower, exp_upper
from tallyveil.proof.noise_law import TOTAL, GeometricLaw
from tallyveil.sampling.entropy import Entropy
from tallyveil.sampling.sampler import Sampler

__all__ = ["discrete_gaussian_noise", "geometric_noise", "noise"]

CHUNK = 1 << 18


def geometric_noise(size: int, epsilon: Epsilon, entropy: Entropy | None = None) -> Integers:
    """`size` independent draws of two-sided geometric noise, Pr(k) close to a^|k| (1-a)/(1+a).

    Adding one to a whole number that one person moves by at most one is epsilon-private,
    exactly: the law is a finite list of integers whose neighbouring ratios, in the table, at
    the joins and therefore arbitrarily far out, are at most a proved lower bound of
    e^epsilon (`tallyveil.proof.noise_law`). There is no cut-off, so no output gives a
    true value away.

    Parameters
    ----------
    size : how many
    epsilon : exact privacy loss per unit step, at least 1e-9
    entropy : None takes a fresh key from the operating system

    >>> draws = geometric_noise(1000, epsilon=50)
    >>> draws.dtype.name, int(np.abs(draws).max())
    ('int64', 0)
    """
    law = GeometricLaw.of(exact_epsilon(epsilon))
    return noise(law, _size(size), _source(entropy))


def noise(law: GeometricLaw, size: int, entropy: Entropy) -> Integers:
    """`size` draws from a certified law; memory O(chunk) beside the result."""
    near, tail = _samplers(law)
    reach = len(law.near)
    drawn = np.empty(size, dtype=np.int64)
    for start in range(0, size, CHUNK):
        part = drawn[start : start + CHUNK]
        part[:] = near.draw(np.zeros(len(part), np.int8), entropy)
        part -= reach
        far = np.flatnonzero(np.abs(part) == reach)
        if len(far):
            part[far] += np.sign(part[far]) * _further(law, tail, len(far), entropy)
    return drawn


def _further(law: GeometricLaw, tail: Sampler, size: int, entropy: Entropy) -> Integers:
    """How far beyond the near weights: whole blocks while a coin says so, then one position."""
    distance = tail.draw(np.zeros(size, np.int8), entropy).astype(np.int64)
    going = np.arange(size)
    while len(going):
        words = (entropy.words(len(going)) >> np.uint64(2)).view(np.int64)
        going = going[words < law.again]
        distance[going] += len(law.block)
    return distance


@lru_cache(maxsize=16)
def _samplers(law: GeometricLaw) -> tuple[Sampler, Sampler]:
    return Sampler(law.table), Sampler(law.block[None, :])


def discrete_gaussian_noise(size: int, sigma2: Epsilon, entropy: Entropy | None = None) -> Integers:
    """`size` independent draws of the discrete Gaussian, Pr(k) ~ exp(-k^2 / (2 sigma2)).

    Exact, by rejection from the discrete Laplace law (Canonne, Kamath and Steinke 2020,
    algorithms 1 to 3). Every coin exp(-x) compares a uniform word with bounds of exp(-x): a
    double decides only where the word is further from it than its error could be, and exact
    rational bounds decide the rest, so no probability is rounded.

    Parameters
    ----------
    size : how many
    sigma2 : the variance parameter, an exact positive rational
    entropy : None takes a fresh key from the operating system

    A sum that one person moves by at most one is (1 / (2 sigma2))-concentrated private.

    >>> int(np.abs(discrete_gaussian_noise(100, sigma2=1)).max()) < 20
    True
    """
    variance = exact_rational(sigma2, "sigma2")
    if not Fraction(1, 10**12) <= variance <= 10**24:
        raise ArgumentError("sigma2", "lie between 1e-12 and 1e24", sigma2)
    scale = math.isqrt(math.floor(variance)) + 1
    source = _source(entropy)
    found = np.empty(_size(size), dtype=np.int64)
    filled = 0
    while filled < size:
        proposed = _laplace(min(CHUNK, 2 * (size - filled) + 16), scale, source)
        kept = proposed[_accepted(proposed, variance, scale, source)][: size - filled]
        found[filled : filled + len(kept)] = kept
        filled += len(kept)
    return found


def _accepted(proposed: Integers, variance: Fraction, scale: int, entropy: Entropy) -> Any:
    """Coins of probability exp(-(|y| - sigma2/t)^2 / (2 sigma2))."""
    centre = float(variance / scale)
    exponent = (np.abs(proposed) - centre) ** 2 / (2 * float(variance))

    def exact(i: int) -> Fraction:
        return (abs(int(proposed[i])) - variance / scale) ** 2 / (2 * variance)

    return _coins(exponent, exact, entropy)


def _laplace(size: int, scale: int, entropy: Entropy) -> Integers:
    """Discrete Laplace draws, Pr(k) proportional to exp(-|k| / scale); about `size` of them."""
    start = entropy.below(scale, 2 * size)
    kept = start[_coins(start / scale, lambda i: Fraction(int(start[i]), scale), entropy)]
    blocks = np.zeros(len(kept), dtype=np.int64)
    going = np.arange(len(kept))
    while len(going):
        going = going[_coins(np.ones(len(going)), lambda i: Fraction(1), entropy)]
        blocks[going] += 1
    size_drawn = kept + scale * blocks
    negative = (entropy.octets(len(kept)) & 1).astype(bool)
    once = ~(negative & (size_drawn == 0))  # zero must not count twice
    signed: Integers = np.where(negative, -size_drawn, size_drawn)[once]
    return signed


def _coins(
    exponent: NDArray[np.float64], exact: Callable[[int], Fraction], entropy: Entropy
) -> NDArray[np.bool_]:
    """Exact coins of probability exp(-x), x >= 0; `exact(i)` gives x of coin i as a rational.

    The word's first 62 bits are compared with the double; 2^-32 is far above any error of
    it, so about one coin in 2^31 needs exact bounds and further bits.
    """
    words = (entropy.words(len(exponent)) >> np.uint64(2)).view(np.int64)
    uniform = words / TOTAL
    likely = np.exp(-exponent)
    heads: NDArray[np.bool_] = uniform < likely
    for i in np.flatnonzero(np.abs(uniform - likely) < 2.0**-32).tolist():
        heads[i] = _settled(int(words[i]), exact(i), entropy)
    return heads


def _settled(word: int, exponent: Fraction, entropy: Entropy) -> bool:
    """Whether a uniform number that starts with these 62 bits lies below exp(-exponent)."""
    if exponent == 0:
        return True
    bits = 62
    while True:
        below, above = 1 / exp_upper(exponent, 2 * bits), 1 / exp_lower(exponent, 2 * bits)
        if Fraction(word + 1, 1 << bits) <= below:
            return True
        if Fraction(word, 1 << bits) >= above:
            return False
        word, bits = (word << 32) | int(entropy.words(1)[0] >> np.uint64(32)), bits + 32


def _source(entropy: Entropy | None) -> Entropy:
    source = Entropy() if entropy is None else entropy
    source.rekey()
    return source


def _size(size: int) -> int:
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0:
        raise ArgumentError("size", "be a whole number of at least 0", size)
    return int(size)
