"""Structural zeros: cells that are 0 by definition, such as men in a maternity ward.

They are public. They receive nothing, cost nothing, and take nothing from the other cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from tallyveil.arrays import Mask, freeze
from tallyveil.errors import PackageError, TableError
from tallyveil.release.column import PublishedColumn
from tallyveil.release.records import Record, Texts, Whole
from tallyveil.tables.conditions import Condition, parse_conditions
from tallyveil.tables.table import CountArray, Table

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


def require_zero(name: str, counts: CountArray, free: Mask) -> None:
    """Raise a `TableError` if a row that must be 0 is not; it does not say which."""
    if counts[~free].any():
        raise TableError(
            f"Column {name!r} has a count above 0 in a row that 'counts.structural_zeros' "
            "declares to be 0. Correct the table, or narrow the condition."
        )


def spread_out(column: PublishedColumn, free: Mask) -> PublishedColumn:
    """A column of the free rows with 0 in structural zeros; histograms leave them out."""

    def spread(values: Any) -> Any:
        full = np.zeros(len(free), dtype=values.dtype)
        full[free] = values
        return freeze(full)

    unbiased = None if column.unbiased is None else spread(column.unbiased)
    drawn = None if column.drawn is None else spread(column.drawn)
    return replace(column, values=spread(column.values), unbiased=unbiased, drawn=drawn)


class ZerosRecord(Record, frozen=True, kw_only=True):
    """What the receipt says of structural zeros: the rules as text, and how many rows meet one."""

    rules: Texts
    rows: Whole

    def __post_init__(self) -> None:
        one_form = all(_write(parse_conditions([text])) == text for text in self.rules)
        if not (self.rules and one_form):
            raise PackageError("The receipt's structural zeros contradict themselves.")

    @classmethod
    def of(cls, rules: Sequence[ZeroRule], free: Mask) -> ZerosRecord:
        """Return the record of these rules."""
        return cls(rules=tuple(map(_write, rules)), rows=int((~free).sum()))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the rules refer to."""
        return tuple(condition.column for condition in parse_conditions(self.rules))

    def find_free(self, table: Table) -> Mask:
        """Which rows of the published table are not structural zeros."""
        return find_free([parse_conditions([text]) for text in self.rules], table)


def _write(rule: ZeroRule) -> str:
    """A rule in the words that it can be read from again."""
    return " and ".join(map(_write_condition, rule))


def _write_condition(condition: Condition) -> str:
    quote = '"' if "'" in condition.value else "'"
    return f"{condition.column} {condition.sign} {quote}{condition.value}{quote}"
