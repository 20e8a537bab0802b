"""What several releases cost together, proved in integers: exact composition and zCDP.

A mechanism with a privacy loss of at most epsilon tells no more than randomized response with
that epsilon, whose loss is +epsilon with probability 1 / (1 + e^-epsilon) and -epsilon otherwise.
Geometric noise on a count is that randomized response, so for it the figures here are exact, and
for every other certified mechanism they are a bound. Epsilons must be fixed before the first
draw; if later ones depend on earlier results, use zCDP.

Every rounding goes towards more privacy loss. Nothing here is a floating-point number.

References
----------
Kairouz, Oh and Viswanath (2015), Theorem 3.3; Murtagh and Vadhan (2016); Bun and Steinke (2016);
Canonne, Kamath and Steinke (2020), Proposition 12; Feldman and Zrnic (2021), Theorem 4.3;
Doroshenko, Ghazi, Kamath, Kumar and Manurangsi (2022), Section 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from numbers import Integral
from typing import Any

from tallyveil.errors import ArgumentError
from tallyveil.exact import (
    Epsilon,
    exact_delta,
    exact_epsilon,
    exact_rational,
    exp_lower,
    exp_upper,
)

__all__ = [
    "MOST_SHARED",
    "PrivacyLoss",
    "compose",
    "concentrated_budget",
    "concentrated_cost",
    "concentrated_delta",
    "find_last",
    "share_epsilon",
]

BITS = 160
ONE = 1 << BITS
SLOT = 2 * BITS + 64
"""Bits between neighbouring masses in a packed row: room for every product of two."""

MOST_STEPS = 16_000
"""How many losses are told apart at most; on a coarser grid the result is still a bound."""

MOST_SHARED = 10_000
"""An epsilon is shared by at most so many equal releases: that takes seconds."""

FEW = 8
"""Up to this many equal releases are added one by one; more by squaring."""

FARTHEST = Fraction(400)
"""A delta below e^-400 is rounded up to it: no total is so small, and the sum would not end."""

GRID, FINE_GRID = 10**6, 10**9
"""What is shared out, or found, is a multiple of 1 / GRID, or 1 / FINE_GRID."""


@dataclass(frozen=True)
class PrivacyLoss:
    """The distribution of the total privacy loss of several releases.

    Loss k is ``first + k * step``, with a probability of at most ``masses[k] / 2^160``.
    """

    first: Fraction
    step: Fraction
    masses: tuple[int, ...]

    def delta(self, epsilon: Epsilon) -> Fraction:
        """The smallest delta that goes with `epsilon`, rounded up.

        sum over losses L > epsilon of P(L) (1 - e^(epsilon - L))
        """
        epsilon = exact_rational(epsilon, "epsilon")
        start = max(0, (epsilon - self.first) // self.step + 1)
        tail = self.masses[start:]
        if not tail:
            return Fraction(0)
        shrink = _round_down(1 / exp_upper(self.step, 2 * BITS))
        ratio = _round_down(1 / exp_upper(self.first + start * self.step - epsilon, 2 * BITS))
        total = 0
        for mass in tail:
            total += mass * (ONE - ratio)
            ratio = ratio * shrink >> BITS
        return min(Fraction(1), Fraction(total, ONE * ONE))

    def epsilon(self, delta: Epsilon) -> Fraction:
        """The smallest epsilon, a multiple of 1e-9, that is proved to hold with `delta`."""
        delta = exact_delta(delta)
        largest = self.first + (len(self.masses) - 1) * self.step
        top = -(-largest.numerator * FINE_GRID // largest.denominator)
        short = find_last(-1, top, lambda k: self.delta(Fraction(k, FINE_GRID)) > delta)
        return min(largest, Fraction(short + 1, FINE_GRID))


def compose(epsilons: Iterable[Epsilon]) -> PrivacyLoss:
    """Compose releases with these epsilons, all fixed before the first draw.

    Numbers are exact: 0.1 means 1/10.

    >>> together = compose([0.1] * 100)
    >>> float(together.epsilon(1e-6)), float(together.epsilon(0))
    (4.774567589, 10.0)
    """
    if isinstance(epsilons, str) or not isinstance(epsilons, Iterable):
        raise ArgumentError("epsilons", "be a sequence of numbers, one for each release", epsilons)
    counted = Counter(exact_rational(epsilon, "epsilons") for epsilon in epsilons)
    if any(epsilon <= 0 for epsilon in counted):
        raise ArgumentError("epsilons", "be greater than 0")
    if not counted:
        return PrivacyLoss(Fraction(0), Fraction(1), (ONE,))
    step = _choose_step(counted)
    packed = ONE
    for epsilon, times in counted.items():
        packed = _release(packed, _place_loss(epsilon, step), times)
    return PrivacyLoss(-sum(counted.elements(), Fraction(0)), step, _unpack(packed))


def share_epsilon(times: int, epsilon: Epsilon, delta: Epsilon) -> Fraction:
    """The largest equal epsilon, a multiple of 1e-6, that `times` releases can have together.

    Up to 10,000 of them, which takes seconds.

    >>> float(share_epsilon(100, 1, 1e-6))
    0.024011
    """
    times, epsilon, delta = _check_times(times), exact_epsilon(epsilon), exact_delta(delta)
    low = epsilon.numerator * GRID // (epsilon.denominator * times)
    high = epsilon.numerator * GRID // epsilon.denominator + 1
    last = find_last(
        low, high, lambda k: compose([Fraction(k, GRID)] * times).delta(epsilon) <= delta
    )
    return max(Fraction(last, GRID), epsilon / times)


def _check_times(times: Any) -> int:
    is_whole = isinstance(times, Integral) and not isinstance(times, bool)
    if not is_whole or not 1 <= int(times) <= MOST_SHARED:
        raise ArgumentError("times", f"be a whole number from 1 to {MOST_SHARED:,}", times)
    return int(times)


def concentrated_cost(epsilon: Fraction) -> Fraction:
    """The zCDP parameter of a release, rho = epsilon tanh(epsilon / 2), rounded up.

    The Renyi divergence of order a of randomized response is
    ln(cosh((a - 1/2) epsilon) / cosh(epsilon / 2)) / (a - 1). Divided by a it is the slope from
    1/4 to (a - 1/2)^2 of u -> ln cosh(epsilon sqrt(u)), which is concave. So it is largest at
    a -> 1, where it is the slope at 1/4.
    """
    rho = epsilon * (1 - 2 / (exp_upper(epsilon, 2 * BITS) + 1))
    return Fraction(-(-rho.numerator * ONE // rho.denominator), ONE)


def concentrated_delta(rho: Fraction, epsilon: Fraction) -> Fraction:
    """A delta that goes with `epsilon` after spending `rho`, rounded up.

    The smallest over a grid of orders a > 1 of
    exp((a - 1)(a rho - epsilon)) (1 - 1/a)^a / (a - 1), where
    (1 - 1/a)^a <= exp(-1 - 1/(2a) - 1/(3a^2)).
    """
    if rho <= 0:
        return Fraction(0)
    guess = (1 + epsilon / rho) / 2  # the best order of the leading term
    orders = (1 + max(guess - 1, Fraction(1, 100)) * Fraction(k, 32) for k in range(16, 65))
    return min(Fraction(1), *(_delta_at(_simplify(order), rho, epsilon) for order in orders))


def concentrated_budget(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho, a multiple of 1e-6, whose spending keeps (`epsilon`, `delta`).

    >>> float(concentrated_budget(Fraction(1), Fraction(1, 10**6)))
    0.024351
    """
    top = GRID * (int(epsilon) + 1)
    last = find_last(0, top, lambda k: concentrated_delta(Fraction(k, GRID), epsilon) <= delta)
    return Fraction(last, GRID)


