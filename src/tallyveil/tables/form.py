"""How a file is written, as its owner declares it: a public fact, asked about where unclear."""

from __future__ import annotations

from dataclasses import dataclass

from tallyveil.errors import UsageError

__all__ = ["SEPARATORS", "Form"]

SEPARATORS = (",", ".", " ", "'", "_", "\u00a0", "\u202f", "\u2019")
"""Separators of thousands somewhere in the world."""


@dataclass(frozen=True)
class Form:
    """The options of `tv.Source`, which checks and explains each of them.

    >>> Form(delimiter="tab").delimiter == chr(9)
    True
    """

    sheet_name: str | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"
    skiprows: int = 0
    skipfooter: int = 0
    comment: str | None = None
    thousands: str | None = None
    decimal: str = "."
    na_values: tuple[str, ...] = ()
    sql: str | None = None

    def __post_init__(self) -> None:
        if self.delimiter == "tab":
            object.__setattr__(self, "delimiter", "\t")

    @property
    def marks_numbers(self) -> bool:
        """Whether numbers are written with separators of thousands or another decimal point."""
        return self.thousands is not None or self.decimal != "."

    @property
    def writes_numbers(self) -> bool:
        """Whether numbers or missing counts are written in a way of their own."""
        return self.marks_numbers or bool(self.na_values)

    def require_unused(self, names: tuple[str, ...], what: str) -> None:
        """Refuse options that do not apply to a table of this kind."""
        for name in names:
            if getattr(self, name) != getattr(Form, name):
                raise UsageError(f"'source.{name}' is not for {what}: leave it out.")
