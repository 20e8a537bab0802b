"""How the debits of a dataset add up: by addition, by exact composition, or by zCDP.

- ``pure``: epsilons and deltas are added. Holds whatever is decided in between.
- ``exact``: every stage takes a place of a plan that was made before the first debit. All the
  places together keep (epsilon, delta) by optimal composition, in whatever order they are
  taken, since a stage tells no more than the coin of its place, and all coins could be tossed
  at once (Kairouz, Oh and Viswanath 2015).
- ``zcdp``: the parameters rho are added. Holds even if what is spent depends on what was seen
  (Feldman and Zrnic 2021).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Protocol

from tallyveil.budget.composition import (
    PrivacyLoss,
    compose,
    concentrated_budget,
    concentrated_cost,
    concentrated_delta,
    find_last,
)
from tallyveil.budget.entries import Debit, Entry, shown_rational
from tallyveil.errors import ArgumentError

__all__ = ["ACCOUNTINGS", "SMALLEST_DELTA", "Account", "check_plan", "stand"]

ACCOUNTINGS = ("pure", "exact", "zcdp")
SMALLEST_DELTA = Fraction(1, 10**30)
"""Composition is worked out to 160 bits: a total delta must be well above that."""

GRID = 10**6


class Spending(Protocol):
    """What was spent of a total, by one way of accounting."""

    @property
    def spent_epsilon(self) -> Fraction:
        """The epsilon of everything spent so far, at the account's delta."""

    @property
    def spent_delta(self) -> Fraction:
        """The delta that is taken."""

    @property
    def remaining_epsilon(self) -> Fraction:
        """The largest epsilon that one more stage can have."""

    def find_excess(self, debit: Debit) -> str | None:
        """Why `debit` is not covered, or None if it is."""

    @property
    def is_sound(self) -> bool:
        """Whether no more was spent than there was."""