def find_last(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The last whole number for which something holds that holds at `low` and not at `high`."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _delta_at(order: Fraction, rho: Fraction, epsilon: Fraction) -> Fraction:
    exponent = (order - 1) * (order * rho - epsilon) - 1 - 1 / (2 * order) - 1 / (3 * order**2)
    grown = exp_upper(exponent) if exponent > 0 else 1 / exp_lower(min(-exponent, FARTHEST))
    return grown / (order - 1)


def _simplify(order: Fraction) -> Fraction:
    """A nearby order with few digits; any order above 1 gives a true bound."""
    return 1 + max(Fraction(round((order - 1) * 1024), 1024), Fraction(1, 1024))


def _choose_step(counted: Counter[Fraction]) -> Fraction:
    """The step of the grid: the losses themselves are on it, unless that would be too fine."""
    bottom = lcm(*(epsilon.denominator for epsilon in counted))
    top = gcd(*(int(epsilon * bottom) for epsilon in counted))
    total = sum(counted.elements(), Fraction(0))
    return 2 * max(Fraction(top, bottom), total / MOST_STEPS)


def _place_loss(epsilon: Fraction, step: Fraction) -> dict[int, int]:
    """Masses by place on the grid that begins at -epsilon.

    A loss of +epsilon between two places is shared by them so that its probability under both
    tables stays the same, which can only raise delta (Doroshenko et al.); the upper place gets
    what is rounded.
    """
    up = _round_up(1 / (1 + 1 / exp_upper(epsilon, 2 * BITS)))
    place, beyond = divmod(2 * epsilon, step)
    if not beyond:
        return {0: ONE - up, place: up}
    share = (1 - 1 / exp_upper(beyond, 2 * BITS)) / (1 - 1 / exp_lower(step, 2 * BITS))
    above = min(up, -(-up * share.numerator // share.denominator))
    placed = {0: ONE - up, place + 1: above}
    placed[place] = placed.get(place, 0) + up - above
    return placed


def _release(packed: int, placed: dict[int, int], times: int) -> int:
    """The losses `packed` after `times` further releases of one epsilon."""
    if times <= FEW:
        for _ in range(times):
            packed = _settle(sum(packed * mass << (SLOT * slot) for slot, mass in placed.items()))
        return packed
    half = _release(ONE, placed, times // 2)
    repeated = _release(_settle(half * half), placed, times % 2)
    return repeated if packed == ONE else _settle(packed * repeated)


def _settle(product: int) -> int:
    """Bring packed masses back to 160 bits, each rounded up."""
    slots = product.bit_length() // SLOT + 1
    every = ((1 << (SLOT * slots)) - 1) // ((1 << SLOT) - 1)  # a one in every slot
    return (product + every * (ONE - 1)) >> BITS & every * ((1 << (SLOT - BITS)) - 1)


def _unpack(packed: int) -> tuple[int, ...]:
    """The masses of a packed row, in linear time: shifting out each would be quadratic."""
    width = SLOT // 8
    raw = packed.to_bytes((packed.bit_length() // SLOT + 1) * width, "little")
    return tuple(int.from_bytes(raw[k : k + width], "little") for k in range(0, len(raw), width))


def _round_up(value: Fraction) -> int:
    return min(ONE, -(-value.numerator * ONE // value.denominator))


def _round_down(value: Fraction) -> int:
    return value.numerator * ONE // value.denominator
