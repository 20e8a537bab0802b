"""Rows that repeat others, noticed by the names of their public labels: totals and parents."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

import numpy as np

from tallyveil.tables.base import Table

__all__ = ["count_nested", "find_total", "list_labels"]

LISTED = (
    "total|totals|grand total|subtotal|sub-total|sub total|sum|overall|all|everybody|everyone|"
    "both sexes|totale|totaal|totalt|gesamt|insgesamt|summe|zusammen|alle|ensemble|tous|toutes|"
    "somme|suma|razem|ogółem|celkem|összesen|yhteensä|i alt|σύνολο|итого|всего|合計|总计"
)
WORDS = frozenset(LISTED.split("|"))
"""Labels that stand for all others, in several languages."""

PHRASE = re.compile(
    r"(grand |sub-?)?totals?[ ,:(].*|.*[ (](sub-?)?total\)?"
    r"|all (ages|sexes|genders|persons|people|areas|regions|districts|counties|states|countries"
    r"|causes|races|groups|categories)"
)
CODE = re.compile(r"[A-Z0-9]+")
NUMBERED = re.compile(r"[A-Z]*(0|[1-9][0-9]*)")
"""Running numbers, such as 7 or W12: the first of them are no parents of later ones."""

SEPARATORS = ("/", ">", "|", " - ", ": ")
LONGEST = 60
"""No label longer than this is a total."""


def list_labels(table: Table, name: str) -> list[str]:
    """List the distinct labels of a public column, none for one of numbers."""
    column = table.codes(name)
    if isinstance(column.values, np.ndarray) and column.values.dtype.kind in "iuf":
        return []
    return [label.strip() for label in column.labels]


def find_total(labels: Iterable[str]) -> str | None:
    """Find a label that by its name stands for all others; None if it stands alone, too.

    >>> find_total(["Kent", "Total"]), find_total(["Kent", "Surrey"]), find_total(["All"])
    ('Total', None, None)
    """
    listed = list(labels)
    text = "\n".join(listed).casefold()
    is_clear = WORDS.isdisjoint(text.split("\n")) and "total" not in text and "all " not in text
    if len(listed) < 2 or is_clear:
        return None
    short = (label for label in listed if len(label) <= LONGEST)
    return next((label for label in short if _means_all(label.casefold())), None)


def _means_all(label: str) -> bool:
    return label in WORDS or PHRASE.fullmatch(label) is not None


def count_nested(labels: Collection[str]) -> int:
    """Count the levels of labels that seem to be nested, such as codes with their parents' codes.

    >>> count_nested(["DE", "DE1", "DE11", "FR", "FR1"]), count_nested(["W1", "W2", "W10"])
    (3, 1)
    >>> count_nested(["Kent", "Kent/Dover", "Kent/Thanet"])
    2
    """
    known, text = set(labels), "\n".join(labels)
    for separator in (mark for mark in SEPARATORS if mark in text):
        depths = {
            label.count(separator)
            for label in known
            if separator in label and label.rpartition(separator)[0].rstrip() in known
        }
        if depths:
            return 1 + len(depths)
    lengths = sorted({len(label) for label in known})
    if len(lengths) < 2 or not all(map(CODE.fullmatch, known)):
        return 1
    if all(map(NUMBERED.fullmatch, known)):
        return 1
    parents = {label for label in known if len(label) == lengths[0]}
    nested = all(label[: lengths[0]] in parents for label in known)
    return len(lengths) if nested else 1
