"""A request meets its table: everything that can fail, before anything is spent.

What `prepare` returns holds the confidential counts; nothing has been drawn from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tallyveil.arrays import Mask, freeze
from tallyveil.errors import ArgumentError, TableError, UsageError
from tallyveil.plans.layout import ROW_ORDERS, Layout, ReadCounts, read_columns
from tallyveil.plans.methods import name_unbiased
from tallyveil.plans.plan import plan_column
from tallyveil.plans.prepared import Counted, Opened, Prepared
from tallyveil.plans.zeros import find_free, meets_rule, require_zero
from tallyveil.release.options import ReleaseOptions
from tallyveil.request.hierarchy import find_groups
from tallyveil.request.request import Request, check_options
from tallyveil.request.strata import find_strata
from tallyveil.sampling.entropy import Entropy
from tallyveil.sums.grouping import Grouping
from tallyveil.tables.counts import (
    LARGEST,
    ColumnCounts,
    clip_counts,
    leave_out_missing,
    read_counts,
)
from tallyveil.tables.frames import rename_array
from tallyveil.tables.labels import require_own_names
from tallyveil.tables.microdata import PersonBound, identify_persons
from tallyveil.tables.read import read_table
from tallyveil.tables.table import Table

__all__ = ["open_table", "prepare", "prepare_opened"]

ARRAY = "array"
"""The kind of a table that is a plain array of counts."""

LARGEST_BOUND = 10**15
"""Up to here every format writes a whole number in plain digits."""


def prepare(table: Any, options: ReleaseOptions) -> Prepared:
    """Check a request, its table and every count, and plan the draws; nothing is spent.

    Parameters
    ----------
    table : path, table or array
        See `tv.privatize`.
    options : ReleaseOptions
        What is asked for.

    Returns
    -------
    Prepared
        Ready for the transaction.
    """
    return prepare_opened(open_table(table, options), options.entropy)


def open_table(table: Any, options: ReleaseOptions) -> Opened:
    """Check a request and read its table; its counts are not looked at."""
    is_path = isinstance(table, (str, Path))
    early = check_options(options) if is_path else None
    source = read_table(table, options.source.form)
    request = early or check_options(options, array=source.kind == ARRAY)
    if source.kind == ARRAY:
        source = _name_array(source, request)
    if source.rows == 0 and not request.categories:
        raise TableError(
            "The table has no rows, and no list of categories says which it could have."
        )
    if source.kind != ARRAY:
        return Opened(request, *_read_as_declared(source, request))
    if request.form.writes_numbers:
        raise UsageError("An array holds numbers: leave out how they are written.")
    return Opened(request, source)


def prepare_opened(
    opened: Opened, entropy: Entropy | None = None, read: ReadCounts = read_counts
) -> Prepared:
    """Plan the draws for a table that is open; `read` gives its counts, or invented ones."""
    request, source = opened.request, opened.source
    counts, layout, counted = _read(opened, entropy, read)
    request, counts = _bound_counts(source, request, counts, layout)
    if read is not read_counts:  # invented counts contradict no bound
        counts = {name: replace(column, above=0) for name, column in counts.items()}
    _require_covered(counts, request)
    _require_free_names(source, request, layout)
    if request.strata:
        categories = request.categories if layout.grouped else ()
        groups = find_strata(request.strata, source, categories, request.by)
        request = replace(request, groups=groups)
    if request.zeros:
        free = _find_free(source, request, counts, layout)
        request = replace(request, free=free)
        if read is not read_counts:
            counts = {name: column.keep_only(free) for name, column in counts.items()}
        for name, column in counts.items():
            require_zero(name, column.values, free)
    if request.hierarchy is not None:
        categories = request.categories if layout.grouped else ()
        found = find_groups(request.hierarchy, source, categories, request.by, layout.order)
        request = replace(request, grouping=Grouping.of(found, request.free))
    rows = len(next(iter(counts.values())).values)
    _require_apart(request, rows)
    return Prepared(
        request,
        source,
        counts,
        tuple(plan_column(request, asked, rows) for asked in request.columns),
        layout,
        counted,
        opened.missing,
    )


def _read(
    opened: Opened, entropy: Entropy | None, read: ReadCounts
) -> tuple[dict[str, ColumnCounts], Layout, Counted | None]:
    """Every count column, how it is published, and what was counted of microdata."""
    request, source = opened.request, opened.source
    if request.microdata and read is read_counts:
        return _count_microdata(opened, entropy or Entropy())
    if request.microdata:
        return *_stand_in_for_microdata(source, request, read), None
    return *read_columns(source, request, read), None


def _name_array(source: Table, request: Request) -> Table:
    """An array as a table with its one column."""
    if len(request.columns) > 1:
        raise ArgumentError("count", "be one name, or left out, for an array of counts")
    return rename_array(source, request.columns[0].name)


def _read_as_declared(source: Table, request: Request) -> tuple[Table, int]:
    """The table with its counts read as declared, and how many rows hold a code in their place."""
    counted = [column.name for column in request.columns if column.name in source.names]
    missing = 0
    if request.form.missing:
        source, missing = leave_out_missing(source, counted, request.form.missing)
        if source.rows == 0:
            raise TableError("Every row has a code for a missing count: nothing is left.")
    return replace(source, form=request.form), missing


def _count_microdata(
    opened: Opened, entropy: Entropy
) -> tuple[dict[str, ColumnCounts], Layout, Counted | None]:
    """Rows counted into the public categories, where they are.

    Which rows of a person stay is chosen with secure random bits, and itself never published.
    """
    request, source, counting = opened.request, opened.source, opened.request.counting
    (column,), unit = request.columns, request.unit
    bound = None
    if request.person is None:
        counts = every = counting.count(source)
    else:
        bound = PersonBound(request.person, unit.contributions, unit.separate, entropy.permutation)
        counts, every = counting.count_bounded(source, bound)
    left_out = None if bound is None else (int((every - counts).sum()), int(every.sum()))
    layout = Layout((*request.by, column.name), ROW_ORDERS["categories"], grouped=True)
    cut = {column.name: clip_counts(counts, column.upper)}
    return cut, layout, Counted(every, left_out)


def _stand_in_for_microdata(
    source: Table, request: Request, read: ReadCounts
) -> tuple[dict[str, ColumnCounts], Layout]:
    """The categories with counts from `read`; of the table itself only names are looked at."""
    nobody = source.slice(0, 0)
    if request.person is not None:
        identify_persons(nobody, request.person)
    request.counting.count(nobody)
    (column,) = request.columns
    empty = np.zeros(len(request.categories), dtype=np.int64)
    cells = nobody.build_grouped(request.by, request.categories, {column.name: empty})
    counts = {column.name: read(cells, column.name, column.upper)}
    layout = Layout((*request.by, column.name), ROW_ORDERS["categories"], grouped=True)
    return counts, layout


def _bound_counts(
    source: Table, request: Request, counts: dict[str, ColumnCounts], layout: Layout
) -> tuple[Request, dict[str, ColumnCounts]]:
    """Cut counts to the largest of their row, where a public column says it."""
    name = "" if request.hierarchy is None else request.hierarchy.bounds
    if not name:
        return request, counts
    if layout.grouped or name not in layout.keep:
        rule = "name a column of the table that is published unchanged beside its rows"
        raise ArgumentError("upper_column", rule, name)
    if request.form.writes_numbers:
        raise UsageError(
            "A 'method.upper_column' is released as it is written, and must be written in plain "
            "digits: leave out how numbers are written."
        )
    bounds = read_counts(source, name, LARGEST).values.astype(np.int64)
    if int(bounds.max()) > LARGEST_BOUND:
        raise ArgumentError("upper_column", f"hold numbers of at most {LARGEST_BOUND:,}", name)
    cut = {name: column.cut(bounds) for name, column in counts.items()}
    return replace(request, bounds=freeze(bounds)), cut


def _find_free(
    source: Table, request: Request, counts: Mapping[str, ColumnCounts], layout: Layout
) -> Mask:
    """The rows that are not structural zeros, in the order of the counts."""
    public = [condition.column for rule in request.zeros for condition in rule]
    hidden = sorted(set(public) - (set(layout.keep) - set(counts)))
    if hidden:
        raise ArgumentError(
            "structural_zeros", "name columns that are published unchanged", hidden[0]
        )
    empty = {name: np.zeros_like(column.values) for name, column in counts.items()}
    if layout.grouped:
        published = source.build_grouped(request.by, request.categories, empty)
    else:
        published = source.build_released(empty, layout.keep, layout.order)
    for rule in request.zeros:
        if not meets_rule(rule, published).any():
            got = " and ".join(map(str, rule))
            raise ArgumentError(
                "structural_zeros", "meet at least one row of the published table", got=got
            )
    free = find_free(request.zeros, published)
    if layout.order is not None:
        there = free
        free = np.empty_like(there)
        free[layout.order] = there
    return free


def _require_free_names(source: Table, request: Request, layout: Layout) -> None:
    """Refuse unbiased columns of an array, and those whose names the table has already."""
    if request.unbiased and source.kind == ARRAY:
        raise UsageError("An array has no room for an unbiased column: give a table.")
    taken = {*source.names, *source.index_names, *request.by}
    added = [name_unbiased(column.name) for column in request.columns if request.unbiased]
    for name in added:
        if name in taken:
            raise UsageError(f"The table has a column {name!r} already: rename it first.")
    require_own_names((*(() if layout.grouped else source.index_names), *layout.keep, *added))


def _require_apart(request: Request, rows: int) -> None:
    """Refuse a statement that cannot be: contributions in more rows than there are."""
    unit = request.unit
    if unit.separate and unit.bound == "stated" and unit.contributions > rows:
        rule = f"be at most {rows:,}, the published rows, if no two contributions are in one"
        raise ArgumentError("contributions", rule, unit.contributions)


def _require_covered(counts: Mapping[str, ColumnCounts], request: Request) -> None:
    """Refuse counts above the bound where sums are exact: they would not be once counts are cut."""
    asked = request.hierarchy
    if asked is None or not asked.exact:
        return
    for column in request.columns:
        if counts[column.name].above:
            bound = f"{column.upper}" + (
                f" or their row's {asked.bounds!r}" if asked.bounds else ""
            )
            raise TableError(
                f"Column {column.name!r} has counts above the upper bound {bound}, and exact sums "
                "allow no top-coding. Raise the bound to one that is publicly known."
            )
