"""Rows that repeat others, noticed by the names of their public labels: totals and parents."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from tallyveil.tables.labels import fill_empty, view_numbers
from tallyveil.tables.table import Table, make_counts

MOST_LABELS = 1 << 16
"""Most labels at the beginning and at the end of a table that are searched for nested ones."""

WORDS = (
    "total|totals|grand total|subtotal|sub-total|sub total|sum|overall|all|everybody|everyone|"
    "both sexes|totale|totaal|totalt|gesamt|insgesamt|summe|zusammen|alle|ensemble|tous|toutes|"
    "somme|suma|razem|ogółem|celkem|összesen|yhteensä|i alt|σύνολο|итого|всего|合計|总计"
)
"""Labels of a total, in several languages."""

PHRASES = (
    r"(?:grand |sub-?)?totals?[ ,:(].*|.*[ (](?:sub-?)?total\)?"
    r"|all (?:ages|sexes|genders|persons|people|areas|regions|districts|counties|states|countries"
    r"|causes|races|groups|categories)"
)
TOTAL = rf"(?is)^\s*(?:{WORDS}|{PHRASES})\s*$"
CODE = re.compile(r"[A-Z0-9]+")
NUMBERED = re.compile(r"[A-Z]*(0|[1-9][0-9]*)")
"""Running numbers, such as 7 or W12: the first of them are no parents of later ones."""

SEPARATORS = ("/", ">", "|", " - ", ": ")
LONGEST_TOTAL = 60
"""Characters of the longest label that may be a total."""


def find_totals(
    table: Table, names: Sequence[str], look: Callable[[Any], None] | None = None
) -> dict[str, tuple[str | None, int]]:
    """Find a total among the labels of each public column, and count the levels of nested ones.

    Every label is looked at, in batches; levels are counted among the first and the last labels of
    a long table. `look` sees the same batches.
    """
    import pyarrow as pa

    searches = {
        name: _Search() for name in names if table.rows_in.schema.field(name).type == pa.string()
    }

    def visit(batch: Any) -> None:
        for name, search in searches.items():
            search.add(batch.column(name))
        if look is not None:
            look(batch)

    if searches or look is not None:
        table.measure(names, visit)
    return {name: searches[name].finish() if name in searches else (None, 1) for name in names}


class _Search:
    """A search for a total and for nested levels among labels that come batch by batch."""

    def __init__(self) -> None:
        self.total: str | None = None
        self.first: list[str] = []
        self.last: Any = ()
        self.labels = 0

    def add(self, column: Any) -> None:
        """Search the labels of a batch."""
        import pyarrow.compute as pc

        labels = fill_empty(column)
        if len(self.first) < MOST_LABELS or 2 * len(self.last) < len(labels):  # else few are equal
            labels = pc.unique(labels)
        if self.total is None:
            lengths = view_numbers(pc.utf8_length(labels))
            short = labels.take(make_counts(np.flatnonzero(lengths <= LONGEST_TOTAL)))
            total = short.filter(pc.match_substring_regex(short, TOTAL)).slice(0, 1).to_pylist()
            self.total = total[0].strip() if total else None
        if self.labels < 2:
            self.labels = max(len(labels), len({*self.first[:2], *labels.slice(0, 2).to_pylist()}))
        if len(self.first) < MOST_LABELS:
            self.first += _list_labels(labels.slice(0, MOST_LABELS - len(self.first)))
        self.last = labels

    def finish(self) -> tuple[str | None, int]:
        """Return the total, unless it is the only label, and the levels."""
        last = _list_labels(self.last[-MOST_LABELS:]) if len(self.last) else []
        levels = count_nested({*self.first, *last})
        return (self.total if self.labels > 1 else None), levels


def _list_labels(labels: Any) -> list[str]:
    return [label.strip() for label in labels.to_pylist()]


def count_nested(labels: Collection[str]) -> int:
    """Count the levels of labels that seem to be nested, such as codes with their parents' codes.

    >>> count_nested(["DE", "DE1", "DE11", "FR", "FR1"]), count_nested(["W1", "W2", "W10"])
    (3, 1)
    >>> count_nested(["Kent", "Kent/Dover", "Kent/Thanet"])
    2
    """
    distinct, text = set(labels), "\n".join(labels)
    for separator in (mark for mark in SEPARATORS if mark in text):
        depths = {
            label.count(separator)
            for label in distinct
            if separator in label and label.rpartition(separator)[0].rstrip() in distinct
        }
        if depths:
            return 1 + len(depths)
    lengths = sorted({len(label) for label in distinct})
    if len(lengths) < 2 or not all(map(CODE.fullmatch, distinct)):
        return 1
    if all(map(NUMBERED.fullmatch, distinct)):
        return 1
    parents = {label for label in distinct if len(label) == lengths[0]}
    nested = all(label[: lengths[0]] in parents for label in distinct)
    return len(lengths) if nested else 1
