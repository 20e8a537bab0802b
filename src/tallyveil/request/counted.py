"""What is counted: columns of counts, or rows of people by categories. All of it is public."""

from __future__ import annotations

from tallyveil.errors import ArgumentError, UsageError
from tallyveil.request.arguments import list_given, require_writable
from tallyveil.request.options import ReleaseOptions
from tallyveil.tables.conditions import Condition, parse_conditions
from tallyveil.tables.microdata import Bins, Label, combine_categories, public_categories, read_bins

__all__ = ["COUNT_OF_ROWS", "check_bins", "check_categories", "check_columns", "check_zeros"]

COUNT_OF_ROWS = "count"
"""The name of the column that microdata are counted into, and of a plain array."""


def check_columns(
    options: ReleaseOptions, by: tuple[str, ...], counted: tuple[str, ...], unnamed: bool
) -> None:
    """Which columns are counts and which are categories must fit together."""
    if any(not name.strip() for name in counted):
        rule, hint = "name columns that have a name", "Give the column of counts one first."
        raise ArgumentError("count", rule, got="an empty name", hint=hint)
    if not counted and not unnamed:
        hint = "For microdata, one row per person, name the columns to count by."
        raise ArgumentError("count", "name the column of counts", hint=hint)
    if set(by) & set(counted):
        raise ArgumentError("by", "name public columns, not a column of counts")
    if by and not counted and options.categories is None and not options.bins:
        hint = "A category that appears only because somebody is in it gives that person away."
        rule = "list the public categories when microdata are counted"
        raise ArgumentError("categories", rule, hint=hint)
    if (options.where or options.categories is not None) and not by:
        raise ArgumentError("by", "name the category columns that the other options refer to")
    if options.where and counted:
        raise UsageError("'where' is for microdata: rows are counted with 'by' and no 'count'.")
    if COUNT_OF_ROWS in by and not counted:
        hint = "Rename that column first."
        rule = f"not name a column {COUNT_OF_ROWS!r}: rows are counted into one of this name"
        raise ArgumentError("by", rule, hint=hint)
    if by and not counted and (options.keep):
        raise UsageError("Microdata are counted: no other column is published, so none is kept.")
    if by and not counted and (options.allow_duplicates or options.allow_totals):
        raise UsageError(
            "Rows of microdata may repeat a category, and none of them is a total: leave out "
            "'allow_duplicates' and 'allow_totals'."
        )


def check_categories(options: ReleaseOptions, by: tuple[str, ...]) -> tuple[Label, ...]:
    """The public list of categories, with the cell for all others."""
    if options.other is not None and not str(options.other).strip():
        raise ArgumentError("other", "be a label for the cell of everything that is not listed")
    given = combine_categories(options.categories, by, read_bins(options.bins))
    if given is None:
        if options.other is not None:
            raise UsageError("'other' goes with 'categories': what is not listed there is other.")
        return ()
    other = None if options.other is None else str(options.other)
    categories = public_categories(given, by, other)
    require_writable("categories", (part for label in categories for part in label))
    return categories


def check_bins(options: ReleaseOptions, by: tuple[str, ...], microdata: bool) -> dict[str, Bins]:
    """The ranges of numbers that are counted as one category each."""
    bins = read_bins(options.bins)
    if bins and not (microdata and set(bins) <= set(by)):
        raise ArgumentError("bins", "name columns of 'by', where microdata are counted")
    return bins


def check_zeros(options: ReleaseOptions) -> tuple[tuple[Condition, ...], ...]:
    """The rules of structural zeros, one for each text."""
    texts = list_given(options.zero)
    try:
        return tuple(parse_conditions([text]) for text in texts)
    except ArgumentError as problem:
        rule = "be comparisons such as 'sex = F and cause = prostate'"
        raise ArgumentError("zero", rule, got=", ".join(map(str, texts))) from problem
