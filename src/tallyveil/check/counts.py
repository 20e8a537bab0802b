"""The check of the data themselves: what a receipt says of published counts holds in every row."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers, Mask
from tallyveil.release.column import Histogram
from tallyveil.release.methods.base import require
from tallyveil.release.methods.sums import FARTHEST
from tallyveil.release.receipt import ColumnRecord, Receipt
from tallyveil.tables.counts import LARGEST, read_counts, read_plain_counts
from tallyveil.tables.labels import find_formulas, require_own_names
from tallyveil.tables.table import Table, read_signed

Column = TypeVar("Column", bound=NDArray[Any])


def check_counts(table: Table, receipt: Receipt) -> str:
    """Rows, columns, ranges, zeros, order and distributions are those of the receipt."""
    facts = receipt.table
    require(table.rows == facts.rows, "the data have another number of rows than stated")
    # a file keeps the labels of a pandas index as its first columns
    require(tuple(table.names) == facts.columns, "the data have other columns than stated")
    require_own_names(facts.columns)
    drawn = [name for column in receipt.columns for name in column.columns]
    rest = tuple(name for name in facts.columns if name not in drawn)
    require(facts.published_unchanged == rest, "the columns published unchanged are others")
    require(len(set(drawn)) == len(drawn), "a column is listed twice")
    free = None if receipt.zeros is None else receipt.zeros.find_free(table)
    protected = table.rows if free is None else int(free.sum())
    stated = receipt.protected_rows == protected
    require(stated, "the structural zeros of the data are not the stated ones")
    for column in receipt.columns:
        counts, fixed = _part(_read_column(table, column), free)
        require(not fixed.any(), f"a structural zero of {column.name} is not 0")
        if column.unbiased is not None:
            draws, fixed = _part(read_signed(table, column.drawn_column), free)
            same = column.is_made_from(draws, counts.astype(np.int64)) and not fixed.any()
            require(same, f"{column.drawn_column} does not hold the draws behind {column.name}")
            far = FARTHEST * (1 + column.drawn_variance**0.5)
            most = np.inf if column.signed else column.upper
            inside = -far <= draws.min() and draws.max() <= most + far
            require(inside, f"{column.drawn_column} has a draw that no noise gives")
        same = Histogram.count(counts) == column.histogram
        require(same, f"the distribution of {column.name} is not the one in the receipt")
    for name in facts.bins:
        fits = set(table.codes(name).labels) <= set(facts.list_ranges(name))
        require(fits, f"{name} has labels that are no ranges of the receipt")
    if facts.other:
        there = any(facts.other in table.codes(name).labels for name in rest)
        require(there, "no row has the label of the cell for other categories")
    order = _check_order(table, receipt)
    zeros = "" if free is None else f", {table.rows - protected:,} structural zeros are 0"
    runs = "; a spreadsheet would run cells of this file as formulas"
    warning = runs if find_formulas(table, rest) else ""
    held = f"every count inside its range, distributions as stated{zeros}{order}"
    return f"{table.rows:,} rows, {held}{warning}"


def read_published(table: Table, column: ColumnRecord) -> Integers:
    """The published counts of a column; where they are signed, as if cut at 0."""
    if column.signed:
        return read_signed(table, column.name).clip(0, column.upper)
    return table.counts(column.name)


def _read_column(table: Table, column: ColumnRecord) -> NDArray[Any]:
    """The same in a narrow type, in batches; every count must lie in its range."""
    if column.signed:
        return read_published(table, column)
    read, plain = read_plain_counts(table, column.name, column.upper)
    require(not read.above, f"a count of {column.name} lies outside 0..{column.upper}")
    require(plain, f"a count of {column.name} is not written in its one form")
    return read.values


def _part(values: Column, free: Mask | None) -> tuple[Column, Column]:
    """The rows that are free, and those that must be 0; all and none without structural zeros."""
    free_rows, fixed = (slice(None), slice(0)) if free is None else (free, ~free)
    return cast("Column", values[free_rows]), cast("Column", values[fixed])


def _check_order(table: Table, receipt: Receipt) -> str:
    """Columns that the receipt names beside another are there, and nested ones keep the order.

    Returns which columns are nested, in words.
    """
    words = ""
    names = [column.name for column in receipt.columns]
    for column in receipt.columns:
        if column.at_most:
            is_nested = column.at_most in names and "counts.nested" in column.method.takes
            require(is_nested, f"{column.name} is nested in a column or method that it cannot be")
            small, large = (
                read_counts(table, name, LARGEST).values for name in (column.name, column.at_most)
            )
            holds = bool((small <= large).all())
            require(holds, f"a row has more of {column.name} than of {column.at_most}")
            words += f", no row with more {column.name} than {column.at_most}"
    return words
