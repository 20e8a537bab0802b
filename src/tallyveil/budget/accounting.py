"""Sums of the debits of a dataset: by addition, by exact composition, or by zCDP.

- ``pure``: epsilons and deltas are added. Holds for debits that depend on earlier releases.
- ``exact``: every stage takes a place of a plan that was made before the first debit. All the
  places together keep (epsilon, delta) by optimal composition, in any order, since a stage reveals
  no more than the coin of its place, and all coins could be tossed at once (Kairouz, Oh and
  Viswanath 2015).
- ``zcdp``: the parameters rho are added. Holds for debits that depend on earlier releases
  (Feldman and Zrnic 2021).

Composition is proved in integers. A mechanism with a privacy loss of at most epsilon reveals no
more than randomized response with that epsilon, whose loss is +epsilon with probability 1 / (1 +
e^-epsilon) and -epsilon otherwise. Geometric noise on a count is that randomized response, so for
it the figures here are exact, and for every other certified mechanism they are a bound. Epsilons
must be fixed before the first draw; if later ones depend on earlier results, use zCDP.

Every rounding goes towards more privacy loss. Nothing here is a floating-point number.

References
----------
Kairouz, Oh and Viswanath (2015), Theorem 3.3; Murtagh and Vadhan (2016); Bun and Steinke (2016);
Canonne, Kamath and Steinke (2020), Proposition 12; Feldman and Zrnic (2021), Theorem 4.3;
Doroshenko, Ghazi, Kamath, Kumar and Manurangsi (2022), Section 4.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import gcd, lcm
from typing import Any, TypeAlias

from tallyveil.budget.entries import Debit, Entry, shown_rational
from tallyveil.errors import ArgumentError
from tallyveil.exact import (
    Epsilon,
    exact_delta,
    exact_epsilon,
    exact_rational,
    exp_lower,
    exp_upper,
    is_whole,
)

BITS = 160
ONE = 1 << BITS
SLOT = 2 * BITS + 64
"""Bits between neighbouring masses in a packed row: room for every product of two."""

MOST_STEPS = 16_000
"""Largest number of distinct losses; on a coarser grid the result is still a bound."""

MOST_SHARED = 10_000
"""Largest number of equal releases that share an epsilon; it takes seconds."""

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
        """Return the smallest delta for `epsilon`, rounded up.

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
        """Return the smallest proved epsilon for `delta`, a multiple of 1e-9."""
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
    """Return the largest epsilon, a multiple of 1e-6, that each of `times` releases can have.

    Up to 10,000 of them, which takes seconds.

    >>> float(share_epsilon(100, 1, 1e-6))
    0.024011
    """
    if not is_whole(times) or not 1 <= times <= MOST_SHARED:
        raise ArgumentError("times", f"be a whole number from 1 to {MOST_SHARED:,}", times)
    times, epsilon, delta = int(times), exact_epsilon(epsilon), exact_delta(delta)
    low = epsilon.numerator * GRID // (epsilon.denominator * times)
    high = epsilon.numerator * GRID // epsilon.denominator + 1
    last = find_last(
        low, high, lambda k: compose([Fraction(k, GRID)] * times).delta(epsilon) <= delta
    )
    return max(Fraction(last, GRID), epsilon / times)


