"""Files of statistics programs, Stata, SPSS and SAS: the home of pyreadstat.

Columns keep their codes. Labels of values, of variables and of the file are not published: nobody
said that they are public.
"""

from __future__ import annotations

import re
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tallyveil.errors import MissingExtraError, TableError
from tallyveil.tables.bare import require_bare_notes
from tallyveil.tables.base import UnheldError
from tallyveil.tables.cells import CellsTable
from tallyveil.untrusted import UNLIKELY, read_file

__all__ = [
    "StatisticsTable",
    "build_statistics",
    "read_released_statistics",
    "read_statistics",
]

READERS = {
    ".dta": "read_dta",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".xpt": "read_xport",
    ".sas7bdat": "read_sas7bdat",
}
WRITERS = {"dta": "write_dta", "sav": "write_sav", "xpt": "write_xport"}
READ_ONLY = "sas7bdat"
"""A format that nobody but SAS writes."""

TIMES = {
    "dta": (re.compile(rb"<timestamp>\x11.{17}<"), b"<timestamp>\x1101 Jan 1980 00:00<"),
    "sav": (re.compile(rb"(?s)\A(.{92}).{17}"), rb"\g<1>01 Jan 8000:00:00"),
    "xpt": (re.compile(rb"\d{2}[A-Z]{3}\d{2}:\d{2}:\d{2}:\d{2}"), b"01JAN80:00:00:00"),
}
"""Where each format says when it was written, and what stands there instead."""

EXACT = 2**53
"""Up to here doubles hold every whole number."""

MOST_CELLS = 2**40
CELLS_LEAST = 4_000_000
"""Cells that a file may always have; it may have one more for each of its bytes."""

RELEASED_LEAST, RELEASED_BYTES = 1_000_000, 4
"""The same for somebody else's file, and how many bytes every further cell must take."""

NOTES = 10
"""Which of the places in a Stata file's map is that of long texts."""

XPT_HEADERS = 1 << 12
"""Only here does the transport format hold times; further on there are data."""


@dataclass(frozen=True, eq=False)
class StatisticsTable(CellsTable):
    """A table of a statistics program; `kind` is dta, sav, xpt or sas7bdat."""

    kind: str = "dta"
    holds_doubles: ClassVar[bool] = True

    @property
    def extension(self) -> str:
        """The ending of the file."""
        return self.kind

    def to_bytes(self) -> bytes:
        """Write the file, without labels and the time of writing."""
        if self.kind == READ_ONLY:
            raise TableError(
                "Files of SAS (.sas7bdat) are read but not written: say --format, such as xpt, csv "
                "or xlsx."
            )
        from tallyveil.tables.pandas import build_frame

        library = _import_pyreadstat()
        columns = {n: [_plain(cell) for cell in self.cells(n)] for n in self.names}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"data.{self.kind}")
            try:
                getattr(library, WRITERS[self.kind])(build_frame(columns), path)
            except (library.PyreadstatError, library.ReadstatError, OverflowError):
                raise UnheldError(
                    f"The format {self.kind} cannot hold this table: names of columns must be "
                    "short, of letters and digits, and numbers finite and not too large. Say "
                    "another --format."
                ) from None
            content = path.read_bytes()
        pattern, plain = TIMES[self.kind]
        if self.kind == "xpt":
            return pattern.sub(plain, content[:XPT_HEADERS]) + content[XPT_HEADERS:]
        return pattern.sub(plain, content, count=1)


def build_statistics(
    names: Sequence[str], columns: Sequence[Sequence[Any]], kind: str
) -> StatisticsTable:
    """Build a table of a statistics program from columns; whole numbers are doubles in it."""
    made = tuple(tuple(map(_hold, column)) for column in columns)
    return StatisticsTable(tuple(names), made, kind)


def read_statistics(path: Path, ending: str) -> StatisticsTable:
    """Read a file of Stata, SPSS or SAS."""
    most = CELLS_LEAST + path.stat().st_size
    table = _read(path, ending, most)
    if table is None:
        raise TableError(
            f"{UNLIKELY} If that is right, save it without compression, or as CSV, first."
        )
    return table


def read_released_statistics(
    path: Path, ending: str, rows: int, *, large: bool = False
) -> StatisticsTable:
    """Read a file of so many rows that somebody else released."""
    most = MOST_CELLS if large else RELEASED_LEAST + path.stat().st_size // RELEASED_BYTES
    table = _read(path, ending, most, rows)
    if table is None:
        raise TableError("The data unpack to far more than a file of that size should hold.")
    require_bare_notes(_call(_import_pyreadstat(), path, ending, metadataonly=True)[1])
    if table.rows != rows:
        raise TableError(f"The table has other than the stated {rows:,} rows.")
    return table


def _read(path: Path, ending: str, most: int, rows: int | None = None) -> StatisticsTable | None:
    """Read a file of at most so many cells, and of so many rows; None if it has more.

    Text counts by the room that it takes in a row.
    """
    library = _import_pyreadstat()
    _, facts = _call(library, path, ending, metadataonly=True)
    if not facts.column_names:
        raise TableError("The table is empty: the file holds no columns.")
    widths = [int(wide) for wide in facts.variable_storage_width.values()]
    if 0 in widths:  # text of any length, which many rows may share
        longest = _find_longest_note(path)
        widths = [wide or longest for wide in widths]
    room = most // sum(max(1, wide // 8) for wide in widths)
    if facts.number_rows is not None and facts.number_rows > room:
        return None
    limit = room + 1 if rows is None else min(rows, room) + 1
    columns, _ = _call(library, path, ending, output_format="dict", row_limit=limit)
    kind = "sav" if ending == ".zsav" else ending.removeprefix(".")
    table = build_statistics(list(columns), list(columns.values()), kind)
    return None if table.rows > room else table


def _find_longest_note(path: Path) -> int:
    """How long the longest of the texts is that a Stata file keeps apart from its rows."""
    content = read_file(path)
    try:
        order = "<" if b"<byteorder>LSF" in content[:100] else ">"
        place = order + ("LQBI" if b"<release>117" not in content[:100] else "LLBI")
        places = struct.unpack_from(order + "14Q", content, content.index(b"<map>") + len("<map>"))
        at, longest = places[NOTES] + len("<strls>"), 0
        while content[at : at + 3] == b"GSO":
            *_, length = struct.unpack_from(place, content, at + 3)
            longest = max(longest, length)
            at += 3 + struct.calcsize(place) + length
    except (ValueError, struct.error):
        return len(content)
    return longest


def _call(library: Any, path: Path, ending: str, **options: Any) -> Any:
    try:
        return getattr(library, READERS[ending])(path, **options)
    except (library.ReadstatError, library.PyreadstatError, UnicodeDecodeError, OSError) as problem:
        raise TableError(
            f"The file cannot be read as {ending.removeprefix('.')}: it is damaged or cut short."
        ) from problem


def _hold(cell: Any) -> Any:
    """Give a whole number as the double that it will be, unless none is so large."""
    is_whole = isinstance(cell, int) and not isinstance(cell, bool)
    return float(cell) if is_whole and abs(cell) <= EXACT else cell


def _plain(cell: Any) -> Any:
    return int(cell) if isinstance(cell, bool) else cell


def _import_pyreadstat() -> Any:
    try:
        import pyreadstat
    except ImportError as missing:
        raise MissingExtraError("pyreadstat", "statistics") from missing
    return pyreadstat
