"""A bound on the rows of one person, made true by leaving rows out."""

from __future__ import annotations

import numpy as np

from tallyveil.arrays import Integers, Mask
from tallyveil.errors import TableError
from tallyveil.tables.base import Table
from tallyveil.tables.codes import encode_text, normal_label
from tallyveil.tables.counts import MISSING

__all__ = ["bound_rows", "describe_nameless", "identify_persons", "keep_apart", "name_persons"]


def identify_persons(table: Table, column: str) -> Integers:
    """Give a number to every row, the same for two rows exactly if they are of one person.

    Raises a `TableError` if the column is not there or a row does not say whose it is.
    """
    labels, persons, nameless = name_persons(table, column)
    if nameless.any():
        raise describe_nameless(f"Row {int(nameless.argmax()) + 1}", column)
    return np.asarray(encode_text(labels).codes[persons], dtype=np.int64)


def name_persons(table: Table, column: str) -> tuple[list[str], Integers, Mask]:
    """Give the persons' identifiers, which of them each row has, and the rows that have none.

    Identifiers are compared in normal form: 7, 7.0 and "7 " are one person, and may stand in the
    list several times. What programs write for a missing value is nobody's identifier: strangers
    who share it would share one bound, and which of their rows stay would depend on who else is
    there.
    """
    if column not in (*table.names, *table.index_names):
        raise TableError(f"There is no column {column!r} that tells persons apart.")
    found = table.codes(column)
    missing = [label.strip().lower() in MISSING for label in found.labels]
    nameless = np.array(missing, dtype=bool)[found.codes]
    return [normal_label(label) for label in found.labels], found.codes, nameless


def describe_nameless(which: str, column: str) -> TableError:
    """The error for a row that does not say whose it is."""
    return TableError(
        f"{which} has no value in {column!r}, so nothing says whose it is. Leave such rows out, or "
        "give each of them a value of its own."
    )


def bound_rows(persons: Integers, counted: Mask, most: int, order: Integers) -> Mask:
    """Choose, of the rows that are `counted`, those that stay: at most `most` of each person.

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
    """Choose, of the rows that are `counted`, one of each person in each cell.

    It is the first in `order`. Followed by `bound_rows`, what stays of one person is in different
    cells, and nothing that stays of anybody else depends on it.

    >>> persons, cells = np.array([7, 7, 8, 7]), np.array([0, 1, 1, 0])
    >>> keep_apart(persons, cells, np.ones(4, dtype=bool), np.array([3, 2, 1, 0])).tolist()
    [False, True, True, True]
    """
    pairs = np.unique(np.column_stack([persons, cells]), axis=0, return_inverse=True)[1]
    return bound_rows(pairs.reshape(-1), counted, 1, order)
