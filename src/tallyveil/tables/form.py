"""How a file is written, as its owner declares it: a public fact, asked for where unclear."""

from __future__ import annotations

from dataclasses import dataclass

from tallyveil.errors import ArgumentError, UsageError

__all__ = ["Form"]

SEPARATORS = (",", ".", " ", "'", "_", "\u00a0", "\u202f", "\u2019")
"""What stands between thousands somewhere in the world."""

MOST_SKIPPED = 10_000


@dataclass(frozen=True)
class Form:
    """What is said of a file; `tv.privatize` explains each part.

    >>> Form(delimiter="tab").delimiter == chr(9), Form().is_plain
    (True, True)
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    sheet: str | None = None
    skip_rows: int = 0
    skip_footer: int = 0
    comment: str | None = None
    thousands: str | None = None
    decimal: str = "."
    missing: tuple[str, ...] = ()
    query: str | None = None

    def __post_init__(self) -> None:
        if self.delimiter == "tab":
            object.__setattr__(self, "delimiter", "\t")
        if self.delimiter is not None and len(self.delimiter) != 1:
            hint = "Such as ',' or ';'; the word tab stands for a tab."
            raise ArgumentError("delimiter", "be one character", self.delimiter, hint)
        for name in ("skip_rows", "skip_footer"):
            lines = getattr(self, name)
            if isinstance(lines, bool) or not isinstance(lines, int) or lines < 0:
                raise ArgumentError(name, "be a whole number of at least 0", lines)
            if lines > MOST_SKIPPED:
                raise ArgumentError(name, f"be at most {MOST_SKIPPED:,}", lines)
        if self.comment is not None and not str(self.comment).strip():
            raise ArgumentError("comment", "be what such a line begins with, such as '#'")
        if self.thousands is not None and self.thousands not in SEPARATORS:
            hint = "It stands between thousands, as in 1,000."
            raise ArgumentError("thousands", "be ',', '.', ' ' or \"'\"", self.thousands, hint)
        if self.decimal not in (".", ","):
            raise ArgumentError("decimal", "be '.' or ','", self.decimal)
        if self.thousands is not None and self.thousands == self.decimal:
            hint = "Say --decimal ',' as well if thousands are written 1.000."
            raise UsageError(f"'thousands' and 'decimal' must differ. {hint}")

    @property
    def is_plain(self) -> bool:
        """Whether every line of a text file is a row of the table or its header."""
        return not (self.skip_rows or self.skip_footer or self.comment)

    @property
    def marks_numbers(self) -> bool:
        """Whether numbers are written with marks of their own."""
        return self.thousands is not None or self.decimal != "."

    @property
    def writes_numbers(self) -> bool:
        """Whether numbers or missing cells are written in a way of their own."""
        return bool(self.thousands or self.missing or self.decimal != ".")

    def require_unused(self, names: tuple[str, ...], what: str) -> None:
        """Refuse parts that say nothing about a table of this kind."""
        for name in names:
            if getattr(self, name) != getattr(Form, name):
                raise UsageError(f"'{name}' is not for {what}: leave it out.")
