"""Cells that a spreadsheet runs instead of showing them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tallyveil.tables.base import Table

__all__ = ["find_formulas"]

FORMULA = re.compile(r"[=@\t\r]|[+-](?![0-9.,]*\Z)")
"""How such a cell begins; a number with a sign is none."""

BEGINS = np.isin(np.arange(256), list(b"=@\t\r+-"))
"""The bytes that such a cell begins with, in any encoding that holds ASCII."""


def find_formulas(table: Table, names: Sequence[str]) -> list[str]:
    """List those of the columns with a name or cell that a spreadsheet would run.

    Binary files and workbooks have none: their cells are marked as text.
    """
    if not table.extension.startswith(("csv", "tsv")):
        return []
    found = {name for name in names if FORMULA.match(name)}
    for batch in table.batches():
        rest = (name for name in names if name not in found)
        found |= {name for name in rest if any(map(FORMULA.match, _list_odd(batch, name)))}
    return [name for name in names if name in found]


def _list_odd(table: Table, name: str) -> Sequence[str]:
    """The cells that begin as a formula may, or all of them where they are not held as bytes."""
    column = table.text(name)
    if column is None:
        return table.labels(name)
    rows = np.flatnonzero(BEGINS.take(column.load() & np.uint64(0xFF)))
    return column.take(rows).decode(getattr(table, "encoding", "utf-8"))
