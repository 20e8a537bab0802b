"""Microdata and public categories: which rows a table has is decided by a public list.

A category that appears only because somebody is in it gives that person away. So microdata
are counted into a list that the publisher names, and every category of the list is released,
with its noise, whether or not anybody is in it. Rows of one person are bounded by leaving some out.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tallyveil.arrays import Integers, Mask, count_values
from tallyveil.errors import ArgumentError, TableError, describe_kind
from tallyveil.structs import list_values
from tallyveil.tables.conditions import Condition, RowChooser
from tallyveil.tables.counts import MISSING
from tallyveil.tables.duplicates import describe_repeat
from tallyveil.tables.labels import encode_text, normal_label
from tallyveil.tables.source import Source
from tallyveil.tables.table import Table
from tallyveil.tables.text import open_text

RULE = "be a column and its rising limits, such as age=0,18,45,65"


@dataclass(frozen=True)
class Bins:
    """Ranges that begin at each of the rising `limits`; the last has no end.

    >>> ages = Bins((0.0, 18.0, 45.0, 65.0))
    >>> ages.labels, ages.find("44.5"), ages.find("-1"), ages.find("old")
    (('0-17', '18-44', '45-64', '65+'), '18-44', '', '')
    """

    limits: tuple[float, ...]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The label of each range: whole numbers by first and last, others by where they end."""
        are_whole = all(limit == int(limit) for limit in self.limits)
        labels = []
        for low, high in pairwise(self.limits):
            if not are_whole:
                labels.append(f"{low:.15g} to below {high:.15g}")
            else:
                labels.append(f"{int(low)}" if high == low + 1 else f"{int(low)}-{int(high) - 1}")
        return (*labels, f"{self.limits[-1]:.15g}+")

    def write(self) -> list[float]:
        """List the limits for a file, whole ones as whole numbers."""
        return [int(limit) if limit == int(limit) else limit for limit in self.limits]

    def find(self, text: str) -> str:
        """Return the label of a number's range; "" below the first and for no number."""
        try:
            number = float(text)
        except ValueError:
            return ""
        place = bisect_right(self.limits, number) - 1
        return self.labels[place] if place >= 0 and math.isfinite(number) else ""


def read_bins(value: Any) -> dict[str, Bins]:
    """Read ranges by column: a mapping of column to limits, or texts such as "age=0,18,65"."""
    if isinstance(value, Mapping):
        parts = [(str(name), limits) for name, limits in value.items()]
    else:
        parts = [_split(text) for text in list_values(value)]
    bins = {name: Bins(_read_limits(name, limits)) for name, limits in parts}
    if len(bins) != len(parts):
        raise ArgumentError("bins", "name every column once")
    return bins


def _split(text: Any) -> tuple[str, Sequence[str]]:
    name, sign, limits = str(text).rpartition("=")
    if not sign or not name.strip():
        raise ArgumentError("bins", RULE, text)
    return name.strip(), limits.split(",")


def _read_limits(name: str, limits: Any) -> tuple[float, ...]:
    try:
        numbers = tuple(float(limit) for limit in limits)
    except (TypeError, ValueError):
        numbers = ()
    rising = all(low < high for low, high in pairwise(numbers))
    if not numbers or not rising or not all(map(math.isfinite, numbers)):
        raise ArgumentError("bins", RULE, got=f"limits of {name!r} that do not rise")
    return numbers


Label: TypeAlias = tuple[Any, ...]
"""One category: a value for each column; the values of a column are of one type."""


def normal_category(label: Label) -> tuple[str, ...]:
    """Return a category in the form that is compared."""
    return tuple(normal_label(str(part)) for part in label)


