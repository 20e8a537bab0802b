"""The factor e^epsilon by which neighbouring weights may differ, as an integer and a shift.

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
from tallyveil.exact import exp_lower

__all__ = ["Growth"]

WORD = 64
LARGEST_WEIGHT = (1 << 63) - 1
CELLS_AT_ONCE = 1 << 15
"""Cells handled at once: the temporaries stay in cache."""


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
