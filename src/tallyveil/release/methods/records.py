"""What receipts say of public groups: sums that counts add up to, and strata."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from tallyveil.arrays import Integers
from tallyveil.errors import ArgumentError, PackageError
from tallyveil.release.methods.hierarchy import Hierarchy
from tallyveil.release.methods.margins import Margins
from tallyveil.release.methods.sums import Sums, name_file
from tallyveil.sums.grouping import Grouping
from tallyveil.tables.table import Table

__all__ = ["StrataRecord", "SumsRecord"]


@dataclass(frozen=True)
class SumsRecord:
    """What the receipt says of sums; everything else follows from it and the data."""

    method: Sums
    sizes: tuple[int, ...]
    alone: int = 0
    """Rows that are the only ones of a group whose sum is exact."""
    free: tuple[int, ...] = ()
    """Beside structural zeros: how many sums of each level, and rows, were measured."""
    bounds: str = ""
    """The public column with the largest count of every row; empty for none."""

    @classmethod
    def of(
        cls, method: Sums, grouping: Grouping, name: str = "", bounds: Integers | None = None
    ) -> SumsRecord:
        """The record of these groups; `bounds` of the column `name` are largest counts of rows."""
        free = grouping.part.sizes if grouping.places else ()
        method = msgspec.structs.replace(method, unbiased=False)  # a column says it
        if isinstance(method, Hierarchy):
            method = msgspec.structs.replace(method, upper_column="")  # it is `name`
        alone = method.count_alone(grouping, bounds)
        return cls(method, grouping.full.sizes, alone, free, name)

    def is_of(self, grouping: Grouping, table: Table) -> bool:
        """Whether it is the record of a published table with these groups."""
        bounds = table.counts(self.bounds) if self.bounds else None
        return SumsRecord.of(self.method, grouping, self.bounds, bounds) == self

    @property
    def public(self) -> tuple[str, ...]:
        """Every column that is needed, and so published unchanged."""
        return (*self.method.public_columns, *([self.bounds] if self.bounds else []))

    @property
    def measured(self) -> tuple[int, ...]:
        """How many nodes each level has that are not 0 for certain."""
        return self.free or self.sizes

    @property
    def names(self) -> tuple[str, ...]:
        """The levels above the rows."""
        return self.method.name_levels(len(self.sizes) - 1)

    @property
    def files(self) -> tuple[str, ...]:
        """The file of each level above the rows."""
        return tuple(map(name_file, range(len(self.sizes) - 1)))

    @property
    def outside(self) -> str:
        """Which sums the promise does not cover, in words; empty if it covers all."""
        if self.method.exact_level < 0:
            return ""
        below = " and ".join(self.names[1 : self.method.exact_level + 1])
        sums = f" and the exact sums by {below}" if below else ""
        words = f"the exact total{sums}, which the publisher declared public"
        return f"{words}, and with them {self.describe_alone()}" if self.alone else words

    def describe_alone(self) -> str:
        """Words for the counts that exact sums give away."""
        if self.alone == 1:
            return "the exact count of 1 row that is the only one of its group"
        return f"the exact counts of {self.alone:,} rows that are the only ones of their groups"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        method, levels = self.method, zip(self.names, self.files, self.sizes, strict=False)
        weights = method.weights if isinstance(method, Hierarchy) else None
        margins = method.columns if isinstance(method, Margins) else ()
        return {
            "columns": list(method.public_columns),
            "rows": self.sizes[-1],
            "levels": [{"name": n, "file": f, "sums": s} for n, f, s in levels],
            "level_weights": None if weights is None else list(weights),
            "exact": method.invariant if isinstance(method, Hierarchy) else "",
            **({"exact_rows": self.alone} if self.alone else {}),
            "outside_the_promise": self.outside,
            **({"not_structural_zeros": list(self.free)} if self.free else {}),
            **({"bounds": self.bounds} if self.bounds else {}),
            **({"margins": [list(names) for names in margins]} if margins else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SumsRecord:
        """The record that `to_dict` wrote."""
        weights, levels, margins = data["level_weights"], data["levels"], data.get("margins", ())
        sizes = (*(int(level["sums"]) for level in levels), int(data["rows"]))
        free = tuple(int(size) for size in data.get("not_structural_zeros", ()))
        try:
            method: Sums
            if margins:
                method = Margins(columns=tuple(tuple(map(str, names)) for names in margins))
            else:
                method = Hierarchy(
                    columns=tuple(map(str, data["columns"])),
                    invariant=str(data["exact"]),
                    weights=None if weights is None else tuple(map(float, weights)),
                )
        except ArgumentError:
            raise PackageError("The receipt's hierarchy contradicts itself.") from None
        alone, bounds = int(data.get("exact_rows", 0)), str(data.get("bounds", ""))
        record = cls(method, sizes, alone, free, bounds)
        if not record._is_sound() or record.to_dict() != dict(data):
            raise PackageError("The receipt's hierarchy contradicts itself.")
        return record

    def _is_sound(self) -> bool:
        """Whether some table and request could have this record."""
        sizes, free, method = self.sizes, self.measured, self.method
        weights = (method.weights if isinstance(method, Hierarchy) else None) or (1.0,) * len(sizes)
        return (
            not (self.bounds and isinstance(method, Margins))
            and self.bounds not in method.public_columns
            and len(weights) == len(sizes) == len(free)
            and all(0 <= weight < math.inf for weight in weights)
            and all(1 <= part <= size <= sizes[-1] for part, size in zip(free, sizes, strict=True))
            and not (self.free and self.free[-1] == sizes[-1])
        )


@dataclass(frozen=True)
class StrataRecord:
    """What the receipt says of strata: their columns, and how many there are."""

    columns: tuple[str, ...]
    strata: int

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"columns": list(self.columns), "strata": self.strata}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StrataRecord:
        """The record that `to_dict` wrote."""
        record = cls(tuple(str(name) for name in data["columns"]), int(data["strata"]))
        once = len(set(record.columns)) == len(record.columns) > 0
        if record.to_dict() != dict(data) or not once or record.strata < 1:
            raise PackageError("The receipt's strata contradict themselves.")
        return record
