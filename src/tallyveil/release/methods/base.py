"""What every method of release is: options that a publisher sets and a receipt repeats."""

from __future__ import annotations

from collections.abc import Iterable

from tallyveil.errors import ArgumentError, UsageError
from tallyveil.structs import Struct

__all__ = ["Method", "read_columns"]


class Method(Struct, frozen=True, kw_only=True, tag_field="name"):
    """A way to release a column of counts.

    Attributes
    ----------
    unbiased : bool
        Whether the column NAME_unbiased is published as well: each row's noisy count before it was
        clamped or ranked. It can be negative, is right on average and costs nothing more.
    """

    unbiased: bool = False

    @property
    def name(self) -> str:
        """The name that requests and receipts write."""
        return str(self.__struct_config__.tag)

    @property
    def public_columns(self) -> tuple[str, ...]:
        """Public columns that make groups; they are published unchanged."""
        return ()

    def refuse_unbiased(self) -> None:
        """Refuse the column of noisy counts for a method that has none."""
        if self.unbiased:
            raise UsageError(
                "An unbiased column is made from geometric noise: use the method geometric or "
                "preserve, strata, a hierarchy or margins."
            )


def read_columns(columns: str | Iterable[str], argument: str) -> tuple[str, ...]:
    """Return column names from a sequence, or from one text with commas between them.

    >>> read_columns("state, county", "hierarchy")
    ('state', 'county')
    """
    parts = columns.split(",") if isinstance(columns, str) else columns
    names = tuple(str(part).strip() for part in parts)
    if not all(names) or not names:
        raise ArgumentError(argument, "name at least one column", got="an empty name")
    if len(set(names)) != len(names):
        raise ArgumentError(argument, "name every column once", got=", ".join(names))
    return names
