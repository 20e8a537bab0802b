"""Counts as they stand in a column, turned into whole numbers or refused in words.

A message names the column, the row and the rule; it never quotes what the row holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.errors import TableError

__all__ = [
    "Counts",
    "counts_of_numbers",
    "counts_of_objects",
    "counts_of_text",
    "letter_type",
    "require_fits",
]

Counts = NDArray[np.int64]
LARGEST = 2**62
"""Larger counts are cut to this; every upper bound lies far below it."""

MISSING = frozenset({"", "na", "nan", "n/a", "null", "none", "-", "."})


def counts_of_text(values: Sequence[str], column: str) -> Counts:
    """The whole numbers written in `values`: digits, with nothing but zeros after a point.

    >>> counts_of_text(["3", " 0 ", "12.0"], "cases").tolist()
    [3, 0, 12]
    """
    plain = [value.strip() for value in values]
    if all(value.isascii() and value.isdigit() for value in plain):
        return _cut([int(value) for value in plain])
    counts = []
    for row, value in enumerate(plain, start=1):
        head, _, tail = value.partition(".")
        whole = head.isascii() and head.isdigit() and (not tail or set(tail) <= {"0"})
        if not whole:
            raise _refusal(column, row, _what_text_is(value))
        counts.append(int(head))
    return _cut(counts)


def counts_of_numbers(values: NDArray[Any], column: str, missing: NDArray[np.bool_]) -> Counts:
    """The whole numbers in a numeric array; `missing` marks rows without a value."""
    if missing.any():
        raise _refusal(column, int(missing.argmax()) + 1, "no value")
    if values.dtype.kind == "u":
        whole: Counts = np.minimum(values, np.uint64(LARGEST)).astype(np.int64)
        return whole
    if values.dtype.kind == "i":
        _require_none(values < 0, column, "a negative number")
        return np.minimum(values.astype(np.int64), LARGEST)
    if values.dtype.kind != "f":
        raise TableError(f"Column {column!r} must hold whole numbers; it holds {_kind(values)}.")
    _require_none(~np.isfinite(values), column, "no finite number")
    _require_none(values < 0, column, "a negative number")
    _require_none(values != np.floor(values), column, "a fraction")
    rounded: Counts = np.minimum(values, float(LARGEST)).astype(np.int64)
    return rounded


def counts_of_objects(values: Sequence[Any], column: str) -> Counts:
    """The whole numbers among Python objects (a column of mixed type)."""
    counts = []
    for row, value in enumerate(values, start=1):
        what = _what_it_is(value)
        if what:
            raise _refusal(column, row, what)
        counts.append(int(value))
    return _cut(counts)


def _what_it_is(value: Any) -> str:
    """Why `value` is not a count, or nothing."""
    if value is None or (isinstance(value, Real) and math.isnan(value)):
        return "no value"
    if (
        isinstance(value, (bool, np.bool_))
        or not hasattr(value, "__int__")
        or isinstance(value, str)
    ):
        return "text" if isinstance(value, str) else "something other than a number"
    if not isinstance(value, Integral):
        if not math.isfinite(value):
            return "no finite number"
        if value != int(value):
            return "a fraction"
    return "a negative number" if value < 0 else ""


def _what_text_is(value: str) -> str:
    if value.lower() in MISSING:
        return "no value"
    try:
        number = float(value)
    except ValueError:
        return "text"
    if not math.isfinite(number):
        return "no finite number"
    return "a negative number" if number < 0 else "a fraction"


def _refusal(column: str, row: int, what: str) -> TableError:
    return TableError(
        f"Column {column!r} must hold a whole number of at least 0 in every row. "
        f"Row {row} holds {what}."
    )


def _require_none(broken: NDArray[np.bool_], column: str, what: str) -> None:
    if broken.any():
        raise _refusal(column, int(broken.argmax()) + 1, what)


def _cut(counts: list[int]) -> Counts:
    return np.array([min(count, LARGEST) for count in counts], dtype=np.int64)


def _kind(values: NDArray[Any]) -> str:
    return {"b": "true and false", "O": "text", "U": "text", "M": "dates"}.get(
        values.dtype.kind, "no numbers"
    )


def require_fits(values: NDArray[Any], column: str, type_name: str, upper: int) -> None:
    """Raise a `TableError` unless [0, upper] came through the column's type unchanged."""
    if values.tolist() != [0, upper]:
        raise TableError(
            f"Column {column!r} has the type {type_name}, which cannot hold {upper}. "
            "Give the column a wider type first."
        )


def letter_type(letter: str) -> str:
    """The Frictionless type of a NumPy kind letter."""
    return {"i": "integer", "u": "integer", "f": "number", "b": "boolean", "M": "datetime"}.get(
        letter, "string"
    )
