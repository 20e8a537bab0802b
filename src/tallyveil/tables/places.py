"""Where the rows of a table stand in a public list of categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.errors import TableError
from tallyveil.tables.base import Table
from tallyveil.tables.bins import Bins
from tallyveil.tables.codes import normal_label

__all__ = ["Label", "Places", "normal_category"]

Label: TypeAlias = tuple[Any, ...]
"""One category: a value for each column; the values of a column are of one type."""


def normal_category(label: Label) -> tuple[str, ...]:
    """A category in the form in which it is compared."""
    return tuple(normal_label(str(part)) for part in label)


@dataclass(frozen=True, eq=False)
class Places:
    """Finds the place of every row's category, column by column.

    For each column its labels have codes, and `beginnings` are the public categories up to it: the
    number of one up to the column before, times the number of labels, plus the code. The whole
    ones stand in the list at `position`. Rows with any other category are at `other`, or -1.
    """

    names: tuple[str, ...]
    codes: tuple[Mapping[str, int], ...]
    beginnings: tuple[Integers, ...]
    position: Integers
    other: int = -1
    bins: Mapping[str, Bins] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        by: Sequence[str],
        categories: Sequence[Label],
        other: int | None = None,
        bins: Mapping[str, Bins] | None = None,
    ) -> Places:
        """Look at the public list, once."""
        listed = list(map(normal_category, categories))
        known = np.zeros(len(categories), dtype=np.int64)
        codes: list[Mapping[str, int]] = []
        beginnings: list[Integers] = []
        for at in range(len(by)):
            parts = [label[at] for label in listed]
            code_of = {part: code for code, part in enumerate(dict.fromkeys(parts))}
            pairs = known * len(code_of) + np.array([code_of[part] for part in parts], np.int64)
            found, known = np.unique(pairs, return_inverse=True)
            codes.append(code_of)
            beginnings.append(found)
        position = np.empty(len(categories), dtype=np.int64)
        position[known] = np.arange(len(categories))
        place = -1 if other is None else other
        return cls(tuple(by), tuple(codes), tuple(beginnings), position, place, bins or {})

    def require_columns(self, table: Table) -> None:
        """Raise a `TableError` unless the table has the columns."""
        for name in self.names:
            if name not in (*table.names, *table.index_names):
                raise TableError(f"There is no column {name!r} to count by.")

    def find(self, table: Table) -> Integers:
        """The place of every row, shape (rows,)."""
        places = np.zeros(table.rows, dtype=np.int64)
        for name, code_of, known in zip(self.names, self.codes, self.beginnings, strict=True):
            column = table.codes(name)
            ranges = self.bins.get(name)
            labels = column.labels if ranges is None else map(ranges.find, column.labels)
            listed = np.array(
                [code_of.get(normal_label(label), -1) for label in labels], dtype=np.int64
            )
            found = listed[column.codes]
            wanted = places * len(code_of) + found
            nearest = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            is_listed = (places >= 0) & (found >= 0) & (known[nearest] == wanted)
            places = np.where(is_listed, nearest, -1)
        return np.where(places >= 0, self.position[places], self.other)
