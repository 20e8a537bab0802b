"""Which sums a release is asked to add up to, as it was asked."""

from __future__ import annotations

from dataclasses import dataclass

from tallyveil.release.methods.hierarchy import TOTAL

__all__ = ["HierarchyRequest"]


@dataclass(frozen=True)
class HierarchyRequest:
    """What was asked for.

    Attributes
    ----------
    columns : tuple of str
        Public columns from coarse to fine.
    exact : str
        The finest level whose sums are published exactly, because they are public already;
        empty for none. They are outside the promise.
    weights : tuple of float or None
        How much the error of each level counts, from the grand total to the rows.
    margins : tuple of tuple of str
        Instead of a hierarchy: the columns of each margin. `columns` are then all of them.
    bounds : str
        The public column with the largest count of every row; empty for none.
    """

    columns: tuple[str, ...]
    exact: str = ""
    weights: tuple[float, ...] | None = None
    margins: tuple[tuple[str, ...], ...] = ()
    bounds: str = ""

    @property
    def public(self) -> tuple[str, ...]:
        """Every column that is needed, and so published unchanged."""
        return (*self.columns, self.bounds) if self.bounds else self.columns

    @property
    def method(self) -> str:
        """The method's name."""
        return "margins" if self.margins else "hierarchy"

    @property
    def why(self) -> str:
        """Why that method is used."""
        return "margins were asked for" if self.margins else "a hierarchy was asked for"

    @property
    def exact_level(self) -> int:
        """The number of the finest exact level, -1 for none."""
        return (TOTAL, *self.columns).index(self.exact) if self.exact else -1
