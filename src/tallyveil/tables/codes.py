"""Columns as integer codes, so that labels are compared as integers and not row by row."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats, Integers, Mask

__all__ = [
    "Codes",
    "encode_floats",
    "encode_objects",
    "encode_text",
    "encode_values",
    "is_number",
    "normal_label",
    "number_together",
]

CodeArray: TypeAlias = NDArray[np.signedinteger[Any]]

WHOLE = re.compile(r"(-?)(0|[1-9][0-9]*)\.0*")
MIDNIGHT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]00:00:00(\.0+)?")


def normal_label(label: str) -> str:
    """Give the form in which labels of different engines are compared.

    One code is 1 in a column of integers, 1.0 in one with missing values and "1" in a text file;
    the same goes for dates, for true and false, and for composed letters. 007 and 7 stay apart,
    and so do 1 and true.

    >>> [normal_label(text) for text in ("1.0", " 1", "007", "TRUE", "2026-01-31 00:00:00")]
    ['1', '1', '007', 'True', '2026-01-31']
    """
    text = label.strip()
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if text.lower() in ("true", "false"):
        return text.capitalize()
    whole, day = WHOLE.fullmatch(text), MIDNIGHT.fullmatch(text)
    if whole:
        return "0" if whole[2] == "0" else whole[1] + whole[2]
    return day[1] if day else text


def is_number(text: str) -> bool:
    """Whether Python reads a text as a number.

    >>> is_number("1e5"), is_number("nan"), is_number("a")
    (True, True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True


class Values(Protocol):
    """A NumPy or Arrow array of distinct values."""

    def __len__(self) -> int: ...

    def tolist(self) -> list[Any]:
        """Give the values as Python objects."""


@dataclass(frozen=True, eq=False)
class Codes:
    """A column as integers: two rows have the same code exactly if they have the same label.

    `values[codes[row]]` is what a row holds; `values` has every label that occurs once, as a
    number or as the label itself.
    """

    codes: CodeArray
    values: Values

    @cached_property
    def labels(self) -> list[str]:
        """The label of each code, as text."""
        return list(map(str, self.values.tolist()))

    @cached_property
    def numbers(self) -> Floats | None:
        """The label of each code as a number, or None unless every label is a finite number."""
        if isinstance(self.values, np.ndarray) and self.values.dtype.kind in "iuf":
            numbers = self.values.astype(np.float64)
        else:
            try:
                numbers = np.fromiter(map(float, self.labels), np.float64, len(self.values))
            except ValueError:
                return None
        return numbers if np.isfinite(numbers).all() else None

    def rank_rows(self) -> Integers:
        """Rank every row by its label: as a number if all labels are numbers, else as text."""
        if self.numbers is not None:
            ranks = np.unique(self.numbers, return_inverse=True)[1]
        else:
            order = sorted(range(len(self.labels)), key=self.labels.__getitem__)
            ranks = np.empty(len(order), dtype=np.int64)
            ranks[order] = np.arange(len(order))
        return ranks[self.codes]

    def spread(self) -> list[str]:
        """Give the label of every row."""
        spread: list[str] = np.array(self.labels, dtype=object)[self.codes].tolist()
        return spread


def number_together(columns: Sequence[CodeArray]) -> Integers:
    """Number rows by what they hold in several columns of codes, smaller codes first.

    Numbers stay below that of rows, however many columns there are.

    >>> number_together([np.array([1, 0, 1]), np.array([7, 7, 2])]).tolist()
    [2, 0, 1]
    """
    found = np.zeros(len(columns[0]), dtype=np.int64)
    for codes in columns:
        both = found * (int(codes.max(initial=0)) + 1) + codes
        found = np.unique(both, return_inverse=True)[1].reshape(-1)
    return found


def encode_text(labels: Sequence[str]) -> Codes:
    """Encode the label of every row, with codes in the order of first occurrence.

    >>> encode_text(["n", "s", "n"]).codes.tolist()
    [0, 1, 0]
    """
    code_of = {label: code for code, label in enumerate(dict.fromkeys(labels))}
    codes = np.fromiter(map(code_of.__getitem__, labels), np.int64, len(labels))
    return Codes(codes, np.array(list(code_of), dtype=object))


def encode_values(codes: CodeArray, values: Sequence[Any]) -> Codes:
    """Label codes by the text of their values (empty for None), and merge codes with equal labels.

    >>> encode_values(np.array([0, 1, 2]), [None, "", "x"]).codes.tolist()
    [0, 0, 1]
    """
    merged = encode_text(["" if value is None else str(value) for value in values])
    return Codes(merged.codes[codes], merged.values)


def encode_objects(values: Sequence[Any], missing: Mask) -> Codes:
    """Encode Python objects by their text, rows without a value by the empty label."""
    labels = np.array(list(map(str, values)), dtype=object)
    labels[missing] = ""
    return encode_text(labels.tolist())


def encode_floats(values: NDArray[Any], *, nan_is_missing: bool = False) -> Codes:
    """Encode numbers by their bits at 64 bits: 0.0 and -0.0 differ, and all NaN are one value.

    >>> encode_floats(np.array([0.5, 2.0, 0.5])).labels
    ['0.5', '2.0']
    """
    wide = values.astype(np.float64)
    wide[np.isnan(wide)] = np.nan
    bits, codes = np.unique(wide.view(np.int64), return_inverse=True)
    numbers = bits.view(np.float64)
    if nan_is_missing and np.isnan(numbers).any():
        return encode_values(codes, [None if np.isnan(n) else n for n in numbers.tolist()])
    return Codes(codes, numbers)
