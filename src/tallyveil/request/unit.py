"""Who is protected: the unit of privacy, in numbers and in words.

The neighbour relation is about a *unit*: one person, or one single event such as a visit. Adding
or removing a unit moves counts by at most `contributions` in all (the L1 distance of the tables
of counts), whether those are several counts or one. Every draw is certified for one move of one
count by one, so a unit costs that many times as much (group privacy).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from tallyveil.budget.accounting import compose
from tallyveil.errors import ArgumentError, UsageError
from tallyveil.request.arguments import check_whole, list_given, require_one_of, write_underscores
from tallyveil.request.options import ReleaseOptions
from tallyveil.tables.conditions import parse_conditions

__all__ = [
    "BOUNDS",
    "NEIGHBOURS",
    "UNITS",
    "PrivacyUnit",
    "charge_columns",
    "check_disjoint",
    "check_unit",
]

UNITS = ("person", "event")
NEIGHBOURS = ("add_remove", "change_one")
BOUNDS = ("stated", "enforced")
"""How often a person is counted is stated by the publisher, or made true by leaving rows out."""


@dataclass(frozen=True)
class PrivacyUnit:
    """What one unit is, and by how much it can move counts.

    `of_rows` says that contributions are rows of microdata, and not counts of an aggregated
    column; `bound` is one of `BOUNDS`; `one_row` says that all of a unit's contributions are in
    one row of the published table, `separate` that no two are. The latter may have a `delta`: the
    epsilons of a unit's rows are then composed, and the whole has that delta.

    >>> PrivacyUnit(contributions=3).multiplier, PrivacyUnit("event").name
    (3, 'one single event, such as a visit or a test, and not a person')
    """

    kind: str = "person"
    neighbours: str = "add_remove"
    contributions: int = 1
    bound: str = "stated"
    of_rows: bool = False
    one_row: bool = False
    delta: Fraction = Fraction(0)
    separate: bool = False

    def charge(self, epsilon: Fraction) -> Fraction:
        """What a unit is charged for draws with this epsilon for one move of one count by one.

        As many times that. With a `delta`, moves are in different rows, which are drawn
        independently: then the epsilon that optimal composition gives with the delta
        (docs/theory.md, several contributions), where that is less.

        >>> PrivacyUnit(contributions=50).charge(Fraction(1, 50))
        Fraction(1, 1)
        >>> float(PrivacyUnit(contributions=50, delta=Fraction(1, 10**6)).charge(Fraction(1, 50)))
        0.556874183
        """
        added = epsilon * self.multiplier
        return (
            min(added, _compose_equal(epsilon, self.multiplier, self.delta))
            if self.delta
            else added
        )

    @property
    def multiplier(self) -> int:
        """By how much one unit moves counts in all; changing a unit takes away and adds."""
        return self.contributions * (2 if self.neighbours == "change_one" else 1)

    @property
    def name(self) -> str:
        """The unit in words, with the bound that the promise rests on."""
        return self._name + self._where

    @property
    def _where(self) -> str:
        """What is said of the rows that a unit's contributions are in."""
        if self.separate:
            return ", no two in the same row of the published table"
        return ", all in one row of the published table" if self.one_row else ""

    @property
    def _name(self) -> str:
        if self.kind == "event":
            often = "" if self.contributions == 1 else f", counted at most {self._times}"
            return f"one single event, such as a visit or a test, and not a person{often}"
        if self.bound == "enforced":
            return f"one person, of whose rows at most {self._often} counted"
        if self.of_rows:
            return f"one person, with at most {self._rows} in the confidential table"
        return f"one person, counted at most {self._times} in each count column"

    @property
    def moves(self) -> str:
        """What one unit can change, in words."""
        changing = self.neighbours == "change_one"
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
            who += f" with at most {self._rows}"
        elif self.contributions > 1:
            who += f", counted up to {self._times},"
        if self.neighbours == "add_remove":
            return f"Including or excluding any {who}"
        return f"Changing any {who}" if self.kind == "event" else f"Changing the data of any {who}"

    @property
    def limits(self) -> tuple[str, ...]:
        """What a reader must know of the unit before relying on the promise."""
        if self.kind == "event":
            return (
                "The guarantee is for one single event. A person with several events is protected "
                "less: with n of them, at n times the stated epsilon.",
            )
        if self.bound == "enforced":
            return (
                f"Of every person at most {self._rows} were counted{self._where}; further rows "
                "were left out at random before counting. How many were left out is confidential, "
                "so published counts may be low for that reason too.",
            )
        often = f"has at most {self._rows}" if self.of_rows else f"is counted at most {self._times}"
        where = " in the confidential table" if self.of_rows else " in each column"
        return (
            f"The publisher states that each person {often}{where}{self._where}. Anyone "
            f"{'with more' if self.of_rows else 'counted more often'} is protected less.",
        )

    @property
    def _rows(self) -> str:
        return "one row" if self.contributions == 1 else f"{self.contributions} rows"

    @property
    def _often(self) -> str:
        return "one was" if self.contributions == 1 else f"{self.contributions} were"

    @property
    def _times(self) -> str:
        return "once" if self.contributions == 1 else f"{self.contributions} times"


