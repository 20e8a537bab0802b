"""Geometric noise on all the whole numbers as a finite list of integers.

No table holds an unbounded distribution, and cutting one off breaks pure privacy. This one
consists of blocks that repeat instead. With B = len(near), L = len(block), T = 2^62::

    Pr(+-d)                = near[d] / T                                    for d < B
    Pr(+-(B + q L + t))    = beyond / T * (again / T)^q (1 - again / T) * block[t] / T

Two numbers one apart either lie in the same block, or at a join between blocks whose ratio
does not depend on q. So finitely many integer comparisons prove that the ratio of any two
neighbouring probabilities, arbitrarily far out, is at most e^epsilon: `check`. Whoever
adds this noise to a number that one person moves by one is epsilon-private, and clamping
the sum to a range is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from tallyveil.arrays import Integers, freeze
from tallyveil.errors import CertificationError
from tallyveil.exact import exact_epsilon
from tallyveil.proof.certificate import read_rows, rows_text
from tallyveil.proof.exponent import Growth
from tallyveil.proof.rounding import TOTAL

__all__ = ["GeometricNoise"]

LEAST_BLOCK_WEIGHT = 1 << 30
"""A block ends where its weights would be smaller and carry too few digits."""

LONGEST_BLOCK = 1 << 17
"""Most weights of a block."""

LONGEST_TEXT = 20 * LONGEST_BLOCK
"""Most characters of so many weights."""


@dataclass(frozen=True, eq=False)
class GeometricNoise:
    """Two-sided geometric noise, Pr(k) close to (1-a)/(1+a) a^|k| with a = exp(-epsilon).

    `GeometricNoise.of(epsilon)` builds the integers for epsilon of at least 1e-9, `check` proves
    them. The module says what the weights mean; `again` is the weight, out of 2^62, of going one
    block further. They differ from the ideal ones by a relative 5e-6 or less for epsilon of at
    least 1e-6; privacy does not depend on how close they are.
    """

    epsilon: Fraction
    near: Integers
    beyond: int
    block: Integers
    again: int

    @classmethod
    def of(cls, epsilon: Fraction) -> GeometricNoise:
        """Build the noise for an exact rational epsilon; O(min(22/epsilon, 2^17)) integers.

        >>> noise = GeometricNoise.of(Fraction(1))
        >>> noise.check() is None, round(float(noise.near[0]) / 2**62, 6)  # (1 - a) / (1 + a)
        (True, 0.462117)
        """
        return _build(epsilon)

    def check(self) -> str | None:
        """None if the noise is epsilon-private on all the whole numbers, else what is wrong.

        Exact integer arithmetic: totals, every adjacent pair inside the two lists, and the
        two joins. Costs O(len(near) + len(block)).
        """
        growth = Growth.of(self.epsilon)
        near, block = self.near.tolist(), self.block.tolist()
        if min(near) < 1 or min(block) < 1 or self.beyond < 1 or not 0 < self.again < TOTAL:
            return "a weight is not positive"
        if near[0] + 2 * sum(near[1:]) + 2 * self.beyond != TOTAL or sum(block) != TOTAL:
            return "a total is not 2^62"
        for name, weights in (("near", self.near), ("block", self.block)):
            caps = growth.cap(weights)
            broken = (weights[:-1] > caps[1:]) | (weights[1:] > caps[:-1])
            if broken.any():
                return f"{name} weights {int(broken.argmax())} and the next differ too much"
        outside = self.beyond * (TOTAL - self.again) * block[0]
        if not _within_factor(near[-1] * TOTAL * TOTAL, outside, growth):
            return "the join between near weights and the tail differs too much"
        if not _within_factor(block[-1] * TOTAL, self.again * block[0], growth):
            return "the join between two blocks of the tail differs too much"
        return None

    @cached_property
    def table(self) -> Integers:
        """Weights of -beyond, -(B-1), ..., B-1, +beyond as one row, shape (1, 2B + 1)."""
        side = self.near[1:]
        middle = np.concatenate([side[::-1], self.near[:1], side])
        return np.concatenate([[self.beyond], middle, [self.beyond]]).astype(np.int64)[None, :]

    @cached_property
    def variance(self) -> Fraction:
        """The exact variance of a draw; close to 2a/(1-a)^2.

        >>> round(float(GeometricNoise.of(Fraction(1)).variance), 4)
        1.8413
        """
        near, block = self.near.tolist(), self.block.tolist()
        reach, length, going = len(near), len(block), Fraction(self.again, TOTAL)
        inside = sum(d * d * weight for d, weight in enumerate(near))
        first = Fraction(sum((reach + t) * w for t, w in enumerate(block)), TOTAL)
        second = Fraction(sum((reach + t) ** 2 * w for t, w in enumerate(block)), TOTAL)
        blocks, squares = going / (1 - going), going * (1 + going) / (1 - going) ** 2
        outside = second + 2 * length * blocks * first + length * length * squares
        return Fraction(2 * (inside + self.beyond * outside) / TOTAL)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; large integers as decimal text."""
        return {
            "epsilon": str(self.epsilon),
            "near": rows_text(self.near[None, :])[0],
            "beyond": str(self.beyond),
            "block": rows_text(self.block[None, :])[0],
            "again": str(self.again),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> GeometricNoise:
        """The noise that `to_dict` described; nothing is proved by reading it."""
        if max(len(data["near"]), len(data["block"])) > LONGEST_TEXT:
            raise ValueError("the noise has too many weights")
        near, block = read_rows([data["near"]])[0], read_rows([data["block"]])[0]
        epsilon = exact_epsilon(data["epsilon"])
        return cls(epsilon, near, int(data["beyond"]), block, int(data["again"]))


def _within_factor(first: int, second: int, growth: Growth) -> bool:
    """Whether two integers are within the factor of each other."""
    return (
        first << growth.shift <= growth.numerator * second
        and second << growth.shift <= growth.numerator * first
    )


@lru_cache(maxsize=16)
def _build(epsilon: Fraction) -> GeometricNoise:
    growth = Growth.of(epsilon)
    rate = float(epsilon)
    middle = math.tanh(rate / 2)  # (1 - a) / (1 + a)
    digits = math.log(
        middle * TOTAL / LEAST_BLOCK_WEIGHT
    )  # how far weights may fall, as a logarithm
    length = min(max(math.ceil(digits / rate), 1), LONGEST_BLOCK) if digits > 0 else LONGEST_BLOCK

    lost = -math.expm1(-rate) / -math.expm1(-rate * length)
    block, left = _fill_total(
        lambda first: (run := _fall_off(first, length, growth), sum(run)), lost, 1
    )
    # What is left is spread evenly, the last few units at the end: the join is fitted to it.
    share, rest = divmod(left, length)
    block = [weight + share + (t >= length - rest) for t, weight in enumerate(block)]
    again = _divide_up(block[-1] * TOTAL, block[0], growth)

    def with_tail(first: int) -> tuple[list[int], int]:
        run = _fall_off(first, length, growth)
        tail = _divide_up(run[-1] * TOTAL * TOTAL, (TOTAL - again) * block[0], growth)
        return run, run[0] + 2 * (sum(run) - run[0] + tail)

    near, _ = _fill_total(with_tail, middle, 2)
    beyond = (TOTAL + near[0]) // 2 - sum(near)
    near_weights, block_weights = (freeze(np.array(run, np.int64)) for run in (near, block))
    noise = GeometricNoise(epsilon, near_weights, beyond, block_weights, again)
    problem = noise.check()
    if problem is not None:
        raise CertificationError(
            f"Epsilon {rate:g} is too small for geometric noise in 62-bit integers ({problem}). "
            "Use at least 1e-9."
        )
    return noise


def _fall_off(first: int, length: int, growth: Growth) -> list[int]:
    """Weights that fall as fast as the factor allows: next = ceil(weight / ratio)."""
    weight, run, shift, numerator = first, [first], growth.shift, growth.numerator
    for _ in range(length - 1):
        weight = -((-weight << shift) // numerator)  # up to 2^17 times: no call
        run.append(weight)
    return run


def _divide_up(numerator: int, denominator: int, growth: Growth) -> int:
    """ceil(numerator / (ratio * denominator))."""
    return -((-numerator << growth.shift) // (growth.numerator * denominator))


def _fill_total(
    make: Callable[[int], tuple[list[int], int]], share: float, step: int
) -> tuple[list[int], int]:
    """The run with the largest first weight, a multiple of `step`, that fits in 2^62."""
    first = int(share * TOTAL) // step * step
    found = make(first)
    for _ in range(4):  # totals are proportional to the first weight up to rounding
        better = first * TOTAL // found[1] // step * step
        if better == first:
            break
        first, found = better, make(better)
    while found[1] > TOTAL:
        first -= step
        found = make(first)
    return found[0], TOTAL - found[1]
