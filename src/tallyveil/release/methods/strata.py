"""Method strata: preserve within public groups of rows, each with its own distribution."""

from __future__ import annotations

from tallyveil.release.methods.base import Method, read_columns
from tallyveil.structs import set_field

__all__ = ["Strata"]


class Strata(Method, frozen=True, tag="strata"):
    """Keep the distribution of counts within each stratum, and in the whole table.

    Attributes
    ----------
    columns : tuple of str
        Public columns whose labels make the strata.
    """

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        set_field(self, "columns", read_columns(self.columns, "strata"))
        super().__post_init__()

    @property
    def public_columns(self) -> tuple[str, ...]:
        """The columns that make the groups."""
        return self.columns
