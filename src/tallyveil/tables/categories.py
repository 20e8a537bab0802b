"""Public categories: which rows a table has is decided by a public list, never by the data.

A category that appears only because somebody is in it gives that person away. So microdata
are counted into a list that the publisher names, and every category of the list is released,
with its noise, whether or not anybody is in it.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from tallyveil.arrays import Integers, Mask
from tallyveil.errors import ArgumentError, TableError, describe_kind
from tallyveil.tables.base import BATCH_ROWS, Table
from tallyveil.tables.bins import Bins
from tallyveil.tables.codes import normal_label
from tallyveil.tables.conditions import Condition, RowChooser
from tallyveil.tables.delimited import read_delimited
from tallyveil.tables.distinct import CANNOT_HASH, find_repeat
from tallyveil.tables.places import Label, Places, normal_category

__all__ = [
    "Label",
    "choose_rows",
    "combine_categories",
    "count_rows",
    "describe_repeat",
    "describe_unlisted",
    "find_category",
    "place_categories",
    "public_categories",
    "read_column_lists",
    "require_distinct",
    "select_rows",
    "sorted_order",
]

PLAIN = (bool, int, float, date)
"""Types of values that keep their type; everything else is published as text."""

LARGEST_CODE = 2**62
"""Codes of several columns together stay below this."""


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
        listed = _list_values(categories)
        labels = [tuple(one) if isinstance(one, (tuple, list)) else (one,) for one in listed]
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
    found: dict[str, list[Any]] = {}
    for text in texts:
        name, sign, values = text.partition("=")
        if not sign or name.strip() in found:
            rule = "be one list, or COLUMN=VALUES for each column"
            raise ArgumentError("categories", rule, text)
        labels = public_categories(values, [name.strip()])
        found[name.strip()] = [label for (label,) in labels]
    return found


def _names_file(text: str) -> bool:
    """Whether a text is the name of a file; folders may have commas in their names."""
    return "," not in text or os.path.isfile(text)


def _list_values(values: Any) -> list[Any]:
    """List values in an order that somebody chose: rows are published in it."""
    if isinstance(values, str):
        return [part.strip() for part in values.split(",")]
    if isinstance(values, (bytes, set, frozenset)) or not hasattr(type(values), "__iter__"):
        raise _not_a_list(values)
    try:
        return list(values)
    except TypeError:  # an array without dimensions
        raise _not_a_list(values) from None


def _not_a_list(values: Any) -> ArgumentError:
    return ArgumentError("categories", "be a list, in public order", got=describe_kind(values))


def find_category(categories: Sequence[Label], label: str) -> int:
    """Find the place in the list of the category with this label in every column."""
    wanted = normal_label(label)
    return next(at for at, one in enumerate(categories) if set(normal_category(one)) == {wanted})


def _unify(values: Sequence[Any], is_text: bool) -> list[Any]:
    """Give values one type: their own if they share one, that of numbers written out, or text."""
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


def require_distinct(table: Table, names: Sequence[str]) -> None:
    """Raise a `TableError` that names the first row with the same public labels as an earlier one.

    Takes O(rows log rows) time. Memory is bounded where labels can be hashed (`find_repeat`).
    """
    if not names:
        return
    if table.rows > BATCH_ROWS:
        repeat = find_repeat(table, names)
        if repeat is None:
            return
        if repeat != CANNOT_HASH:
            raise _repeated_category(repeat, names)
    rows, size = np.zeros(table.rows, dtype=np.int64), 1
    for name in names:
        column = table.codes(name)
        if len(column.values) == table.rows:
            return
        if size * len(column.values) > LARGEST_CODE:
            found, rows = np.unique(rows, return_inverse=True)
            size = len(found)
        size *= len(column.values)
        rows *= len(column.values)
        rows += column.codes
    ordered = np.sort(rows)
    if (ordered[1:] != ordered[:-1]).all():
        return
    repeats = np.ones(table.rows, dtype=bool)
    repeats[np.unique(rows, return_index=True)[1]] = False
    raise _repeated_category(int(repeats.argmax()), names)


def _repeated_category(row: int, names: Sequence[str]) -> TableError:
    return describe_repeat(f"Row {row + 1}", names)


def describe_repeat(which: str, names: Sequence[str]) -> TableError:
    """The error for a row with the same public labels as an earlier one."""
    return TableError(
        f"{which} repeats the category of an earlier row "
        f"({', '.join(names[:4])}{', ...' if len(names) > 4 else ''}): one person could be in "
        "both. Merge the rows, or say --allow-duplicates if every row is a unit of its own."
    )


def sorted_order(table: Table, names: Sequence[str], ties: Integers | None = None) -> Integers:
    """Sort the rows by public columns, the first deciding first; return row numbers from 0.

    A column is compared as numbers if every label in it is a finite number, else as text. Rows
    with the same labels stand in the order of `ties`, by default that of the table.
    """
    start = np.arange(table.rows) if ties is None else ties
    ranks = [table.codes(name).rank_rows()[start] for name in names]
    return start[np.lexsort(ranks[::-1])] if ranks else start


def select_rows(table: Table, where: Sequence[Condition]) -> Mask:
    """Find the rows of microdata that meet all conditions, in batches."""
    chooser = RowChooser(where)
    met = choose_rows(table, chooser)
    chooser.require_types()
    return met


def choose_rows(table: Table, chooser: RowChooser) -> Mask:
    """Find the rows of a table, or of a part of one, that meet all conditions, in batches."""
    for condition in chooser.conditions:
        condition.require_column(table)
    if not chooser.conditions:
        return np.ones(table.rows, dtype=bool)
    found = [chooser.choose(batch) for batch in table.batches()]
    return np.concatenate([np.ones(0, dtype=bool), *found])


def count_rows(
    table: Table,
    by: Sequence[str],
    categories: Sequence[Label],
    where: Sequence[Condition],
    *,
    other: int | None = None,
    bins: Mapping[str, Bins] | None = None,
) -> Integers:
    """Count the rows of microdata that meet all conditions in each public category, in batches.

    A row with a category that is not listed counts for the category at `other`; without one it
    raises a `TableError`. Numbers of a column in `bins` count for the range they lie in; conditions
    see the numbers themselves.
    """
    known = Places.of(by, categories, other, bins)
    known.require_columns(table)
    met = select_rows(table, where)
    counts, start = np.zeros(len(categories), dtype=np.int64), 0
    for batch in table.batches():
        rows = slice(start, start + batch.rows)
        places = known.find(batch)
        unlisted = met[rows] & (places < 0)
        if unlisted.any():
            raise describe_unlisted(f"Row {start + unlisted.argmax() + 1}")
        counts += np.bincount(places[met[rows]], minlength=len(categories))
        start += batch.rows
    return counts


def describe_unlisted(which: str) -> TableError:
    """The error for a row of microdata with a category that is not in the public list."""
    return TableError(
        f"{which} has a category that is not in the public list. Extend the list, name a cell for "
        "all others (--other LABEL), or leave such rows out with a condition (--where)."
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
        row = (places < 0).argmax() + 1
        raise TableError(
            f"Row {row} has a category that is not in the public list. Extend the list, or name a "
            "cell for all others (--other LABEL)."
        )
    repeats = np.ones(table.rows, dtype=bool)
    repeats[np.unique(places, return_index=True)[1]] = False
    repeats &= places != (-1 if other is None else other)
    if repeats.any():
        raise _repeated_category(int(repeats.argmax()), keys)
    return places


def _cross_values(categories: Mapping[Any, Any], by: Sequence[str]) -> list[Label]:
    """Combine every value of each column with every value of the others."""
    if set(categories) != set(by):
        raise ArgumentError("categories", f"name exactly the columns {', '.join(by)}")
    return list(itertools.product(*(_list_values(categories[name]) for name in by)))


def _read_list(path: Path, by: Sequence[str]) -> list[Label]:
    """Read the public list from a file."""
    if not os.path.isfile(path):  # no error for a text too long to be a name
        raise ArgumentError(
            "categories", "be a file that exists, or values separated by commas", str(path)
        )
    if len(by) > 1 or path.suffix.lower() in (".csv", ".tsv"):
        table = read_delimited(path, encoding="utf-8-sig")
        if set(by) <= set(table.names):
            return list(zip(*(table.labels(name) for name in by), strict=True))
        if len(by) > 1:
            raise ArgumentError("categories", f"have a header naming {', '.join(by)}", path.name)
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    return [(line.strip(),) for line in lines if line.strip() and line.strip() != by[0]]
