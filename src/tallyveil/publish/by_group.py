"""Totals of groups for the receipt and the page: those that a reader will ask for first.

Which groups these are follows from public facts alone: the columns published unchanged, their
labels, how many rows there are and what is published. A long table states none, because they would
take a pass over it; anybody can ask for them. Columns whose labels some writer changes, such as
measurements, times, truth values and text with blanks at its ends, make none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.documents.group_record import MOST_GROUPS, GroupRecord
from tallyveil.documents.receipt import Receipt
from tallyveil.documents.records import ColumnRecord
from tallyveil.errors import UsageError
from tallyveil.plans.accuracy import CONFIDENCE
from tallyveil.plans.adding import Adder, MatchedAdder, MatrixAdder
from tallyveil.publish.totals import choose_adder, prepare_adding, split_rows
from tallyveil.tables.labels import is_number, normal_label, number_together
from tallyveil.tables.table import Table

__all__ = ["PublicGroups", "add_groups", "find_groups", "group_rows", "list_asked", "state_groups"]

MOST_ROWS = 100_000
"""Longer tables state no totals of groups: `interpret --by` adds them where they are wanted."""

MOST_COLUMNS = 40
"""So many public columns are looked at."""

MOST_LINES = 300
"""So many totals are stated in a receipt, of all columns and all kinds of groups together."""

LONGEST_LABEL = 80
"""Longer texts are no labels."""

WIDEST_MATCHED = 20_000
"""Up to this count the bias of counts that were handed out by rank is bounded in no time."""

WIDEST_MATRIX = 1001

UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that no page can show."""

MISSING = ("", "nan", "nat", "none", "null", "<na>")
"""What libraries write for no value."""

WRITTEN_ALIKE = ("string", "integer")
"""Types of columns that every writer keeps apart and together."""

SMALL_CODE = re.compile(r"(-?[1-9][0-9]{0,6}|0)(\.0+)?")
"""Whole numbers that doubles of any length hold exactly."""

CODE = re.compile("-?[0-9]{1,15}")
CLOCK = re.compile("[0-9]:[0-9]{2}:[0-9]{2}")


@dataclass(frozen=True, eq=False)
class PublicGroups:
    """Groups of rows that some public columns make, in the order in which they occur first."""

    by: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    rows: list[Integers]

    @property
    def is_numbered(self) -> bool:
        """Whether every label is a number, as codes of states are."""
        return all(label.isdigit() for one in self.labels for label in one)


def list_asked(receipt: Receipt) -> tuple[tuple[str, ...], ...]:
    """The columns, or the margins of several, that may make groups; none in a long table."""
    facts = receipt.table
    if facts.rows > MOST_ROWS or all(not _can_tell(c) for c in receipt.columns):
        return ()
    asked = None if receipt.sums is None else receipt.sums.request
    bounds = "" if asked is None else asked.bounds
    alone = tuple((name,) for name in facts.published_unchanged[:MOST_COLUMNS] if name != bounds)
    margins = () if asked is None else asked.margins
    return *alone, *(names for names in margins if len(names) > 1)


def find_groups(table: Table, receipt: Receipt) -> list[PublicGroups]:
    """The groups that the receipt states totals of; those that two columns make only once.

    Where codes and names make the same groups, the names are taken.
    """
    found: dict[bytes, PublicGroups] = {}
    for names in list_asked(receipt):
        made = group_rows(table, names)
        if made is None or not _has_plain_labels(table, names):
            continue
        place = np.empty(table.rows, dtype=np.uint8)
        for at, rows in enumerate(made.rows):
            place[rows] = at
        before = found.get(place.tobytes())
        if before is None or (before.is_numbered and not made.is_numbered):
            found[place.tobytes()] = made
    chosen: list[PublicGroups] = []
    lines = 0
    for made in found.values():
        more = len(made.rows) * len(receipt.columns)
        if lines + more <= MOST_LINES:
            chosen.append(made)
            lines += more
    return chosen


def _has_plain_labels(table: Table, names: Sequence[str]) -> bool:
    """Whether every kind of file gives these columns' labels back as they are."""
    return all(name in table.names and _are_plain(table, name) for name in names)


