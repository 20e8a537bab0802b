"""Method hierarchy: totals of every level of a hierarchy, and counts that add up to them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tallyveil.errors import ArgumentError
from tallyveil.release.methods.base import Method, read_columns
from tallyveil.structs import set_field

__all__ = ["TOTAL", "Hierarchy"]

TOTAL = "total"
TOTAL_WORDS = (TOTAL, "nation", "all")
"""What the grand total may be called."""

MOST_LEVELS = 40
"""How many columns a hierarchy may have."""


class Hierarchy(Method, frozen=True, tag="hierarchy"):
    """Release totals of every level as well; released counts add up to them exactly.

    Attributes
    ----------
    columns : tuple of str
        Public columns from coarse to fine.
    invariant : str
        The finest level whose totals are public already and released exactly, outside the
        guarantee; "total" for the grand total alone, empty for none.
    weights : tuple of float, or None
        How much the error of each level counts, from the grand total to the rows. It decides which
        share of epsilon each level gets.
    upper_column : str
        A public column with the largest count of each row, such as its population. It is released
        unchanged; larger counts are top-coded.
    """

    columns: tuple[str, ...]
    invariant: str = ""
    weights: tuple[float, ...] | None = None
    upper_column: str = ""

    def __post_init__(self) -> None:
        set_field(self, "columns", read_columns(self.columns, "hierarchy"))
        if len(self.columns) > MOST_LEVELS:
            rule = f"have at most {MOST_LEVELS} columns"
            raise ArgumentError("hierarchy", rule, got=f"{len(self.columns)}")
        if any(": " in name for name in self.columns):
            rule = "name columns without a colon and a space in their names"
            raise ArgumentError("hierarchy", rule)
        if TOTAL in self.columns:
            rule = f"not name a column {TOTAL!r}: the sum of all rows has this name"
            raise ArgumentError("hierarchy", rule, hint="Rename that column first.")
        set_field(self, "invariant", _read_invariant(self.invariant, self.columns))
        set_field(self, "weights", _read_weights(self.weights))
        super().__post_init__()
        if self.upper_column in self.columns:
            rule = "name a public column that is no level"
            raise ArgumentError("upper_column", rule, self.upper_column)

    @property
    def public_columns(self) -> tuple[str, ...]:
        """The columns that make the groups, and the one that bounds every row."""
        return (*self.columns, self.upper_column) if self.upper_column else self.columns

    @property
    def exact_level(self) -> int:
        """The number of the finest exact level, -1 for none."""
        return (TOTAL, *self.columns).index(self.invariant) if self.invariant else -1


def _read_invariant(invariant: str | Iterable[str], columns: tuple[str, ...]) -> str:
    """Return the finest level that is exact: of several, the last."""
    if not invariant:
        return ""
    levels = (TOTAL, *columns)
    parts = invariant.split(",") if isinstance(invariant, str) else invariant
    names = [str(part).strip() for part in parts]
    names = [TOTAL if name in TOTAL_WORDS and name not in columns else name for name in names]
    for name in names:
        if name not in levels:
            rule = f"name levels of the hierarchy: {', '.join(levels)}"
            raise ArgumentError("invariant", rule, name)
    return max(names, key=levels.index)


def _read_weights(weights: Any) -> tuple[float, ...] | None:
    if weights is None or weights == "":
        return None
    parts = weights.split(",") if isinstance(weights, str) else weights
    try:
        numbers = tuple(float(part) for part in parts)
    except (TypeError, ValueError):
        raise ArgumentError("weights", "be numbers, such as 1,4,1", weights) from None
    if not all(math.isfinite(number) and number >= 0 for number in numbers):
        raise ArgumentError("weights", "be finite numbers of at least 0", weights)
    return numbers