@dataclass(frozen=True, eq=False)
class Places:
    """A public list of categories, prepared to find the places of rows column by column.

    For each column its labels have codes, and `beginnings` are the public categories up to it: the
    number of one up to the column before, times the number of labels, plus the code. Complete ones
    are at `position` in the list. Rows with any other category are at `other`, or -1.
    """

    names: tuple[str, ...]
    codes: tuple[Mapping[str, int], ...]
    beginnings: tuple[Integers, ...]
    position: Integers
    other: int = -1
    bins: Mapping[str, Bins] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        by: Sequence[str],
        categories: Sequence[Label],
        other: int | None = None,
        bins: Mapping[str, Bins] | None = None,
    ) -> Places:
        """Read the public list, once."""
        listed = list(map(normal_category, categories))
        numbers = np.zeros(len(categories), dtype=np.int64)
        codes: list[Mapping[str, int]] = []
        beginnings: list[Integers] = []
        for place in range(len(by)):
            parts = [label[place] for label in listed]
            code_of = {part: code for code, part in enumerate(dict.fromkeys(parts))}
            pairs = numbers * len(code_of) + np.array([code_of[part] for part in parts], np.int64)
            distinct, numbers = np.unique(pairs, return_inverse=True)
            codes.append(code_of)
            beginnings.append(distinct)
        position = np.empty(len(categories), dtype=np.int64)
        position[numbers] = np.arange(len(categories))
        place = -1 if other is None else other
        return cls(tuple(by), tuple(codes), tuple(beginnings), position, place, bins or {})

    def find(self, table: Table) -> Integers:
        """Find the place of every row, shape (rows,)."""
        places = np.zeros(table.rows, dtype=np.int64)
        for name, code_of, listed in zip(self.names, self.codes, self.beginnings, strict=True):
            column = table.codes(name)
            ranges = self.bins.get(name)
            labels = column.labels if ranges is None else map(ranges.find, column.labels)
            code_list = [code_of.get(normal_label(label), -1) for label in labels]
            codes = np.array(code_list, dtype=np.int64)[column.codes]
            pairs = places * len(code_of) + codes
            nearest = np.minimum(np.searchsorted(listed, pairs), len(listed) - 1)
            is_listed = (places >= 0) & (codes >= 0) & (listed[nearest] == pairs)
            places = np.where(is_listed, nearest, -1)
        return np.where(places >= 0, self.position[places], self.other)


FILE_NAME = re.compile(r"^\s*$|[/\\]|\.\w+$")
"""What is in the name of a file, and hardly in a single category."""

PLAIN = (bool, int, float, date)
"""Types of values that keep their type; everything else is published as text."""


def public_categories(
    categories: Any, by: Sequence[str], other: str | None = None
) -> tuple[Label, ...]:
    """Read the public list of categories, in its own order: a value for each column of `by`.

    For one column a sequence of values, "a,b,c", or a file with one value per line; for several
    a mapping of column to values (every combination), a sequence of tuples, or a CSV file whose
    header names the columns. Values keep the type they are given in, and numbers in text become
    numbers, so the types of what is published follow from the list alone. `other` is the label
    of the cell for everything that is not listed; it comes last unless it is listed.

    >>> public_categories({"sex": ["f", "m"], "region": ["N"]}, ["region", "sex"])
    (('N', 'f'), ('N', 'm'))
    >>> public_categories("1,2", ["code"]), public_categories("01,2", ["code"], "rest")
    (((1,), (2,)), (('01',), ('2',), ('rest',)))
    """
    is_text = isinstance(categories, (str, Path))
    if isinstance(categories, Path) or (is_text and _names_file(categories)):
        labels = _read_list(Path(categories), by)
    elif isinstance(categories, str):
        labels = [(part.strip(),) for part in categories.split(",")]
    elif isinstance(categories, Mapping):
        labels = _cross_values(categories, by)
    else:
        parts = _list_categories(categories)
        labels = [tuple(part) if isinstance(part, (tuple, list)) else (part,) for part in parts]
    if not labels or any(len(label) != len(by) for label in labels):
        raise ArgumentError("categories", f"give a value for each of: {', '.join(by)}")
    seen: set[Label] = set()
    for label in map(normal_category, labels):
        if label in seen:
            raise ArgumentError("categories", "name every category once", ", ".join(label))
        seen.add(label)
    if other is not None and normal_category((other,) * len(by)) not in seen:
        labels.append((other,) * len(by))
    columns = (_unify(values, is_text) for values in zip(*labels, strict=True))
    return tuple(zip(*columns, strict=True))