@cache
def _compose_equal(epsilon: Fraction, times: int, delta: Fraction) -> Fraction:
    return compose([epsilon] * times).epsilon(delta)


def charge_columns(
    stages: Iterable[tuple[str, str, Fraction]], disjoint: Sequence[Sequence[str]]
) -> tuple[tuple[str, Fraction], ...]:
    """What a unit is charged for, from (column, name, epsilon) of every stage.

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
            costs = (sum((e for c, _, e in listed if c == one), Fraction(0)) for one in group)
            charged.append((f"{' or '.join(group)}: the larger cost", max(costs)))
    return tuple(charged)


def check_unit(options: ReleaseOptions, by: tuple[str, ...], microdata: bool) -> PrivacyUnit:
    """Who is protected, and how often they are counted."""
    neighbours, kind = write_underscores(options.neighbours), str(options.unit)
    require_one_of("neighbours", neighbours, NEIGHBOURS)
    require_one_of("unit", kind, UNITS)
    given, most = options.contributions, options.rows_per_person
    stated = 1 if given is None else check_whole(given, "contributions")
    if options.person is None:
        if most is not None:
            hint = "If the publisher knows the bound already, state it as 'contributions'."
            rule = "go with 'person', the column that tells persons apart"
            raise ArgumentError("rows_per_person", rule, most, hint)
        if options.one_row:
            _require_one_row(options, stated, neighbours)
        return PrivacyUnit(kind, neighbours, stated, of_rows=microdata, one_row=options.one_row)
    if options.one_row:
        raise UsageError("'person' bounds rows wherever they are counted: leave out 'one_row'.")
    if not microdata:
        raise UsageError("'person' is for microdata: rows are counted with 'by' and no 'count'.")
    if kind != "person":
        raise UsageError("'person' bounds the rows of a person: the unit cannot be an event.")
    if most is None:
        hint = "Rows beyond it are left out, and every epsilon is multiplied by it."
        rule = "say how many rows of one person are counted at the most"
        raise ArgumentError("rows_per_person", rule, hint=hint)
    bound = check_whole(most, "rows_per_person")
    if given is not None and stated != bound:
        raise ArgumentError("contributions", f"be left out, or {bound} as rows_per_person", stated)
    used = {*by, *(condition.column for condition in parse_conditions(list_given(options.where)))}
    if str(options.person) in used:
        raise ArgumentError("person", "name a column that nothing else refers to: it is secret")
    return PrivacyUnit(kind, neighbours, bound, "enforced", of_rows=True)


def _require_one_row(options: ReleaseOptions, contributions: int, neighbours: str) -> None:
    """Refuse a statement about one row where nothing rests on it, or more than it says would."""
    if contributions == 1 or neighbours != "add_remove":
        raise UsageError(
            "'one_row' goes with 'contributions' of at least 2, and with units that are added or "
            "removed: a changed one leaves one row and enters another."
        )
    if options.separate_rows:
        raise UsageError("Give either 'one_row' or 'separate_rows': they exclude each other.")
    others = (options.levels, options.hierarchy, options.disjoint, options.nested, options.within)
    preserves = options.priority or options.tradeoff is not None
    if str(options.method) not in ("auto", "geometric") or any(others) or preserves:
        raise UsageError(
            "'one_row' is for the method geometric, at one level, without 'hierarchy', 'disjoint', "
            "'nested' and 'within'."
        )


def check_disjoint(given: Any, counts: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """The groups of count columns of which one unit is in one only, in the order of the counts."""
    listed = list_given(given)
    if listed and all(isinstance(one, str) and one in counts for one in listed):
        groups: list[Sequence[str]] = [listed]
    else:
        groups = [_split_group(one) for one in listed]
    named = [name for group in groups for name in group]
    if len(set(named)) != len(named):
        raise ArgumentError("disjoint", "name every column once")
    for group in groups:
        if len(group) < 2 or not set(group) <= set(counts):
            rule = "name two or more of the count columns"
            raise ArgumentError("disjoint", rule, got=", ".join(map(str, group)))
    ordered = (tuple(name for name in counts if name in group) for group in groups)
    return tuple(sorted(ordered, key=lambda group: counts.index(group[0])))


def _split_group(given: Any) -> list[str]:
    """The columns of one group, written with commas or as a sequence."""
    if isinstance(given, str):
        return [part.strip() for part in given.split(",")]
    return [str(part) for part in given] if isinstance(given, (set, list, tuple)) else [str(given)]
