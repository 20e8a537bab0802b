"""The part of METHODOLOGY.html that gives the totals of groups: numbers, and how they lie."""

from __future__ import annotations

from collections.abc import Sequence

from tallyveil.documents.group_record import GroupRecord
from tallyveil.documents.page.html import list_words, paragraph, section, table
from tallyveil.documents.page.svg import interval_axis, interval_mark
from tallyveil.documents.records import ColumnRecord

__all__ = ["name_groups", "totals_section"]

HOLDS = (
    "Each interval contains the true total of its group with a chance of at least 95 %. Of many "
    "intervals some miss: up to one in twenty. An estimate may be below 0 or not whole, and is "
    "rounded here; those of all groups need not add up to the total of the table. Groups stand in "
    "the order of the data."
)
ADDED = (
    "The published sum is that of the published rows: a whole number of at least 0 that adds up. "
    "The estimate is not pushed away from 0."
)


def name_groups(column: ColumnRecord) -> str:
    """Which groups of a column have totals, in words; empty if none have."""
    kinds = [" and ".join(made.by) for made in column.groups]
    return f"by {list_words(kinds)}" if kinds else ""


def totals_section(columns: Sequence[ColumnRecord]) -> list[str]:
    """The section with a table for every column and kind of groups; nothing if there are none."""
    parts = [_one_table(column, made) for column in columns for made in column.groups]
    if not parts:
        return []
    added = any(made.published for column in columns for made in column.groups)
    words = [paragraph(HOLDS), *([paragraph(ADDED)] if added else [])]
    cut = [c for c in columns if c.groups and c.bounded]
    words += [paragraph(f"Counts of {c.name} above {c.upper:,} enter as {c.upper:,}.") for c in cut]
    return [section("Totals of groups", *words, *parts)]


def _one_table(column: ColumnRecord, made: GroupRecord) -> str:
    """The totals of one kind of groups, with a picture in every line."""
    header = [" and ".join(made.by), "rows", "estimate", "95 % interval"]
    numbers = zip(made.groups, made.rows, made.estimate, made.low, made.high, strict=True)
    rows = [
        [name, f"{rows:,}", _show(value), f"{_show(low)} to {_show(high)}"]
        for name, rows, value, low, high in numbers
    ]
    if made.published is not None:
        header.insert(2, "published sum")
        for row, added in zip(rows, made.published, strict=True):
            row.insert(2, f"{added:,}")
    limits = min(0.0, *made.low, *made.estimate), max(1.0, *made.high, *made.estimate)
    lines = zip(made.low, made.estimate, made.high, strict=True)
    marks = [interval_mark(*line, limits) for line in lines]
    right = range(1, len(header))
    shown = table(header, rows, numbers=tuple(right), marks=(interval_axis(limits), marks))
    return section(f"Totals of {column.name} by {' and '.join(made.by)}", shown, level=3)


def _show(value: float) -> str:
    return f"{round(value):,}".replace("-", "−")