def combine_categories(categories: Any, by: Sequence[str], bins: Mapping[str, Bins]) -> Any:
    """Add the ranges of `bins` to the categories of the other columns: every combination."""
    if not bins:
        return categories
    others = [name for name in by if name not in bins]
    if isinstance(categories, Mapping):
        named = dict(categories)
    elif len(others) == 1 and categories is not None:
        named = {others[0]: [label for (label,) in public_categories(categories, others)]}
    elif categories is None and not others:
        named = {}
    else:
        rule = f"give the values of each column without bins: {', '.join(others) or 'none'}"
        raise ArgumentError("categories", rule, hint="Such as sex=f,m.")
    return named | {name: ranges.labels for name, ranges in bins.items()}


def read_column_lists(texts: Sequence[str]) -> Any:
    """Read categories as a command line gives them: one list, or one for each column.

    >>> read_column_lists(["a,b"]), read_column_lists(["sex=f,m", "region=N,S"])
    ('a,b', {'sex': ['f', 'm'], 'region': ['N', 'S']})
    """
    if len(texts) == 1 and ("=" not in texts[0] or Path(texts[0]).is_file()):
        return texts[0]
    lists: dict[str, list[Any]] = {}
    for text in texts:
        name, sign, values = text.partition("=")
        if not sign or name.strip() in lists:
            rule = "be one list, or COLUMN=VALUES for each column"
            raise ArgumentError("categories", rule, text)
        lists[name.strip()] = _list_values(values, name.strip())
    return lists


def _names_file(text: str) -> bool:
    """Return whether a text names a file; folders may have commas in their names.

    >>> _names_file("counties.txt"), _names_file("North,South"), _names_file("North")
    (True, False, False)
    """
    return ("," not in text and FILE_NAME.search(text) is not None) or os.path.isfile(text)


def _list_categories(values: Any) -> list[Any]:
    """List values in their public order: rows are published in it."""
    with suppress(TypeError):  # no list, or an array without dimensions
        if not isinstance(values, (bytes, set, frozenset)):
            return list(values)
    raise ArgumentError("categories", "be a list, in public order", got=describe_kind(values))


def find_category(categories: Sequence[Label], label: str) -> int:
    """Find the place in the list of the category with this label in every column."""
    cell = (normal_label(label),) * len(categories[0])
    return list(map(normal_category, categories)).index(cell)


