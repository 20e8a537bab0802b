"""Which rows of microdata are counted, where, and how many of each person."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from tallyveil.arrays import Integers, Mask, count_values
from tallyveil.tables.base import Table
from tallyveil.tables.bins import Bins
from tallyveil.tables.categories import (
    Label,
    choose_rows,
    count_rows,
    describe_unlisted,
)
from tallyveil.tables.conditions import Condition, RowChooser
from tallyveil.tables.persons import bound_rows, identify_persons, keep_apart
from tallyveil.tables.places import Places

__all__ = ["Counting", "PersonBound", "Placed"]


@dataclass(frozen=True)
class PersonBound:
    """At most `most` rows of each person stay, with `apart` no two of them in one category.

    `column` tells persons apart; `shuffle` gives a uniformly random permutation of so many rows.
    """

    column: str
    most: int
    apart: bool
    shuffle: Callable[[int], Integers]

    def choose(self, persons: Integers, cells: Integers, counted: Mask) -> Mask:
        """Choose the rows that stay, of those that are `counted`."""
        order = self.shuffle(len(persons))
        if self.apart:
            counted = keep_apart(persons, cells, counted, order)
        return bound_rows(persons, counted, self.most, order)


@dataclass(frozen=True, eq=False)
class Placed:
    """Which rows are counted, and the category of every row, -1 for none."""

    met: Mask
    cells: Integers

    @property
    def unlisted(self) -> Mask:
        """The rows that are to be counted and have no category."""
        return self.met & (self.cells < 0)


@dataclass(frozen=True)
class Counting:
    """The public categories of columns `by`, and the conditions that rows must meet.

    `other` is the place of all categories that are not listed.
    """

    by: tuple[str, ...]
    categories: tuple[Label, ...]
    where: tuple[Condition, ...] = ()
    other: int | None = None
    bins: Mapping[str, Bins] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are looked at."""
        return tuple(dict.fromkeys((*self.by, *(condition.column for condition in self.where))))

    def place(self, table: Table, chooser: RowChooser) -> Placed:
        """Where the rows of a table, or of a part of one, are counted."""
        self._places.require_columns(table)
        met = choose_rows(table, chooser)
        found = [self._places.find(batch) for batch in table.batches()]
        return Placed(met, np.concatenate([np.zeros(0, np.int64), *found]))

    def require_types(self, parts: Iterable[Sequence[set[bool]]]) -> None:
        """Refuse conditions that compare numbers with text, from what parts of a table hold."""
        chooser = RowChooser(self.where)
        for part in parts:
            for kinds, own in zip(chooser.kinds, part, strict=True):
                kinds.update(own)
        chooser.require_types()

    @cached_property
    def _places(self) -> Places:
        return Places.of(self.by, self.categories, self.other, self.bins)

    def __getstate__(self) -> dict[str, Any]:
        """What was asked for; whoever gets it finds the places again."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def count(self, table: Table) -> Integers:
        """Count rows; see `count_rows`."""
        known = self.by, self.categories, self.where
        return count_rows(table, *known, other=self.other, bins=self.bins)

    def count_bounded(self, table: Table, bound: PersonBound) -> tuple[Integers, Integers]:
        """Count so many rows of each person, and all of them."""
        persons = identify_persons(table, bound.column)
        chooser, size = RowChooser(self.where), len(self.categories)
        placed = self.place(table, chooser)
        chooser.require_types()
        if placed.unlisted.any():
            raise describe_unlisted(f"Row {int(placed.unlisted.argmax()) + 1}")
        stays = bound.choose(persons, placed.cells, placed.met)
        counts, every = (count_values(placed.cells[rows], size) for rows in (stays, placed.met))
        return counts, every
