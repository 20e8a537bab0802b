"""Bound e^epsilon by rational numbers that are proved to lie on one side of it.

Privacy compares two weights with a factor e^epsilon. The factor is irrational, so a proof
needs a rational number that is certainly not above it. Everything here is integer
arithmetic; nothing is rounded to nearest, only down or only up.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers

__all__ = ["Growth", "exp_lower", "exp_upper"]

WORD = 64
LARGEST_WEIGHT = (1 << 63) - 1
CELLS_AT_ONCE = 1 << 15
"""Cells handled at once: the temporaries stay in cache."""


def exp_lower(epsilon: Fraction, bits: int = 128) -> Fraction:
    """Return a rational not above e^epsilon; the relative gap is below 2^-100 at 128 bits.

    The Taylor sum in units of 2^-bits, for epsilon > 0, every term rounded down and the rest left
    out, so every step can only lower the result.

    >>> lower = exp_lower(Fraction(1))
    >>> 0 < Fraction("2.71828182845904523536028747135267") - lower < Fraction(1, 10**30)
    True
    """
    term = total = 1 << bits
    order = 0
    while term:
        order += 1
        term = term * epsilon.numerator // (epsilon.denominator * order)
        total += term
    return Fraction(total, 1 << bits)


def exp_upper(epsilon: Fraction, bits: int = 128) -> Fraction:
    """Return a rational not below e^epsilon; the relative gap is below 2^-100 at 128 bits.

    The Taylor sum with every term rounded up. It stops after a term with order at least
    2 epsilon; from there each true term is at most half the one before, so all the rest together
    are at most the last term, which is added once more.
    """
    term = total = 1 << bits
    order = 0
    while term > 1 or order < 2 * epsilon:
        order += 1
        term = -(-term * epsilon.numerator // (epsilon.denominator * order))
        total += term
    return Fraction(total + term, 1 << bits)


@dataclass(frozen=True)
class Growth:
    """The factor numerator / 2^shift by which neighbouring weights may differ.

    `Growth.of(epsilon)` is never above e^epsilon and within a relative 2^-63 (1.1e-19) of it,
    with a numerator below 2^64 and a shift in 1..63. Where e^epsilon is 2^62 or more it is
    exactly 2^62, which no two positive weights of a row total of 2^62 can exceed.
    """

    numerator: int
    shift: int

    @classmethod
    def of(cls, epsilon: Fraction) -> Growth:
        """Return the factor for an exact rational epsilon between 1e-12 and 700."""
        bound = exp_lower(epsilon)
        binade = (bound.numerator // bound.denominator).bit_length() - 1
        if binade >= 62:
            return cls(1 << 63, 1)
        shift = 63 - binade
        return cls((bound.numerator << shift) // bound.denominator, shift)

    @property
    def ratio(self) -> Fraction:
        """The factor as a rational number."""
        return Fraction(self.numerator, 1 << self.shift)

    def cap(self, weights: Integers) -> Integers:
        """Return the largest integer each weight allows its neighbours: floor(ratio * weight).

        Exact, in 128-bit arithmetic made of 32-bit limbs; results above 2^63 - 1 are given
        as 2^63 - 1, which no weight exceeds. A weight of 0 allows only 0.

        >>> Growth.of(Fraction(1)).cap(np.array([0, 1, 1000])).tolist()
        [0, 2, 2718]
        """
        flat = np.ascontiguousarray(weights, dtype=np.int64).reshape(-1)
        caps = np.empty_like(flat)
        for start in range(0, len(flat), CELLS_AT_ONCE):
            high, low = _multiply(flat[start : start + CELLS_AT_ONCE], self.numerator)
            part = (high << np.uint64(WORD - self.shift)) | (low >> np.uint64(self.shift))
            part[high >= np.uint64(1 << (self.shift - 1))] = LARGEST_WEIGHT
            caps[start : start + CELLS_AT_ONCE] = part.view(np.int64)
        return caps.reshape(np.shape(weights))

    def need(self, weights: Integers) -> Integers:
        """Return an integer that suffices beside each weight: at least weight / ratio.

        At most 2 above the smallest such integer, never above the weight itself; 0 beside 0
        and 1 beside 1.

        >>> Growth.of(Fraction(1)).need(np.array([0, 1, 2718])).tolist()
        [0, 1, 1000]
        """
        reciprocal = -(-(1 << (WORD + self.shift)) // self.numerator)
        flat = np.ascontiguousarray(weights, dtype=np.int64).reshape(-1)
        enough = np.empty_like(flat)
        for start in range(0, len(flat), CELLS_AT_ONCE):
            part = flat[start : start + CELLS_AT_ONCE]
            high, _ = _multiply(part, reciprocal)
            enough[start : start + CELLS_AT_ONCE] = np.minimum(high.view(np.int64) + 1, part)
        return enough.reshape(np.shape(weights))


def _multiply(weights: Integers, word: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """High and low 64 bits of weight * word, for weights in [0, 2^63) and word < 2^64.

    Schoolbook multiplication of 32-bit halves: ``bottom``, ``cross`` and ``other`` fit in 64
    bits, and ``middle`` adds their parts at 2^32 with room for the carry.
    """
    low_half = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    word_high, word_low = np.uint64(word >> 32), np.uint64(word & 0xFFFFFFFF)
    value = weights.view(np.uint64)
    value_high, value_low = value >> half, value & low_half
    bottom = value_low * word_low
    cross, other = value_low * word_high, value_high * word_low
    middle = (bottom >> half) + (cross & low_half) + (other & low_half)
    low = (bottom & low_half) | (middle << half)
    high = value_high * word_high + (cross >> half) + (other >> half) + (middle >> half)
    return high, low