def _unify(values: Sequence[Any], is_text: bool) -> list[Any]:
    """Convert values to one type: the type they share, numbers if all are written so, or text."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    if len({type(value) for value in plain}) == 1 and isinstance(plain[0], PLAIN):
        return plain
    texts = [str(value) for value in plain]
    if is_text:
        for read in (int, float, {"True": True, "False": False}.__getitem__):
            try:
                numbers = [read(text) for text in texts]
            except (ValueError, KeyError):
                continue
            if [str(number) for number in numbers] == texts:  # 007 and 1e5 are codes
                return numbers
    return texts


def sorted_order(table: Table, names: Sequence[str], ties: Integers | None = None) -> Integers:
    """Sort the rows by public columns, the first deciding first; return row numbers from 0.

    A column is compared as numbers if every label in it is a finite number, else as text. Rows
    with the same labels are in the order of `ties`, by default that of the table.
    """
    start = np.arange(table.rows) if ties is None else ties
    ranks = [table.codes(name).rank_rows()[start] for name in names]
    return start[np.lexsort(ranks[::-1])] if ranks else start


def describe_unlisted(which: str) -> TableError:
    """Describe the error of a row of microdata with a category that is not in the public list."""
    return TableError(
        f"{which} has a category that is not in the public list. Extend the list, or name a "
        "cell for all others (microdata.other=LABEL). Records can also be left out by a condition "
        "('microdata.where')."
    )


def place_categories(
    table: Table, keys: Sequence[str], categories: Sequence[Label], other: int | None = None
) -> Integers:
    """Find the place in the public list of every row of an aggregated table.

    Raises a `TableError` if a row has a category that is not listed, unless there is a place for
    all `other` rows, or that of an earlier row.
    """
    places = Places.of(keys, categories, other).find(table)
    if (places < 0).any():
        raise describe_unlisted(f"Row {int((places < 0).argmax()) + 1}")
    repeats = np.ones(table.rows, dtype=bool)
    repeats[np.unique(places, return_index=True)[1]] = False
    repeats &= places != (-1 if other is None else other)
    if repeats.any():
        raise describe_repeat(int(repeats.argmax()), keys)
    return places


def _cross_values(categories: Mapping[Any, Any], by: Sequence[str]) -> list[Label]:
    """Combine every value of each column with every value of the others."""
    if set(categories) != set(by):
        raise ArgumentError("categories", f"name exactly the columns {', '.join(by)}")
    return list(itertools.product(*(_list_values(categories[name], name) for name in by)))


def _list_values(values: Any, name: str) -> list[Any]:
    """List the values of one column, which may be in a file."""
    if isinstance(values, (str, Path)):
        return [label for (label,) in public_categories(values, [name])]
    return _list_categories(values)


def _read_list(path: Path, by: Sequence[str]) -> list[Label]:
    """Read the public list from a file."""
    if not os.path.isfile(path):  # no error for a text too long to be a name
        raise ArgumentError(
            "categories", "be a file that exists, or values separated by commas", str(path)
        )
    if len(by) > 1 or path.suffix.lower() in (".csv", ".tsv"):
        mark = "\t" if path.suffix.lower() == ".tsv" else ","
        table = Table(open_text(path, Source(), mark), is_text=True)
        if set(by) <= set(table.names):
            return list(zip(*(table.labels(name) for name in by), strict=True))
        if len(by) > 1:
            raise ArgumentError("categories", f"have a header naming {', '.join(by)}", path.name)
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    return [(line.strip(),) for line in lines if line.strip() and line.strip() != by[0]]


def identify_persons(table: Table, column: str) -> Integers:
    """Number every row, the same for two rows exactly if they are of one person.

    Identifiers are compared in normal form: 7, 7.0 and "7 " are one person. What programs write
    for a missing value is nobody's identifier: strangers who share it would share one bound, and
    which of their rows stay would depend on who else is there. Such a row is refused, and so is a
    table without the column.
    """
    if column not in table.written_names:
        raise TableError(f"No column named {column!r} to identify persons.")
    codes = table.codes(column)
    missing = [label.strip().lower() in MISSING for label in codes.labels]
    nameless = np.array(missing, dtype=bool)[codes.codes]
    if nameless.any():
        raise TableError(
            f"Row {int(nameless.argmax()) + 1} has no value in {column!r}, so its person is "
            "unknown. Leave such rows out, or give each of them a different value."
        )
    persons = encode_text([normal_label(label) for label in codes.labels])
    return np.asarray(persons.codes[codes.codes], dtype=np.int64)


def bound_rows(persons: Integers, counted: Mask, most: int, order: Integers) -> Mask:
    """Choose the rows that stay, of the `counted` ones: at most `most` of each person.

    They are the first in `order`. If `order` is a uniformly random permutation, every person's
    rows are chosen uniformly, and independently of all others. So the choice is `most`-stable:
    for tables with and without one person's rows, and the same choices for everybody else, what
    stays differs by at most `most` rows. What is epsilon-private for one row is therefore
    `most` times epsilon-private for all rows of one person, averaged over the choices.

    >>> persons = np.array([7, 7, 8, 7])
    >>> bound_rows(persons, np.ones(4, dtype=bool), 2, np.array([3, 2, 1, 0])).tolist()
    [False, True, True, True]
    """
    rows = order[counted[order]]
    rows = rows[np.argsort(persons[rows], kind="stable")]
    whose, places = persons[rows], np.arange(len(rows))
    is_first = np.ones(len(rows), dtype=bool)
    is_first[1:] = whose[1:] != whose[:-1]
    since = places - np.maximum.accumulate(np.where(is_first, places, 0))
    stays = np.zeros(len(persons), dtype=bool)
    stays[rows[since < most]] = True
    return stays


def keep_apart(persons: Integers, cells: Integers, counted: Mask, order: Integers) -> Mask:
    """Choose, of the `counted` rows, one of each person in each cell.

    It is the first in `order`. Followed by `bound_rows`, what stays of one person is in different
    cells, and nothing that stays of anybody else depends on it.

    >>> persons, cells = np.array([7, 7, 8, 7]), np.array([0, 1, 1, 0])
    >>> keep_apart(persons, cells, np.ones(4, dtype=bool), np.array([3, 2, 1, 0])).tolist()
    [False, True, True, True]
    """
    pairs = np.unique(np.column_stack([persons, cells]), axis=0, return_inverse=True)[1]
    return bound_rows(pairs.reshape(-1), counted, 1, order)


@dataclass(frozen=True)
class PersonBound:
    """A bound of `most` rows for each person; with `apart`, no two of them in one category.

    `column` identifies persons; `shuffle` draws a uniformly random permutation of a length.
    """

    column: str
    most: int
    apart: bool
    shuffle: Callable[[int], Integers]

    def choose(self, persons: Integers, cells: Integers, counted: Mask) -> Mask:
        """Choose the rows that stay, of the `counted` ones."""
        order = self.shuffle(len(persons))
        if self.apart:
            counted = keep_apart(persons, cells, counted, order)
        return bound_rows(persons, counted, self.most, order)


@dataclass(frozen=True)
class Counting:
    """The public categories of columns `by`, and the conditions that rows must meet.

    `other` is the place of all categories that are not listed. Numbers of a column in `bins` count
    for the range they lie in; conditions see the numbers themselves.
    """

    by: tuple[str, ...]
    categories: tuple[Label, ...]
    where: tuple[Condition, ...] = ()
    other: int | None = None
    bins: Mapping[str, Bins] = field(default_factory=dict)

    def count(self, table: Table) -> Integers:
        """Count the rows that meet all conditions in each public category, in batches.

        A row with a category that is not listed counts for the category at `other`; without one it
        raises a `TableError`.
        """
        counts = np.zeros(len(self.categories), dtype=np.int64)
        for met, places in self._place(table):
            counts += np.bincount(places[met], minlength=len(counts))
        return counts

    def count_bounded(self, table: Table, bound: PersonBound) -> tuple[Integers, Integers]:
        """Count the bounded rows of each person, and all rows, in each public category."""
        persons = identify_persons(table, bound.column)
        parts = list(self._place(table))
        met = np.concatenate([np.zeros(0, bool), *(met for met, _ in parts)])
        places = np.concatenate([np.zeros(0, np.int64), *(places for _, places in parts)])
        stays = bound.choose(persons, places, met)
        size = len(self.categories)
        return count_values(places[stays], size), count_values(places[met], size)

    def _place(self, table: Table) -> Iterator[tuple[Mask, Integers]]:
        """Yield for each batch its counted rows, and the category of every row, -1 for none."""
        public = Places.of(self.by, self.categories, self.other, self.bins)
        for name in self.by:
            if name not in table.written_names:
                raise TableError(f"No column named {name!r} to count by.")
        chooser, start = RowChooser(self.where), 0
        for condition in self.where:
            condition.require_column(table)
        names = dict.fromkeys((*self.by, *(condition.column for condition in self.where)))
        for batch in table.batches(list(names)):
            met, places = chooser.choose(batch), public.find(batch)
            unlisted = met & (places < 0)
            if unlisted.any():
                raise describe_unlisted(f"Row {start + int(unlisted.argmax()) + 1}")
            yield met, places
            start += batch.rows
        chooser.require_types()
