"""Counts as people write them: thousands separators, decimal commas, codes for missing cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.tables.base import Table
from tallyveil.tables.counts import convert_text
from tallyveil.tables.form import Form
from tallyveil.tables.wrapped import WrappedTable

__all__ = ["DeclaredTable", "declare_numbers", "leave_out_missing"]

SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2019": "'"})


@dataclass(frozen=True, eq=False)
class DeclaredTable(WrappedTable):
    """A table whose counts are written as its `form` declares; all else is handed on."""

    form: Form = field(default_factory=Form)

    def counts(self, name: str) -> Integers:
        """Read a column as counts, with the declared separators."""
        return convert_text([plain_number(cell, self.form) for cell in self.labels(name)], name)


def declare_numbers(table: Table, form: Form) -> Table:
    """Let the counts of a table be read as its form declares."""
    has_marks = form.thousands is not None or form.decimal != "."
    return DeclaredTable(table, form) if has_marks else table


def plain_number(cell: str, form: Form) -> str:
    """Write a number without separators and with a decimal point; other text stays as it is.

    Separators must stand where thousands end: 1,5 is not read as 15.

    >>> plain_number("1.234.567,0", Form(thousands=".", decimal=",")), plain_number("1,5", Form())
    ('1234567.0', '1,5')
    """
    text = cell.strip().translate(SPACES)
    whole, mark, part = text.partition(form.decimal)
    separator = (form.thousands or "").translate(SPACES)
    if separator and separator in whole:
        if not re.fullmatch(rf"[+-]?\d{{1,3}}({re.escape(separator)}\d{{3}})+", whole):
            return cell
        whole = whole.replace(separator, "")
    return whole + ("." + part if mark else "")


def leave_out_missing(
    table: Table, names: Sequence[str], codes: Sequence[str]
) -> tuple[Table, int]:
    """Leave out every row with one of these codes in one of these columns; say how many they are.

    Where such rows stand is not protected: their owner declares it public.
    """
    stays = np.ones(table.rows, dtype=bool)
    for name in names:
        column = table.codes(name)
        is_code = np.array([label.strip() in codes for label in column.labels], dtype=bool)
        stays &= ~is_code[column.codes]
    left_out = int((~stays).sum())
    if not left_out:
        return table, 0
    return table.build_released({}, table.names, np.flatnonzero(stays)), left_out
