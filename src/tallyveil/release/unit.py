"""The unit of privacy, as numbers and as text.

The neighbour relation is about a *unit*: one person, or one single event such as a visit. Adding
or removing a unit moves counts by at most `contributions` in all (the L1 distance of the tables
of counts), whether those are several counts or one. Every draw is certified for one move of one
count by one, so a unit costs that many times as much (group privacy).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace

from tallyveil.budget.accounting import compose
from tallyveil.errors import ArgumentError, UsageError

WIDEST_DELTA = 1000
"""The largest upper bound with a delta: mechanisms with one are matrices."""

MOST_SEPARATE = 1000
"""The most moves of one unit in different rows that are composed."""

LEAST_GAIN = Fraction(1, 100)
"""Composing must lower a column's epsilon by this share of it, or no delta is spent."""


class PrivacyUnit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The unit of privacy, and by how much it can move counts.

    `of_rows` says that contributions are records of microdata, and not counts of a count column;
    `bound` says whether the publisher states how often a person is counted, or rows are left out
    to enforce it; `one_row` says that all of a unit's contributions are in one row of the published
    table, `separate` that no two are. The latter may have a `delta`: the epsilons of a unit's rows
    are then composed, and the whole has that delta.

    >>> PrivacyUnit(contributions=3).multiplier, PrivacyUnit("event").name
    (3, 'one single event, such as a visit or a test, and not a person')
    """

    kind: Literal["person", "event"] = "person"
    neighbours: Literal["add_remove", "replace_one"] = "add_remove"
    contributions: Annotated[int, msgspec.Meta(ge=1)] = 1
    bound: Literal["stated", "enforced"] = "stated"
    of_rows: bool = False
    one_row: bool = False
    delta: Fraction = Fraction(0)
    separate: bool = False

    def charge(self, epsilon: Fraction) -> Fraction:
        """Return the cost to a unit of draws with this epsilon for one move of one count by one.

        As many times that. With a `delta`, moves are in different rows, which are drawn
        independently: then the epsilon that optimal composition gives with the delta
        (docs/theory.md, several contributions), where that is less.

        >>> PrivacyUnit(contributions=50).charge(Fraction(1, 50))
        Fraction(1, 1)
        >>> float(PrivacyUnit(contributions=50, delta=Fraction(1, 10**6)).charge(Fraction(1, 50)))
        0.556874183
        """
        added = epsilon * self.multiplier
        if not self.delta:
            return added
        return min(added, _compose_equal(epsilon, self.multiplier, self.delta))

    @property
    def multiplier(self) -> int:
        """The largest sum of moves of one unit; changing a unit takes away and adds."""
        return self.contributions * (2 if self.neighbours == "replace_one" else 1)

    @property
    def name(self) -> str:
        """The unit as text, with the bound that the guarantee rests on."""
        if self.kind == "event":
            often = "" if self.contributions == 1 else f", counted at most {self._times}"
            words = f"one single event, such as a visit or a test, and not a person{often}"
        elif self.bound == "enforced":
            often = "one was" if self.contributions == 1 else f"{self.contributions} were"
            words = f"one person, of whose records at most {often} counted"
        elif self.of_rows:
            words = f"one person, with at most {self._records} in the confidential table"
        else:
            words = f"one person, counted at most {self._times} in each count column"
        return words + self._where

    @property
    def _where(self) -> str:
        """The rows of a unit's contributions, as text."""
        if self.separate:
            return ", no two in the same row of the published table"
        return ", all in one row of the published table" if self.one_row else ""

    @property
    def moves(self) -> str:
        """The change that one unit can make, as text."""
        changing = self.neighbours == "replace_one"
        done = f"changing one {self.kind}" if changing else f"adding or removing one {self.kind}"
        if self.multiplier == 1:
            return f"{done} changes one count by one"
        if self.one_row:
            return f"{done} changes one count by at most {self.multiplier}"
        if self.separate:
            return f"{done} changes at most {self.multiplier} counts, each by one"
        return f"{done} changes counts by at most {self.multiplier} in all"

    @property
    def change(self) -> str:
        """The change that the guarantee hides, as the beginning of a sentence."""
        who = f"one {self.kind}"
        if self.of_rows and self.kind == "person":
            who += f" with at most {self._records}"
        elif self.contributions > 1:
            who += f", counted up to {self._times},"
        if self.neighbours == "add_remove":
            return f"Including or excluding any {who}"
        return f"Changing any {who}" if self.kind == "event" else f"Changing the data of any {who}"

    @property
    def limits(self) -> tuple[str, ...]:
        """Limits of the unit to know before relying on the guarantee."""
        if self.kind == "event":
            return (
                "The guarantee is for one single event. A person with several events is protected "
                "less: with n of them, at n times the stated epsilon.",
            )
        if self.bound == "enforced":
            return (
                f"Of every person at most {self._records} were counted{self._where}; further "
                "records were left out at random before counting. How many were left out is "
                "confidential, so published counts may be low for that reason too.",
            )
        often = (
            f"has at most {self._records}" if self.of_rows else f"is counted at most {self._times}"
        )
        where = " in the confidential table" if self.of_rows else " in each column"
        return (
            f"The publisher states that each person {often}{where}{self._where}. Anyone "
            f"{'with more' if self.of_rows else 'counted more often'} is protected less.",
        )

    @property
    def _records(self) -> str:
        return "one record" if self.contributions == 1 else f"{self.contributions} records"

    @property
    def _times(self) -> str:
        return "once" if self.contributions == 1 else f"{self.contributions} times"


