"""The check of the data themselves: what a receipt says of published counts holds in every row."""

from __future__ import annotations

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.publish.nested import NESTED_METHODS
from tallyveil.publish.receipt import Receipt
from tallyveil.publish.records import ColumnRecord
from tallyveil.publish.reopen import require
from tallyveil.publish.tallies import Histogram
from tallyveil.tables.base import Table, read_signed

__all__ = ["check_counts"]


def check_counts(table: Table, receipt: Receipt) -> str:
    """Rows, columns, ranges, zeros, order and distributions are those of the receipt."""
    facts = receipt.table
    require(table.rows == facts.rows, "the data have another number of rows than stated")
    written = getattr(table, "delimiter", ","), getattr(table, "encoding", "utf-8")
    require(written == (facts.delimiter, facts.encoding), "the data are written in another way")
    # a file keeps the labels of a pandas index as its first columns
    require(tuple(table.names) == facts.columns, "the data have other columns than stated")
    drawn = [name for column in receipt.columns for name in column.columns]
    rest = tuple(name for name in facts.columns if name not in drawn)
    require(facts.published_unchanged == rest, "the columns published unchanged are others")
    require(len(set(drawn)) == len(drawn), "a column is listed twice")
    free = np.ones(table.rows, bool) if receipt.zeros is None else receipt.zeros.find_free(table)
    stated = receipt.protected_rows == int(free.sum())
    require(stated, "the structural zeros of the data are not the stated ones")
    for column in receipt.columns:
        asked = column.tradeoff is not None or column.guesses is not None
        fits = not asked or column.method == "preserve"
        require(fits, f"{column.name} states a tradeoff or guesses that its method has not")
        counts = read_published(table, column)
        require(not counts[~free].any(), f"a structural zero of {column.name} is not 0")
        inside, counts = counts.max() <= column.upper, counts[free]
        require(bool(inside), f"a count of {column.name} lies outside 0..{column.upper}")
        if column.unbiased is not None:
            draws = read_signed(table, column.drawn_column)
            same = column.is_made_from(draws[free], counts) and not draws[~free].any()
            require(same, f"{column.drawn_column} does not hold the draws behind {column.name}")
        if column.guesses is not None:
            best = read_signed(table, column.columns[-1])
            inside = 0 <= best.min() <= best.max() <= column.upper and not best[~free].any()
            matched = column.matching if inside else None
            same = matched is not None and matched.leads_to(column.guesses, counts, best[free])
            require(same, f"{column.columns[-1]} does not hold one guess for every draw")
        same = Histogram.count(counts) == column.histogram
        require(same, f"the distribution of {column.name} is not the one in the receipt")
    _check_order(table, receipt)
    return f"{table.rows:,} rows, every count inside its range, distributions as stated"


def read_published(table: Table, column: ColumnRecord) -> Integers:
    """The published counts of a column; where they are signed, as if cut at 0."""
    if column.signed:
        return read_signed(table, column.name).clip(0, column.upper)
    return table.counts(column.name)


def _check_order(table: Table, receipt: Receipt) -> None:
    """No row of a nested column exceeds the column that the receipt names."""
    names = [column.name for column in receipt.columns]
    for column in receipt.columns:
        if column.at_most:
            known = column.at_most in names and column.method in NESTED_METHODS
            require(known, f"{column.name} is nested in a column or method that it cannot be")
            holds = bool((table.counts(column.name) <= table.counts(column.at_most)).all())
            require(holds, f"a row has more of {column.name} than of {column.at_most}")
