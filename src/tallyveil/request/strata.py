"""Strata: public groups of rows within each of which the distribution of counts is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tallyveil.arrays import Integers, freeze
from tallyveil.errors import PackageError, TableError
from tallyveil.request.hierarchy import read_codes
from tallyveil.tables.labels import number_together
from tallyveil.tables.table import Table

__all__ = ["StrataRecord", "find_strata"]

MOST_STRATA = 1000
"""Each has an estimate of its own; more would take hours."""


def find_strata(
    names: Sequence[str],
    table: Table,
    categories: Sequence[tuple[str, ...]] = (),
    by: Sequence[str] = (),
) -> Integers:
    """Every row's stratum, numbered in the order of their labels."""
    columns = [read_codes(name, table, categories, by, "strata").codes for name in names]
    numbers = number_together(columns)
    if int(numbers.max()) >= MOST_STRATA:
        raise TableError(f"There are more than {MOST_STRATA:,} strata: name coarser columns.")
    return freeze(numbers)


@dataclass(frozen=True)
class StrataRecord:
    """What the receipt says of strata: their columns, and how many there are."""

    columns: tuple[str, ...]
    strata: int

    @classmethod
    def of(cls, columns: tuple[str, ...], groups: Integers | None) -> StrataRecord | None:
        """The record of these groups, or None where there are none."""
        return None if groups is None else cls(columns, int(groups.max()) + 1)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"columns": list(self.columns), "strata": self.strata}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StrataRecord:
        """The record that `to_dict` wrote."""
        made = cls(tuple(str(name) for name in data["columns"]), int(data["strata"]))
        once = len(set(made.columns)) == len(made.columns) > 0
        if made.to_dict() != dict(data) or not once or made.strata < 1:
            raise PackageError("The receipt's strata contradict themselves.")
        return made