@dataclass(frozen=True)
class Account:
    """Where one dataset stands."""

    dataset: str
    epsilon: Fraction
    delta: Fraction
    accounting: str
    debits: int
    closed: bool
    spending: Spending

    @property
    def spent_epsilon(self) -> Fraction:
        """The epsilon of everything spent so far, at the account's delta."""
        return self.spending.spent_epsilon

    @property
    def spent_delta(self) -> Fraction:
        """The delta that is taken."""
        return self.spending.spent_delta

    @property
    def remaining_epsilon(self) -> Fraction:
        """The largest epsilon that one more stage can have."""
        return self.spending.remaining_epsilon

    @property
    def places(self) -> tuple[Fraction, ...] | None:
        """The free places of a plan, smallest first; None where there are no plans."""
        return (self.spending.free or ()) if isinstance(self.spending, _Planned) else None

    @property
    def planned(self) -> int:
        """How many places a plan has, free or taken."""
        return len(self.spending.places) if isinstance(self.spending, _Planned) else 0

    @property
    def remaining_delta(self) -> Fraction:
        """The delta that can still be spent."""
        return self.delta - self.spent_delta

    @property
    def terms(self) -> dict[str, str]:
        """What a debit notes of an account that does not simply add: how, and the total."""
        if self.accounting == "pure":
            return {}
        total = {"total_epsilon": str(self.epsilon), "total_delta": str(self.delta)}
        return {"accounting": self.accounting, **total}

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: numbers for people, and the exact rationals beside them."""
        amounts = {
            "epsilon": self.epsilon,
            "spent_epsilon": self.spent_epsilon,
            "remaining_epsilon": self.remaining_epsilon,
            "delta": self.delta,
            "spent_delta": self.spent_delta,
            "remaining_delta": self.remaining_delta,
        }
        data: dict[str, Any] = {"dataset": self.dataset, "accounting": self.accounting}
        data |= {"debits": self.debits, "closed": self.closed}
        data |= {name: float(value) for name, value in amounts.items()}
        if self.places is not None:
            data |= {"planned_places": self.planned, "free_places": list(map(str, self.places))}
        return data | {f"{name}_exact": str(value) for name, value in amounts.items()}


def stand(dataset: str, entries: Sequence[Entry]) -> Account:
    """Where a dataset stands by its entries: an opening, then plans and debits, then a closing."""
    opening = entries[0]
    accounting = str(opening.body.get("accounting", "pure"))
    debits = tuple(entry for entry in entries if entry.kind == "debit")
    total, slack = opening.epsilon, opening.delta
    spending: Spending
    if accounting == "pure":
        spending = _Added(total, slack, debits)
    elif accounting == "zcdp":
        spending = _Concentrated(total, slack, debits)
    else:
        places = tuple(e for entry in entries if entry.kind == "plan" for e in entry.epsilons)
        spending = _Planned(total, slack, debits, tuple(sorted(places)))
    closed = entries[-1].kind == "close"
    return Account(dataset, total, slack, accounting, len(debits), closed, spending)


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


@dataclass(frozen=True)
class _Added:
    """Plain addition."""

    epsilon: Fraction
    delta: Fraction
    debits: tuple[Entry, ...]

    @cached_property
    def spent_epsilon(self) -> Fraction:
        return sum((entry.epsilon for entry in self.debits), Fraction(0))

    @cached_property
    def spent_delta(self) -> Fraction:
        return sum((entry.delta for entry in self.debits), Fraction(0))

    @property
    def remaining_epsilon(self) -> Fraction:
        return self.epsilon - self.spent_epsilon

    def find_excess(self, debit: Debit) -> str | None:
        for name, cost, spent, total in (
            ("epsilon", debit.epsilon, self.spent_epsilon, self.epsilon),
            ("delta", debit.delta, self.spent_delta, self.delta),
        ):
            if spent + cost > total:
                return (
                    f"it costs {name} {shown_rational(cost)}, and "
                    f"{shown_rational(total - spent)} remains of {shown_rational(total)}"
                )
        return None

    @property
    def is_sound(self) -> bool:
        return self.spent_epsilon <= self.epsilon and self.spent_delta <= self.delta


@dataclass(frozen=True)
class _Concentrated:
    """zCDP: rho is added; the total is the rho that keeps (epsilon, delta)."""

    epsilon: Fraction
    delta: Fraction
    debits: tuple[Entry, ...]

    @cached_property
    def rho(self) -> Fraction:
        """The total that may be spent."""
        return _concentrated_budget(self.epsilon, self.delta)

    @cached_property
    def spent_rho(self) -> Fraction:
        """What was spent."""
        return sum((_cost(e) for entry in self.debits for e in entry.epsilons), Fraction(0))

    @cached_property
    def spent_epsilon(self) -> Fraction:
        """What zCDP gives at the delta, or the sum of all epsilons: both hold."""
        added = sum((entry.epsilon for entry in self.debits), Fraction(0))
        top = int(self.epsilon * GRID) + 1
        short = find_last(
            -1, top, lambda k: concentrated_delta(self.spent_rho, Fraction(k, GRID)) > self.delta
        )
        return min(self.epsilon, added, Fraction(short + 1, GRID))

    @property
    def spent_delta(self) -> Fraction:
        return self.delta if self.debits else Fraction(0)

    @cached_property
    def remaining_epsilon(self) -> Fraction:
        remaining, top = self.rho - self.spent_rho, int(self.epsilon * GRID) + 1
        last = find_last(0, top, lambda k: concentrated_cost(Fraction(k, GRID)) <= remaining)
        return Fraction(last, GRID)

    def find_excess(self, debit: Debit) -> str | None:
        if debit.delta:
            return "zCDP accounts take stages with a delta of 0 only"
        cost = sum((_cost(stage.epsilon) for stage in debit.stages), Fraction(0))
        remaining = self.rho - self.spent_rho
        if cost <= remaining:
            return None
        return (
            f"it costs rho {float(cost):.6g}, and {float(remaining):.6g} remains of "
            f"{float(self.rho):.6g} (epsilon {shown_rational(self.epsilon)}, delta "
            f"{shown_rational(self.delta)})"
        )

    @property
    def is_sound(self) -> bool:
        return self.spent_rho <= self.rho and not any(entry.delta for entry in self.debits)


@dataclass(frozen=True)
class _Planned:
    """Exact composition of a plan; `places` holds its epsilons, smallest first."""

    epsilon: Fraction
    delta: Fraction
    debits: tuple[Entry, ...]
    places: tuple[Fraction, ...]

    @cached_property
    def free(self) -> tuple[Fraction, ...] | None:
        """The places that no stage has taken, or None if there were too few."""
        free: tuple[Fraction, ...] | None = self.places
        for entry in self.debits:
            free = None if free is None else _take_places(free, entry.epsilons)
        return free

    @cached_property
    def spent_epsilon(self) -> Fraction:
        spent = tuple(sorted(e for entry in self.debits for e in entry.epsilons))
        stage_deltas = sum((entry.delta for entry in self.debits), Fraction(0))
        return min(
            self.epsilon, _compose(spent).epsilon(max(self.delta - stage_deltas, Fraction(0)))
        )

    @cached_property
    def spent_delta(self) -> Fraction:
        planned = _compose(self.places).delta(self.epsilon)
        return planned + sum((entry.delta for entry in self.debits), Fraction(0))

    @property
    def remaining_epsilon(self) -> Fraction:
        return max(self.free or (Fraction(0),))

    def find_excess(self, debit: Debit) -> str | None:
        if not self.places:
            return "exact accounting needs a plan before the first release: tallyveil ledger plan"
        stages = [stage.epsilon for stage in debit.stages]
        if self.free is None or _take_places(self.free, stages) is None:
            return (
                f"it has {len(stages)} stages of up to epsilon {shown_rational(max(stages))}, and "
                f"its plan has {len(self.free or ())} free places of up to epsilon "
                f"{shown_rational(self.remaining_epsilon)}"
            )
        if self.spent_delta + debit.delta > self.delta:
            remaining = self.delta - self.spent_delta
            return (
                f"it costs delta {shown_rational(debit.delta)}, and {float(remaining):.3g} remains"
            )
        return None

    @property
    def is_sound(self) -> bool:
        return self.free is not None and self.spent_delta <= self.delta


def _take_places(
    places: tuple[Fraction, ...], epsilons: Sequence[Fraction]
) -> tuple[Fraction, ...] | None:
    """The places left when each epsilon takes the smallest that holds it, the largest first."""
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


@lru_cache(maxsize=64)
def _concentrated_budget(epsilon: Fraction, delta: Fraction) -> Fraction:
    return concentrated_budget(epsilon, delta)


@lru_cache(maxsize=4096)
def _cost(epsilon: Fraction) -> Fraction:
    return concentrated_cost(epsilon)