@lru_cache(maxsize=4096)
def concentrated_cost(epsilon: Fraction) -> Fraction:
    """Return the zCDP parameter of a release, rho = epsilon tanh(epsilon / 2), rounded up.

    The Renyi divergence of order a of randomized response is
    ln(cosh((a - 1/2) epsilon) / cosh(epsilon / 2)) / (a - 1). Divided by a it is the slope from
    1/4 to (a - 1/2)^2 of u -> ln cosh(epsilon sqrt(u)), which is concave. So it is largest at
    a -> 1, where it is the slope at 1/4.
    """
    rho = epsilon * (1 - 2 / (exp_upper(epsilon, 2 * BITS) + 1))
    return Fraction(-(-rho.numerator * ONE // rho.denominator), ONE)


def concentrated_delta(rho: Fraction, epsilon: Fraction) -> Fraction:
    """Return a delta for `epsilon` after spending `rho`, rounded up.

    The smallest over a grid of orders a > 1 of
    exp((a - 1)(a rho - epsilon)) (1 - 1/a)^a / (a - 1), where
    (1 - 1/a)^a <= exp(-1 - 1/(2a) - 1/(3a^2)).
    """
    if rho <= 0:
        return Fraction(0)
    guess = (1 + epsilon / rho) / 2  # the best order of the leading term
    steps = (max(guess - 1, Fraction(1, 100)) * Fraction(k, 32) for k in range(16, 65))
    # an order with few digits is as good: any order above 1 gives a valid bound
    orders = (1 + Fraction(max(round(step * 1024), 1), 1024) for step in steps)
    return min(Fraction(1), *(_delta_at(order, rho, epsilon) for order in orders))


@lru_cache(maxsize=64)
def concentrated_budget(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest rho, a multiple of 1e-6, whose spending keeps (`epsilon`, `delta`).

    >>> float(concentrated_budget(Fraction(1), Fraction(1, 10**6)))
    0.024351
    """
    top = GRID * (int(epsilon) + 1)
    last = find_last(0, top, lambda k: concentrated_delta(Fraction(k, GRID), epsilon) <= delta)
    return Fraction(last, GRID)


def find_last(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the last whole number at which a predicate holds, true at `low`, false at `high`."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _delta_at(order: Fraction, rho: Fraction, epsilon: Fraction) -> Fraction:
    exponent = (order - 1) * (order * rho - epsilon) - 1 - 1 / (2 * order) - 1 / (3 * order**2)
    grown = exp_upper(exponent) if exponent > 0 else 1 / exp_lower(min(-exponent, FARTHEST))
    return grown / (order - 1)


def _choose_step(counted: Counter[Fraction]) -> Fraction:
    """Choose the step of the grid: one that holds all losses, unless that is too fine."""
    bottom = lcm(*(epsilon.denominator for epsilon in counted))
    top = gcd(*(int(epsilon * bottom) for epsilon in counted))
    total = sum(counted.elements(), Fraction(0))
    return 2 * max(Fraction(top, bottom), total / MOST_STEPS)


def _place_loss(epsilon: Fraction, step: Fraction) -> dict[int, int]:
    """Return the masses by place on the grid that begins at -epsilon.

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
    """Return the losses `packed` after `times` further releases at one epsilon."""
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
    """Return the masses of a packed row in linear time; shifting out each would be quadratic."""
    width = SLOT // 8
    raw = packed.to_bytes((packed.bit_length() // SLOT + 1) * width, "little")
    return tuple(int.from_bytes(raw[k : k + width], "little") for k in range(0, len(raw), width))


def _round_up(value: Fraction) -> int:
    return min(ONE, -(-value.numerator * ONE // value.denominator))


def _round_down(value: Fraction) -> int:
    return value.numerator * ONE // value.denominator


ACCOUNTINGS = ("pure", "exact", "zcdp")
SMALLEST_DELTA = Fraction(1, 10**30)
"""Composition is worked out to 160 bits: a total delta must be well above that."""

STATES = ("", "spent_", "remaining_")

Excess: TypeAlias = tuple[str, str]
"""Why a debit is not covered, and what to do."""


@dataclass(frozen=True)
class Account:
    """The total, the spending and the state of one dataset; its debits are added plainly.

    `plan` holds the epsilons of a plan, smallest first.
    """

    dataset: str
    epsilon: Fraction
    delta: Fraction
    accounting: str
    entries: tuple[Entry, ...]
    plan: tuple[Fraction, ...]
    closed: bool

    @property
    def debits(self) -> int:
        """The number of debits."""
        return len(self.entries)

    @cached_property
    def spent_epsilon(self) -> Fraction:
        """The epsilon of everything spent so far, at the account's delta."""
        return sum((entry.epsilon for entry in self.entries), Fraction(0))

    @cached_property
    def spent_delta(self) -> Fraction:
        """The delta spent so far."""
        return sum((entry.delta for entry in self.entries), Fraction(0))

    @cached_property
    def remaining_epsilon(self) -> Fraction:
        """The largest epsilon that one more stage can have."""
        return self.epsilon - self.spent_epsilon

    @property
    def remaining_delta(self) -> Fraction:
        """The delta that can still be spent."""
        return self.delta - self.spent_delta

    @property
    def places(self) -> tuple[Fraction, ...] | None:
        """The free places of a plan, smallest first; None where there are no plans."""
        return None

    @property
    def planned(self) -> int:
        """The number of places in the plan, free or taken."""
        return len(self.plan)

    @property
    def terms(self) -> dict[str, str]:
        """The accounting and total that a debit records; empty for a pure account."""
        if self.accounting == "pure":
            return {}
        total = {"total_epsilon": str(self.epsilon), "total_delta": str(self.delta)}
        return {"accounting": self.accounting, **total}

    @property
    def is_sound(self) -> bool:
        """True if no more was spent than the total."""
        return self.spent_epsilon <= self.epsilon and self.spent_delta <= self.delta

    def find_excess(self, debit: Debit) -> Excess | None:
        """Return why `debit` is not covered and what to do, or None if it is."""
        for name, cost, spent, total in (
            ("epsilon", debit.epsilon, self.spent_epsilon, self.epsilon),
            ("delta", debit.delta, self.spent_delta, self.delta),
        ):
            remaining = total - spent
            if cost > remaining:
                shown = shown_rational(remaining)
                advice = f"Lower the cost to {shown} or less." if remaining > 0 else ""
                rest = f"{shown} of {shown_rational(total)} left"
                return self._describe(f"{name} {shown_rational(cost)}", rest), advice
        return None

    def _describe(self, cost: str, rest: str) -> str:
        return f"This release costs {cost}, but dataset {self.dataset!r} has {rest}."

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data: readable numbers, each with its exact rational."""
        parts = [f"{state}{name}" for name in ("epsilon", "delta") for state in STATES]
        amounts = {part: getattr(self, part) for part in parts}
        data: dict[str, Any] = {"dataset": self.dataset, "accounting": self.accounting}
        data |= {"debits": self.debits, "closed": self.closed}
        data |= {name: float(value) for name, value in amounts.items()}
        if self.places is not None:
            data |= {"planned_places": self.planned, "free_places": list(map(str, self.places))}
        return data | {f"{name}_exact": str(value) for name, value in amounts.items()}


def read_account(dataset: str, entries: Sequence[Entry]) -> Account:
    """Return the account of a dataset from its entries: opening, plans and debits, closing."""
    opening, closed = entries[0], entries[-1].kind == "close"
    accounting = str(opening.body.get("accounting", "pure"))
    debits = tuple(entry for entry in entries if entry.kind == "debit")
    plan = sorted(e for entry in entries if entry.kind == "plan" for e in entry.epsilons)
    kind = {"pure": Account, "exact": _Planned, "zcdp": _Concentrated}[accounting]
    total = opening.epsilon, opening.delta
    return kind(dataset, *total, accounting, debits, tuple(plan), closed)


def check_plan(account: Account, epsilons: Sequence[Fraction]) -> None:
    """Raise an `ArgumentError` unless the account's total covers these stages together."""
    together = _compose(tuple(sorted(epsilons)))
    needed = together.delta(account.epsilon)
    if needed > account.delta:
        reachable = math.ceil(together.epsilon(account.delta) * 10**4) / 10**4
        raise ArgumentError(
            "epsilons",
            f"keep epsilon {shown_rational(account.epsilon)} with a delta of at most "
            f"{shown_rational(account.delta)} together",
            got=f"{len(epsilons):,} epsilons that need a delta of {float(needed):.3g}",
            hint=f"At the delta of the account they keep epsilon {reachable:g} together.",
        )


class _Concentrated(Account):
    """zCDP: values of rho are added; the total is the rho that keeps (epsilon, delta)."""

    @cached_property
    def rho(self) -> Fraction:
        """The total rho."""
        return concentrated_budget(self.epsilon, self.delta)

    @cached_property
    def spent_rho(self) -> Fraction:
        """The rho spent so far."""
        epsilons = (epsilon for entry in self.entries for epsilon in entry.epsilons)
        return sum(map(concentrated_cost, epsilons), Fraction(0))

    @cached_property
    def spent_epsilon(self) -> Fraction:
        """The epsilon of zCDP at the delta, or the sum of all epsilons if smaller: both hold."""
        added = sum((entry.epsilon for entry in self.entries), Fraction(0))
        top = int(self.epsilon * GRID) + 1
        short = find_last(
            -1, top, lambda k: concentrated_delta(self.spent_rho, Fraction(k, GRID)) > self.delta
        )
        return min(self.epsilon, added, Fraction(short + 1, GRID))

    @cached_property
    def spent_delta(self) -> Fraction:
        return self.delta if self.entries else Fraction(0)

    @cached_property
    def remaining_epsilon(self) -> Fraction:
        remaining, top = self.rho - self.spent_rho, int(self.epsilon * GRID) + 1
        last = find_last(0, top, lambda k: concentrated_cost(Fraction(k, GRID)) <= remaining)
        return Fraction(last, GRID)

    @property
    def is_sound(self) -> bool:
        return self.spent_rho <= self.rho and not any(entry.delta for entry in self.entries)

    def find_excess(self, debit: Debit) -> Excess | None:
        if debit.delta:
            words = "has a zCDP account, which takes stages of delta 0 only."
            return f"Dataset {self.dataset!r} {words}", ""
        cost = sum((concentrated_cost(stage.epsilon) for stage in debit.stages), Fraction(0))
        remaining = self.rho - self.spent_rho
        if cost <= remaining:
            return None
        rest = (
            f"{float(remaining):.6g} of {float(self.rho):.6g} left (epsilon "
            f"{shown_rational(self.epsilon)}, delta {shown_rational(self.delta)})"
        )
        return self._describe(f"rho {float(cost):.6g}", rest), ""


class _Planned(Account):
    """Exact composition of a plan."""

    @cached_property
    def free(self) -> tuple[Fraction, ...] | None:
        """The free places, or None if there were too few."""
        free: tuple[Fraction, ...] | None = self.plan
        for entry in self.entries:
            free = None if free is None else _take_places(free, entry.epsilons)
        return free

    @property
    def places(self) -> tuple[Fraction, ...]:
        return self.free or ()

    @cached_property
    def stage_deltas(self) -> Fraction:
        """The sum of the deltas of single stages."""
        return sum((entry.delta for entry in self.entries), Fraction(0))

    @cached_property
    def spent_epsilon(self) -> Fraction:
        spent = _compose(tuple(sorted(e for entry in self.entries for e in entry.epsilons)))
        return min(self.epsilon, spent.epsilon(max(self.delta - self.stage_deltas, Fraction(0))))

    @cached_property
    def spent_delta(self) -> Fraction:
        return _compose(self.plan).delta(self.epsilon) + self.stage_deltas

    @cached_property
    def remaining_epsilon(self) -> Fraction:
        return max(self.places, default=Fraction(0))

    @property
    def is_sound(self) -> bool:
        return self.free is not None and self.spent_delta <= self.delta

    def find_excess(self, debit: Debit) -> Excess | None:
        if not self.plan:
            problem = f"Dataset {self.dataset!r} has exact accounting, which needs a plan first."
            return problem, "Make one: tallyveil ledger plan"
        stages = [stage.epsilon for stage in debit.stages]
        if _take_places(self.places, stages) is None:
            problem = (
                f"This release has {len(stages)} stages of up to epsilon "
                f"{shown_rational(max(stages))}, but the plan of dataset {self.dataset!r} has "
                f"{len(self.places)} free places of up to epsilon "
                f"{shown_rational(self.remaining_epsilon)}."
            )
            return problem, ""
        if self.spent_delta + debit.delta > self.delta:
            rest = f"{float(self.remaining_delta):.3g} left"
            return self._describe(f"delta {shown_rational(debit.delta)}", rest), ""
        return None


def _take_places(
    places: tuple[Fraction, ...], epsilons: Sequence[Fraction]
) -> tuple[Fraction, ...] | None:
    """Return the free places after each epsilon, largest first, took the smallest that holds it."""
    free = list(places)
    for epsilon in sorted(epsilons, reverse=True):
        fitting = next((index for index, place in enumerate(free) if place >= epsilon), None)
        if fitting is None:
            return None
        del free[fitting]
    return tuple(free)


@lru_cache(maxsize=64)
def _compose(epsilons: tuple[Fraction, ...]) -> PrivacyLoss:
    return compose(epsilons)
