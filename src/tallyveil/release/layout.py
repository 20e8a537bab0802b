"""How a table is published: which columns, which rows, in which order, from public names alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.errors import TableError, UsageError
from tallyveil.release.request import Request
from tallyveil.tables.counts import ColumnCounts
from tallyveil.tables.duplicates import require_distinct
from tallyveil.tables.microdata import place_categories
from tallyveil.tables.subtotals import find_totals
from tallyveil.tables.table import Table
from tallyveil.tables.text import delimiter_hint
from tallyveil.untrusted import escape_controls

ReadCounts: TypeAlias = Callable[[Table, str, int], ColumnCounts]
"""Gives the counts of a table's column, cut to an upper bound: its own, or invented ones."""

MOST_UNCHANGED = 1000
"""A table with more other columns than this must name those that are to be published."""

MOST_SHOWN = 12
"""How many names an error lists."""

NUMBER = re.compile(r"[+-]?[0-9][0-9.,]*")
"""A name that may be a count: the first row where the header is missing."""

Totals: TypeAlias = Mapping[str, tuple[str | None, int]]

ROW_ORDERS = {
    "categories": "that of the public list of categories",
    "input": "that of the input",
}


@dataclass(frozen=True, eq=False)
class Layout:
    """Which columns are published, in which row order.

    `grouped` rows are built anew, one for each public category; `order` is None where rows
    stay as they are.
    """

    keep: tuple[str, ...]
    row_order: str
    order: Integers | None = None
    grouped: bool = False

    @classmethod
    def of_categories(cls, request: Request) -> Layout:
        """The rows of the public list, in its order."""
        keep = (*request.by, *(column.name for column in request.columns))
        return cls(keep, ROW_ORDERS["categories"], grouped=True)


def read_columns(
    source: Table, request: Request, read: ReadCounts
) -> tuple[dict[str, ColumnCounts], Layout]:
    """Every count column of a table that is aggregated already, and how it is published."""
    keep = choose_columns(source, request)
    uppers = {column.name: column.upper for column in request.columns}
    source.require_publishable(n for n in (*source.index_names, *keep) if n not in uppers)
    counts = {name: read(source, name, upper) for name, upper in uppers.items()}
    public = tuple(name for name in (*source.index_names, *keep) if name not in uppers)
    keys = request.by or public
    _require_no_totals(find_totals(source, public), request, public)
    if not request.options.counts.allow_duplicates and _have_categories(source, request, keys):
        require_distinct(source, keys)
    if request.categories:
        return _arrange_categories(source, request, counts, keep)
    return counts, Layout(keep, ROW_ORDERS["input"])


def _have_categories(source: Table, request: Request, keys: Sequence[str]) -> bool:
    """Return whether public columns tell categories: a kept measurement, by itself, does not."""
    if request.keep_all or request.by or request.method.public_columns:
        return True
    labels = [name for name in keys if name in source.index_names]
    numbers = ("integer", "number")
    return bool(labels) or not keys or any(source.type_of(name) not in numbers for name in keys)


def choose_columns(source: Table, request: Request) -> tuple[str, ...]:
    """The columns of the release, in the table's own order."""
    for column in request.columns:
        if column.name not in source.names:
            raise _no_such_column(column.name, source, delimiter_hint(source.names))
    counted = {column.name for column in request.columns}
    public = (*(request.keep or ()), *request.by, *request.method.public_columns)
    for name in public:
        if name not in (*source.names, *source.index_names):
            raise _no_such_column(name, source)
    named = counted | set(public)
    unnamed = [name for name in (*source.index_names, *source.names) if name not in named]
    if unnamed and request.keep is None:
        raise TableError(
            f"Name the public columns to release with 'keep' ({_list_names(unnamed)}), or use "
            "keep='all'."
        )
    if not request.keep_all and (hidden := [n for n in source.index_names if n not in named]):
        raise TableError(
            f"The index {hidden[0]!r} of the table would be released. Name it in 'keep', or leave "
            "it out with reset_index(drop=True)."
        )
    keep = tuple(name for name in source.names if request.keep_all or name in named)
    if len(keep) - len(counted) > MOST_UNCHANGED:
        raise TableError(
            f"The table would publish {len(keep) - len(counted):,} other columns unchanged, "
            f"and the limit is {MOST_UNCHANGED:,}. Name those that are public "
            "in 'keep'."
        )
    return keep


def _arrange_categories(
    source: Table, request: Request, counts: dict[str, ColumnCounts], keep: tuple[str, ...]
) -> tuple[dict[str, ColumnCounts], Layout]:
    """Rows in the order of the public categories, with a count of 0 where a row is missing.

    Whether rows are built anew depends on the names of the columns alone, never on whether
    every category has a row: that is confidential.
    """
    places, size = place_rows(source, request), len(request.categories)
    words = ROW_ORDERS["categories"]
    if {*source.index_names, *keep} - set(counts) == set(request.by):
        uppers = {column.name: column.upper for column in request.columns}
        filled = {name: c.collect(places, size, uppers[name]) for name, c in counts.items()}
        return filled, Layout((*request.by, *filled), words, grouped=True)
    if request.options.microdata.other is not None:
        raise UsageError(
            "Rows of several categories cannot share a cell while other columns are released: "
            "leave those columns out of 'keep', or leave out 'other'."
        )
    if len(places) != size:
        raise TableError(
            "The table has no row for some category of the public list, and columns that a new "
            "row could not fill. Add the missing rows, with counts of 0, or leave those columns "
            "out of 'keep'."
        )
    return counts, Layout(keep, words, np.argsort(places))


def place_rows(source: Table, request: Request) -> Integers:
    """The place in the public list of every row of an aggregated table."""
    return place_categories(source, request.by, request.categories, request.other_place)


def _require_no_totals(totals: Totals, request: Request, public: Sequence[str]) -> None:
    """Ask about rows that seem to repeat others: everybody in them is counted more than once.

    `totals` is what `find_totals` finds in the columns that are published.
    """
    often, reason = 1, ""
    for name in public:
        total, levels = totals[name]
        if total is not None or levels > 1:
            often *= max(levels, 2)
            what = f"a row labelled {total!r}" if total else "labels that are parts of others"
            reason = reason or f"Column {name!r} has {what}"
    if often <= request.unit.contributions or request.options.counts.allow_totals:
        return
    times = "twice" if often == 2 else f"{often} times"
    raise TableError(
        f"{reason}, which may count everyone {times}. Remove it (release totals with 'hierarchy'), "
        f"use unit.contributions={often}, or counts.allow_totals=True if nobody is counted twice."
    )


def _no_such_column(name: str, source: Table, hint: str = "") -> TableError:
    if any(NUMBER.fullmatch(other.strip()) for other in source.names):
        return TableError(
            f"No column named {name!r}. Names are not shown, because some are numbers: perhaps "
            "the file has no line with names at its top. Add one, or see `tallyveil inspect`."
        )
    return TableError(f"No column named {name!r}. Columns: {_list_names(source.names)}.{hint}")


def _list_names(names: Sequence[str]) -> str:
    shown = escape_controls(", ".join(names[:MOST_SHOWN]))
    return shown + (f" and {len(names) - MOST_SHOWN:,} more" if len(names) > MOST_SHOWN else "")