@cache
def _compose_equal(epsilon: Fraction, times: int, delta: Fraction) -> Fraction:
    return compose([epsilon] * times).epsilon(delta)


def charge_columns(
    stages: Iterable[tuple[str, str, Fraction]], disjoint: Sequence[Sequence[str]]
) -> tuple[tuple[str, Fraction], ...]:
    """List what a unit is charged for, from (column, name, epsilon) of every stage.

    Columns add up. A unit that moves counts by m in all, within disjoint columns together, moves
    m_c of them in column c, with m_1 + m_2 + ... <= m, and so loses at most the sum of m_c e_c,
    which is at most m times the largest e_c: such columns are charged once, at the largest of
    their costs. This holds for both neighbour relations: a changed record takes from one column
    and adds to another, which `PrivacyUnit.multiplier` counts as two moves.

    >>> costs = [("a", "a: counts", Fraction(1)), ("b", "b: counts", Fraction(2))]
    >>> charge_columns(costs, ()) == (("a: counts", 1), ("b: counts", 2))
    True
    >>> charge_columns(costs, [("a", "b")])
    (('a or b: the larger cost', Fraction(2, 1)),)
    """
    listed = list(stages)
    group_of = {name: tuple(group) for group in disjoint for name in group}
    charged: list[tuple[str, Fraction]] = []
    seen = set()
    for column, name, epsilon in listed:
        group = group_of.get(column)
        if group is None:
            charged.append((name, epsilon))
        elif group not in seen:
            seen.add(group)
            costs = (sum((e for c, _, e in listed if c == member), Fraction(0)) for member in group)
            charged.append((f"{' or '.join(group)}: the larger cost", max(costs)))
    return tuple(charged)


def separate_moves(unit: PrivacyUnit, delta: Fraction, cells: int) -> PrivacyUnit:
    """Return the unit whose moves are in different rows, so that they are composed with a delta.

    Of records in one of the public `cells` one of each person is counted where that is enforced
    (`tallyveil.tables.microdata.keep_apart`), so nobody is counted more often than there are cells.
    """
    if not delta or unit.multiplier == 1:
        raise UsageError(
            "'spread' 'distinct_rows' requires 'delta', and 'contributions' of 2 or more: without "
            "them there is nothing to compose."
        )
    if unit.bound == "enforced":
        unit = replace(unit, contributions=min(unit.contributions, cells))
    if unit.multiplier > MOST_SEPARATE:
        rule = f"be at most {MOST_SEPARATE:,} moves of one unit in different rows"
        raise ArgumentError("contributions", rule, got=f"{unit.multiplier:,}")
    return replace(unit, delta=delta, separate=True) if unit.multiplier > 1 else unit


def drop_idle_delta(unit: PrivacyUnit, epsilons: Sequence[Fraction]) -> PrivacyUnit:
    """Return the unit, without its delta where composing gains hardly anything over adding up.

    A delta that leaves nothing of an epsilon is refused.

    >>> few = PrivacyUnit(contributions=5, delta=Fraction(1, 10**6), separate=True)
    >>> drop_idle_delta(few, [Fraction(1)]).delta, drop_idle_delta(few, [Fraction(1)]).separate
    (Fraction(0, 1), True)
    """
    if unit.delta and not all(unit.charge(epsilon) for epsilon in epsilons):
        hint, got = "With this delta no epsilon would remain.", f"{float(unit.delta):g}"
        raise ArgumentError("delta", "be smaller, so that an epsilon is left", got=got, hint=hint)
    added = replace(unit, delta=Fraction(0))
    little = (unit.charge(e) > (1 - LEAST_GAIN) * added.charge(e) for e in epsilons)
    return added if unit.delta and all(little) else unit


def charge_delta(deltas: Mapping[str, Fraction], disjoint: Sequence[Sequence[str]]) -> Fraction:
    """Add the deltas of columns to that of a release; of disjoint columns, the largest counts.

    >>> charge_delta({"a": Fraction(1, 9), "b": Fraction(2, 9)}, [("a", "b")])
    Fraction(2, 9)
    """
    grouped = {name for group in disjoint for name in group}
    alone = sum((delta for name, delta in deltas.items() if name not in grouped), Fraction(0))
    return alone + sum((max(deltas[name] for name in group) for group in disjoint), Fraction(0))
