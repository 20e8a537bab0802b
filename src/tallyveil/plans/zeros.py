"""Structural zeros: cells that are 0 whatever the data say, such as men in a maternity ward.

They are public. They receive nothing, cost nothing, and take nothing from the other cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from tallyveil.arrays import Mask, freeze
from tallyveil.errors import PackageError, TableError
from tallyveil.plans.margin_sums import MarginSums
from tallyveil.plans.methods import Counts, Method, PublishedCounts
from tallyveil.plans.sums import PublishedSums, SumDraws, Sums
from tallyveil.request.hierarchy import HierarchyRequest, find_groups
from tallyveil.sampling.entropy import Entropy
from tallyveil.sums.grouping import Grouping
from tallyveil.tables.conditions import Condition, parse_conditions
from tallyveil.tables.table import Table

__all__ = [
    "WithEmptyGroups",
    "WithZeros",
    "ZeroRule",
    "ZerosRecord",
    "find_free",
    "find_grouping",
    "meets_rule",
    "require_zero",
]

ZeroRule: TypeAlias = tuple[Condition, ...]
"""Conditions that a row meets together if it is a structural zero."""


def find_free(rules: Sequence[ZeroRule], table: Table) -> Mask:
    """Which rows of a published table are not structural zeros; at least one must be."""
    free = np.ones(table.rows, dtype=bool)
    for rule in rules:
        free &= ~meets_rule(rule, table)
    if not free.any():
        raise TableError("Every row is a structural zero: there is nothing to publish.")
    return freeze(free)


def meets_rule(rule: ZeroRule, table: Table) -> Mask:
    """Which rows of a published table meet a rule."""
    met: Mask = np.logical_and.reduce([condition.holds(table) for condition in rule])
    return met


def require_zero(name: str, counts: Counts, free: Mask) -> None:
    """Raise a `TableError` if a row that must be 0 is not; it does not say which."""
    if counts[~free].any():
        raise TableError(
            f"Column {name!r} has a count above 0 in a row that 'counts.structural_zeros' "
            "declares to be 0. Correct the table, or narrow the condition."
        )


@dataclass(frozen=True, eq=False)
class WithZeros:
    """A method that sees only the rows that are not structural zeros."""

    method: Method
    free: Mask

    def draw(self, counts: Counts, entropy: Entropy) -> Any:
        """The method's draws for the other rows."""
        return self.method.draw(counts[self.free], entropy)

    def publish(self, draws: Any, entropy: Entropy) -> tuple[PublishedCounts, ...]:
        """What the method publishes, with 0 in structural zeros; histograms leave them out."""
        return tuple(self._fill(made) for made in self.method.publish(draws, entropy))

    def _fill(self, made: PublishedCounts) -> PublishedCounts:
        unbiased = None if made.unbiased is None else self._spread(made.unbiased)
        drawn = None if made.drawn is None else self._spread(made.drawn)
        return replace(made, values=self._spread(made.values), unbiased=unbiased, drawn=drawn)

    def _spread(self, values: Any) -> Any:
        full = np.zeros(len(self.free), dtype=values.dtype)
        full[self.free] = values
        return freeze(full)


@dataclass(frozen=True, eq=False)
class WithEmptyGroups:
    """A method that measures the groups of free rows; groups of structural zeros sum to 0."""

    method: Sums | MarginSums
    grouping: Grouping

    def draw(self, counts: Counts, entropy: Entropy) -> SumDraws:
        """The method's draws for the free rows."""
        return self.method.draw(counts, entropy)

    def publish(self, draws: SumDraws, entropy: Entropy) -> tuple[PublishedSums, ...]:
        """What the method publishes, with 0 for the sums of empty groups."""
        return tuple(self._fill(made) for made in self.method.publish(draws, entropy))

    def _fill(self, made: PublishedSums) -> PublishedSums:
        def fill(levels: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(self.grouping.fill(*level) for level in enumerate(levels))

        sums, estimates, missed = map(fill, (made.sums, made.estimates, made.missed))
        return replace(made, sums=sums, estimates=estimates, missed=missed)


@dataclass(frozen=True)
class ZerosRecord:
    """What the receipt says of structural zeros: the rules as text, and how many rows meet one."""

    rules: tuple[str, ...]
    rows: int

    @classmethod
    def of(cls, rules: Sequence[ZeroRule], free: Mask) -> ZerosRecord:
        """The record of these rules."""
        return cls(tuple(map(_write, rules)), int((~free).sum()))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the rules refer to."""
        return tuple(condition.column for condition in parse_conditions(self.rules))

    def find_free(self, table: Table) -> Mask:
        """Which rows of the published table are not structural zeros."""
        return find_free([parse_conditions([text]) for text in self.rules], table)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"rules": list(self.rules), "rows": self.rows}

    @classmethod
    def from_dict(cls, data: Any) -> ZerosRecord:
        """The record that `to_dict` wrote."""
        made = cls(tuple(str(rule) for rule in data["rules"]), int(data["rows"]))
        one_form = all(_write(parse_conditions([text])) == text for text in made.rules)
        if made.to_dict() != dict(data) or not made.rules or not one_form:
            raise PackageError("The receipt's structural zeros contradict themselves.")
        return made


def find_grouping(request: HierarchyRequest, table: Table, zeros: ZerosRecord | None) -> Grouping:
    """The groups of a published table, and those of them that are not 0 for certain."""
    free = None if zeros is None else zeros.find_free(table)
    return Grouping.of(find_groups(request, table), free)


def _write(rule: ZeroRule) -> str:
    """A rule in the words that it can be read from again."""
    return " and ".join(map(_write_condition, rule))


def _write_condition(condition: Condition) -> str:
    quote = '"' if "'" in condition.value else "'"
    return f"{condition.column} {condition.sign} {quote}{condition.value}{quote}"
