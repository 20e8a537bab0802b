"""Excel workbooks from outside, read row by row and measured before: the home of openpyxl.

A small file can unpack to anything, so the tags of all parts are counted first, and nothing is made
of cells that are empty, merged or formulas.
"""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from tallyveil.errors import MissingExtraError, TableError
from tallyveil.tables.cells import Unreadable

__all__ = ["Book", "Sheet", "bound_tags", "count_word", "guard", "has_too_much", "import_openpyxl"]

TAGS_LEAST, TAGS_EACH, TAGS_RELEASED = 4_000_000, 2, 10
"""Tags a workbook may have, four for a cell; how many more for each byte; and bytes for each."""

TAGS_BESIDE = 400_000
"""Tags of all the parts that hold no cells: styles, names of ranges."""

PIECE = 1 << 20
SHEETS, STRINGS = "xl/worksheets/", "sharedStrings.xml"
FORMULA = Unreadable("a formula", "Save the sheet with values in place of formulas first.")
ERROR = Unreadable("an Excel error", "Correct it first.")


def bound_tags(size: int, *, released: bool = False) -> int:
    """How many tags a workbook of so many bytes may have; fewer if somebody else released it."""
    return TAGS_LEAST + (size // TAGS_RELEASED if released else TAGS_EACH * size)


@contextmanager
def guard() -> Iterator[None]:
    """Say of whatever a broken part leads to that the file is damaged."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and extensions, which are left behind
            yield
    except (TableError, MissingExtraError):
        raise
    except Exception as problem:  # openpyxl raises anything
        raise TableError(
            "The file cannot be read as an Excel workbook: it is damaged or cut short."
        ) from problem


def has_too_much(parts: zipfile.ZipFile, most: int) -> bool:
    """Whether a workbook has more tags than it may, before anything is made of them."""
    tags = beside = 0
    for name in parts.namelist():
        for piece in _read_pieces(parts, name):
            tags += piece.count(b"<") + len(piece) // 100
            if not (name.startswith(SHEETS) or name.endswith(STRINGS)):
                beside += piece.count(b"<")
            if tags > most or beside > TAGS_BESIDE:
                return True
    return False


def _read_pieces(parts: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    with parts.open(name) as stream:
        while piece := stream.read(PIECE):
            yield piece


def count_word(parts: zipfile.ZipFile, name: str, word: bytes) -> int:
    """How often a word stands in a part."""
    found, rest = 0, b""
    for piece in _read_pieces(parts, name):
        found += (rest + piece).count(word)
        rest = piece[1 - len(word) :]
    return found


class Sheet(NamedTuple):
    """The filled cells of a sheet by row, and what its reader is asked about."""

    rows: list[tuple[int, tuple[int, ...], tuple[Any, ...]]]
    merged: list[str]
    hidden_rows: list[int]
    hidden_columns: list[str]


class Book:
    """A workbook whose sheets are read row by row."""

    def __init__(self, raw: bytes) -> None:
        import_openpyxl()
        from openpyxl.reader.excel import ExcelReader
        from openpyxl.styles.stylesheet import apply_stylesheet

        self.reader = ExcelReader(io.BytesIO(raw), read_only=True, keep_links=False)
        self.reader.read_manifest()
        self.reader.read_strings()
        self.reader.read_workbook()
        apply_stylesheet(self.reader.archive, self.reader.wb)
        found = self.reader.parser.find_sheets()
        self.sheets: dict[str, tuple[str, str]] = {
            sheet.name: (sheet.state, rel.target)
            for sheet, rel in found
            if rel.Type.endswith("/worksheet") and rel.target in self.reader.valid_files
        }

    def choose_sheet(self, wanted: str | None) -> str:
        """Give the name of the sheet that is wanted, or of the only one."""
        known = ", ".join(
            repr(title) + ("" if state == "visible" else " (hidden)")
            for title, (state, _) in self.sheets.items()
        )
        if wanted is None:
            if len(self.sheets) == 1:
                return next(iter(self.sheets))
            raise TableError(f"The workbook has several sheets: {known}. Name one with --sheet.")
        if wanted not in self.sheets:
            raise TableError(f"There is no sheet {wanted!r}. The sheets are: {known}.")
        return wanted

    def read_sheet(self, title: str) -> Sheet:
        """Read the filled cells of a sheet; they must stand in the order of rows and columns."""
        from openpyxl.worksheet import _reader as tags
        from openpyxl.xml.functions import iterparse

        class Parser(tags.WorkSheetParser):  # type: ignore[misc]
            """A parser that works no formula out."""

            def parse_formula(self, element: Any) -> str:
                return "="

        rows, known = [], dict[tuple[int, ...], tuple[int, ...]]()
        merged: list[str] = []
        book, last = self.reader.wb, 0
        with self.reader.archive.open(self.sheets[title][1]) as source:
            formats = book._date_formats, book._timedelta_formats
            parser = Parser(source, self.reader.shared_strings, False, book.epoch, *formats)
            for _, element in iterparse(source):
                if element.tag == tags.COL_TAG:
                    parser.parse_column_dimensions(element)
                elif element.tag == tags.MERGE_TAG:
                    merged = [cell.get("ref") for cell in element]
                elif element.tag == tags.ROW_TAG:
                    number, cells = parser.parse_row(element)
                    element.clear()
                    places = [cell["column"] for cell in cells]
                    if number <= last or any(a >= b for a, b in pairwise(places)):
                        raise TableError("The rows or cells of the sheet stand in no order.")
                    last = number
                    values = {cell["column"]: _read_cell(cell) for cell in cells}
                    filled = tuple(at for at, value in values.items() if value is not None)
                    if filled:
                        own = known.setdefault(filled, filled)
                        rows.append((number, own, tuple(values[at] for at in filled)))
        hidden = [int(at) for at, row in parser.row_dimensions.items() if _is_on(row.get("hidden"))]
        columns = [name for name, c in parser.column_dimensions.items() if _is_on(c.get("hidden"))]
        return Sheet(rows, merged, sorted(hidden), columns)


def _is_on(value: str | None) -> bool:
    return value in ("1", "true")


def _read_cell(cell: dict[str, Any]) -> Any:
    """Read the value of a cell; what is no plain value is marked."""
    if cell["data_type"] == "f":
        return FORMULA
    if cell["data_type"] == "e":
        return ERROR
    value = cell["value"]
    if value is None or (isinstance(value, str) and not value):
        return None
    known = (bool, int, float, str, date, datetime, time, timedelta)
    return value if isinstance(value, known) else str(value)


def import_openpyxl() -> Any:
    """Import openpyxl, or say which extra has it."""
    try:
        import openpyxl
    except ImportError as missing:
        raise MissingExtraError("openpyxl", "excel") from missing
    return openpyxl
