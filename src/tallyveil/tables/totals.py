"""Rows that repeat others, noticed by the names of their public labels: totals and parents."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from heapq import nsmallest
from itertools import chain, islice

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.tables.base import BATCH_ROWS, Table
from tallyveil.tables.streamed import FileTable
from tallyveil.tables.text_column import TextColumn

__all__ = [
    "LabelSearch",
    "count_nested",
    "find_total",
    "find_totals",
    "join_levels",
    "list_labels",
]

NO_NAMES = ("integer", "number", "boolean", "date", "datetime", "time")
"""Types whose labels are no names."""

MOST_LABELS = 1 << 16
"""Nested labels are looked for among so many rows of a longer table, and its last ones."""

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

BYTE = np.uint64(0xFF)
TOTAL = np.uint64(int.from_bytes(b"total", "little"))


def _spell(words: Iterable[str]) -> set[bytes]:
    """Words as bytes whose ASCII letters are small, other letters small and large."""
    forms = {form for word in words for form in (word, word.upper(), word.title())}
    return {form.encode().lower() for form in forms}


BEGINNINGS = _spell({*WORDS, "total", "grand total", "subtotal", "sub-total", "all "})
FOURS = np.array([int.from_bytes(b[:4].ljust(4, b"\0"), "little") for b in BEGINNINGS], np.uint64)
SPACES = np.array([byte <= 32 or byte in (0xC2, 0xE2, 0xE3) for byte in range(256)])
"""First or last bytes of white space, which is stripped before labels are compared."""

LOWER = np.frombuffer(bytes(range(256)).lower(), np.uint8)
SMALL_LETTERS = np.uint64(0x2020202020202020)
"""Bits that make ASCII letters small, and change some other bytes, too."""

STARTS = np.zeros(1 << 16, dtype=bool)
"""How labels may begin that stand for all others, in letters of any size."""

STARTS[np.isin(LOWER[np.arange(1 << 16, dtype=np.uint16).view(np.uint8)].view(np.uint16),
               [int(four) & 0xFFFF for four in FOURS])] = True  # fmt: skip
STARTS |= np.tile(SPACES, 256)

SEPARATORS = ("/", ">", "|", " - ", ": ")
MOST_TOLD = 1000
"""So many labels of a part of a table are compared with those of the others."""

LONGEST = 60
"""No label longer than this is a total."""


def find_totals(table: Table, names: Sequence[str]) -> dict[str, tuple[str | None, int]]:
    """Find a total among the labels of each public column, and count the levels of nested ones.

    Every label of a table in a file is looked at, in batches; levels are counted among the first
    and among the last `MOST_LABELS` rows.
    """
    if table.rows <= BATCH_ROWS or not isinstance(table, FileTable):
        return {name: _find_among(table, name) for name in names}
    found: dict[str, tuple[str | None, int]] = dict.fromkeys(names, (None, 1))
    encoding = getattr(table, "encoding", "utf-8")
    searches = {
        name: LabelSearch(encoding) for name in names if table.type_of(name) not in NO_NAMES
    }
    for batch in table.select(list(searches)).batches() if searches else ():
        for name in list(searches):
            column = batch.text(name)
            if column is None:
                found[name] = _find_among(table, name)
                del searches[name]
            else:
                searches[name].add(column)
    for name, search in searches.items():
        found[name] = join_levels([search.finish()])
    return found


def _find_among(table: Table, name: str) -> tuple[str | None, int]:
    labels = list_labels(table, name)
    return find_total(labels), count_nested(labels)


class LabelSearch:
    """Looks for a total among labels that come batch by batch, and counts levels of nested ones."""

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding
        self.total: str | None = None
        self.first: TextColumn | None = None
        self.last: TextColumn | None = None

    def add(self, column: TextColumn) -> None:
        """Look at the labels of a batch."""
        if self.total is None:
            found = column.take(_may_mean_all(column)).decode(self.encoding)
            self.total = next((label.strip() for label in found if _is_total(label.strip())), None)
        self.first = self.first or column.take(slice(MOST_LABELS))
        self.last = column

    def finish(self) -> tuple[str | None, int, tuple[str, ...]]:
        """Give the total, the levels, and labels that occur, the shortest and some others.

        Labels of several parts of a table, put together, tell what no part does: `join_levels`.
        """
        if self.first is None or self.last is None:
            return None, 1, ()
        parts = self.first, self.last.take(slice(-MOST_LABELS, None))
        labels_of = [_list_distinct(part, self.encoding) for part in parts]
        every = dict.fromkeys(chain.from_iterable(labels_of))
        shortest = nsmallest(MOST_TOLD, every, key=lambda label: (len(label), label))
        told = dict.fromkeys((*shortest, *islice(every, MOST_TOLD)))
        return self.total, max(map(count_nested, labels_of)), tuple(told)


def join_levels(
    parts: Iterable[tuple[str | None, int, tuple[str, ...]]],
) -> tuple[str | None, int]:
    """The total and the levels of a column, from what `LabelSearch` says of parts of a table."""
    found = list(parts)
    seen = {label for _, _, labels in found for label in labels}
    total = next((total for total, _, _ in found if total is not None), None)
    levels = max((levels for _, levels, _ in found), default=1)
    return (total if len(seen) > 1 else None), max(levels, count_nested(seen))


def _list_distinct(column: TextColumn, encoding: str) -> list[str]:
    _, rows = column.number()
    return [label.strip() for label in column.take(rows).decode(encoding)]


def _is_total(label: str) -> bool:
    return len(label) <= LONGEST and _means_all(label.casefold())


def _may_mean_all(column: TextColumn) -> Integers:
    """The rows whose label may stand for all others, by its first and last bytes."""
    first, length = column.load(), column.lengths
    near = STARTS.take((first & np.uint64(0xFFFF)).view(np.int64))
    rows = np.flatnonzero(near | (length == 0))
    four = LOWER[(first[rows] & np.uint64(0xFFFFFFFF)).view(np.uint8)].view(np.uint64)
    rows = rows[np.isin(four, FOURS) | SPACES[first[rows] & BYTE]]
    shift = (np.maximum(8 - length, 0) << 3).view(np.uint64)
    end = column.load_end() << shift  # the last byte is the highest
    total = SPACES.take((end >> np.uint64(56)).view(np.int64)) & (length > 0)
    end |= SMALL_LETTERS
    total |= (end >> np.uint64(24)) == TOTAL
    total |= ((end >> np.uint64(16)) & np.uint64(0xFFFFFFFFFF)) == TOTAL
    return np.union1d(rows, np.flatnonzero(total))


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
