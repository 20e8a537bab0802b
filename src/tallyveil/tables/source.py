"""Declarations of how a table's file is written: public facts."""

from __future__ import annotations

from collections.abc import Sequence

from tallyveil.errors import ArgumentError, UsageError
from tallyveil.structs import Struct, list_changes, list_values, set_field

SEPARATORS = (",", ".", " ", "'", "_", "\u00a0", "\u202f", "\u2019")
"""Separators of thousands somewhere in the world."""

MOST_SKIPPED = 10_000


class Source(Struct, frozen=True):
    """Options of reading the table's file. Keys have the names they have in pandas.

    Attributes
    ----------
    sheet_name : str
        Sheet of a workbook; needed if there are several.
    delimiter : str
        Character between cells of a text file, or "tab".
    encoding : str
        Encoding of a text file; a byte-order mark takes precedence.
    skiprows : int
        Title lines before the header that are not read.
    skipfooter : int
        Footnote lines at the end that are not read.
    comment : str
        Lines that begin with this are not read, such as "#".
    thousands : str
        Separator of thousands in counts.
    decimal : str
        Decimal point of counts.
    na_values : sequence of str
        Codes of a missing count, such as "*". Rows with one are not released; which rows these are
        must be public.
    sql : str
        With a database's address: the query that gives the table. It may only read.
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
        codes = [str(code).strip() for code in list_values(self.na_values)]
        set_field(self, "na_values", tuple(codes))
        super().__post_init__()
        if self.delimiter not in (None, "tab") and len(str(self.delimiter)) != 1:
            hint = "Such as ',' or ';'; the word tab names a tab."
            raise ArgumentError("delimiter", "be one character", self.delimiter, hint)
        for name in ("skiprows", "skipfooter"):
            if not 0 <= getattr(self, name) <= MOST_SKIPPED:
                rule = f"be a whole number from 0 to {MOST_SKIPPED:,}"
                raise ArgumentError(name, rule, getattr(self, name))
        if self.comment is not None and not self.comment.strip():
            raise ArgumentError("comment", "be what such a line begins with, such as '#'")
        if self.thousands is not None and self.thousands not in SEPARATORS:
            hint = "It is the character between thousands, as in 1,000."
            raise ArgumentError("thousands", "be ',', '.', ' ' or \"'\"", self.thousands, hint)
        if self.decimal not in (".", ","):
            raise ArgumentError("decimal", "be '.' or ','", self.decimal)
        if self.thousands == self.decimal:
            hint = "Set 'decimal' to ',' if thousands are written 1.000."
            raise UsageError(f"'thousands' and 'decimal' must differ. {hint}")

    @property
    def marks_numbers(self) -> bool:
        """True if numbers are written with separators of thousands or another decimal point."""
        return self.thousands is not None or self.decimal != "."

    @property
    def writes_numbers(self) -> bool:
        """True if numbers or missing counts are not written as programs write them."""
        return self.marks_numbers or bool(self.na_values)

    def require_unused(self, names: Sequence[str], what: str) -> None:
        """Refuse options that do not apply to a table of this kind."""
        for name in list_changes(self):
            if name in names:
                raise UsageError(f"'source.{name}' is not for {what}: leave it out.")
