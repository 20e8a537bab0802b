"""Method margins: totals over columns that cross, and counts that add up to them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from tallyveil.errors import ArgumentError
from tallyveil.release.methods.base import Method
from tallyveil.structs import set_field

__all__ = ["Margins"]


class Margins(Method, frozen=True, tag="margins"):
    """Release crossing margins as well; released counts add up to them.

    Attributes
    ----------
    columns : tuple of tuple of str
        The public columns of each margin, such as (("age", "sex"), ("education",)); written
        "age+sex,education" as text.
    """

    columns: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        margins = _read_margins(self.columns)
        names = tuple(chain.from_iterable(margins))
        written = ", ".join("+".join(margin) for margin in margins)
        if len(margins) < 2 or not all(names):
            hint = "For groups inside groups, or one grouping alone, name a hierarchy."
            rule = "name at least two margins, such as age+sex,education"
            raise ArgumentError("margins", rule, got=written, hint=hint)
        if len(set(names)) != len(names):
            hint = "Margins that share a column must agree on its sums, and noisy ones do not."
            raise ArgumentError("margins", "name every column once", got=written, hint=hint)
        if any(": " in name for name in names):
            rule = "name columns without a colon and a space in their names"
            raise ArgumentError("margins", rule, got=written)
        set_field(self, "columns", margins)
        super().__post_init__()

    @property
    def public_columns(self) -> tuple[str, ...]:
        """The columns that make the groups."""
        return tuple(chain.from_iterable(self.columns))


def _read_margins(margins: str | Iterable[str | Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    """Return the columns of every margin, from text or from lists of columns.

    >>> _read_margins("age+sex, edu"), _read_margins([["age", "sex"], "edu"])
    ((('age', 'sex'), ('edu',)), (('age', 'sex'), ('edu',)))
    """
    parts = margins.split(",") if isinstance(margins, str) else margins
    names = (part.split("+") if isinstance(part, str) else part for part in parts)
    return tuple(tuple(str(name).strip() for name in margin) for margin in names)