def _are_plain(table: Table, name: str) -> bool:
    kind, labels = table.type_of(name), list(map(str, table.codes(name).labels))
    if kind == "number":
        return all(SMALL_CODE.fullmatch(label) or label.lower() in MISSING for label in labels)
    return kind in WRITTEN_ALIKE and all(label == label.strip() for label in labels)


def group_rows(table: Table, names: Sequence[str]) -> PublicGroups | None:
    """The groups that columns make, or None unless they are a few of several rows with labels."""
    columns = [table.codes(name) for name in names]
    codes = number_together([column.codes for column in columns])
    if not 2 <= int(codes.max(initial=0)) + 1 <= min(MOST_GROUPS, table.rows // 2):
        return None
    rows = split_rows(codes)
    first = [part[0] for part in rows]
    found = [[plain_label(one.labels[at]) for at in one.codes[first]] for one in columns]
    labels = tuple(tuple(text for text in one if text is not None) for one in found)
    fits = all(len(one) == len(rows) for one in labels)
    if not fits or len(set(zip(*labels, strict=True))) < len(rows):
        return None
    return PublicGroups(tuple(names), labels, rows)


def plain_label(label: str) -> str | None:
    """The form in which a label is the same in memory and in every kind of file; None if none is.

    Measurements and times are no labels: libraries write them in ways of their own.

    >>> [plain_label(text) for text in ("KS", "1.0", "None", "0.1", "2026-01-31 12:30:00")]
    ['KS', '1', '', None, None]
    """
    text = normal_label(label)
    if text.lower() in MISSING:
        return ""
    if text.lower() in ("true", "false"):  # some files have 1 and 0
        return None
    if len(text) > LONGEST_LABEL or UNFIT.search(text) or CLOCK.search(text):
        return None
    return text if CODE.fullmatch(text) or not is_number(text) else None


def state_groups(
    table: Table, receipt: Receipt, adders: Sequence[Adder], sums: Sequence[bytes]
) -> Receipt:
    """The receipt with the totals of the groups that public columns make.

    `adders` are those of its columns, `sums` the files of a release that adds up.
    """
    groups = find_groups(table, receipt)
    columns = tuple(
        replace(record, groups=add_groups(table, receipt, record, groups, adder=adder, sums=sums))
        for record, adder in zip(receipt.columns, adders, strict=True)
    )
    return replace(receipt, columns=columns)


def add_groups(
    table: Table,
    receipt: Receipt,
    record: ColumnRecord,
    groups: Sequence[PublicGroups],
    *,
    adder: Adder,
    sums: Sequence[bytes],
) -> tuple[GroupRecord, ...]:
    """The totals of a column's groups; those that cut through measured ones have none.

    Parameters
    ----------
    table, receipt, record : Table, Receipt, ColumnRecord
        The released table, its receipt, and the column's part of that.
    groups : sequence of PublicGroups
        See `find_groups`.
    adder : Adder
        How the column's published counts are added.
    sums : sequence of bytes
        The files of a release that adds up.
    """
    adder = choose_adder(record, adder)
    if not groups or not (_can_tell(record) and _is_quick(adder)):
        return ()
    add = prepare_adding(table, receipt, record, adder, sums=sums, confidence=CONFIDENCE)
    counts = table.counts(record.name) if record.kind.adds_up else None
    stated = []
    for made in groups:
        try:
            found = [add(rows) for rows in made.rows]
        except UsageError:
            continue
        stated.append(
            GroupRecord(
                made.by,
                made.labels,
                tuple(map(len, made.rows)),
                tuple(round(one.value, 6) + 0.0 for one in found),
                tuple(int(one.low) for one in found),
                tuple(int(one.high) for one in found),
                None if counts is None else tuple(int(counts[rows].sum()) for rows in made.rows),
            )
        )
    return tuple(stated)


def _can_tell(record: ColumnRecord) -> bool:
    """Whether the column tells the totals of groups at all."""
    return not record.hides_parts and (record.kind.adds_up or record.total is not None)


def _is_quick(adder: Adder) -> bool:
    """Whether groups are added without much work before the first of them."""
    if isinstance(adder, MatrixAdder):
        return len(adder.mechanism.matrix) <= WIDEST_MATRIX
    return not isinstance(adder, MatchedAdder) or adder.plain.upper <= WIDEST_MATCHED
