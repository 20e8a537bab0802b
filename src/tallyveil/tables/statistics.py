"""Files of statistics programs, Stata, SPSS and SAS: the home of pyreadstat.

Columns keep their codes. Labels of values, of variables and of the file are not published: nobody
declared them public.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tallyveil.errors import MissingExtraError, TableError, replacing
from tallyveil.tables.columnar import describe_damage, describe_unlikely
from tallyveil.tables.frames import convert_columns
from tallyveil.tables.table import ArrowNative, Table
from tallyveil.untrusted import read_file

READERS = {
    ".dta": "read_dta",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".xpt": "read_xport",
    ".sas7bdat": "read_sas7bdat",
}
CELLS_LEAST = 4_000_000
"""Cells that a file may always have; it may have one more for each of its bytes."""

NOTES = 10
"""Which of the places in a Stata file's map is that of long texts."""


def read_statistics(path: Path, ending: str) -> Table:
    """Read a file of Stata, SPSS or SAS, of at most as many cells as its size makes likely.

    Text counts by the room that it takes in a row.
    """
    try:
        import pyreadstat as library
    except ImportError as missing:
        raise MissingExtraError("pyreadstat", "statistics") from missing
    _, facts = _call(library, path, ending, metadataonly=True)
    if not facts.column_names:
        raise TableError("The table is empty: the file holds no columns.")
    widths = [int(wide) for wide in facts.variable_storage_width.values()]
    if 0 in widths:  # text of any length, which many rows may share
        longest = _find_longest_note(path)
        widths = [wide or longest for wide in widths]
    room = (CELLS_LEAST + path.stat().st_size) // sum(max(1, wide // 8) for wide in widths)
    rows = facts.number_rows or 0
    if rows <= room:
        columns, _ = _call(library, path, ending, output_format="dict", row_limit=room + 1)
        rows = len(next(iter(columns.values())))
    if rows > room:
        raise describe_unlikely("save it without compression, or as CSV, first")
    kind = "sav" if ending == ".zsav" else ending.removeprefix(".")
    series = [np.asarray(column, dtype=object) for column in columns.values()]
    table = convert_columns(list(columns), series, kind, ArrowNative())
    return replace(table, is_text=True)


def _find_longest_note(path: Path) -> int:
    """Return the length of the longest text that a Stata file stores outside its rows."""
    content = read_file(path)
    try:
        order = "<" if b"<byteorder>LSF" in content[:100] else ">"
        head = order + ("LQBI" if b"<release>117" not in content[:100] else "LLBI")
        places = struct.unpack_from(order + "14Q", content, content.index(b"<map>") + len("<map>"))
        start, longest = places[NOTES] + len("<strls>"), 0
        while content[start : start + 3] == b"GSO":
            *_, length = struct.unpack_from(head, content, start + 3)
            longest = max(longest, length)
            start += 3 + struct.calcsize(head) + length
    except (ValueError, struct.error):
        return len(content)
    return longest


def _call(library: Any, path: Path, ending: str, **options: Any) -> Any:
    with replacing(partial(describe_damage, ending.removeprefix("."))):
        try:
            return getattr(library, READERS[ending])(path, **options)
        except OverflowError:
            raise TableError(
                "The file is damaged, or has a date or time out of bounds. Correct it first."
            ) from None
