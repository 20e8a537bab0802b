"""Excel workbooks: the home of openpyxl.

A sheet is read cell by cell, and what is not plainly a cell of a table is asked about: formulas,
errors, merged cells, hidden rows, titles, footnotes. What leaves is a new workbook with one sheet
of values; no style, author, comment, hidden sheet or name of the one that came in goes along.
"""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from tallyveil.errors import MissingExtraError, TableError
from tallyveil.tables.cells import CellsTable, Unreadable
from tallyveil.tables.form import Form

__all__ = ["ExcelTable", "build_excel", "read_excel", "read_released_excel"]

SHEET = "data"
"""The name of the one sheet that is written."""

MOST_ROWS, MOST_COLUMNS = 2**20, 2**14
"""What a sheet can hold, its header included."""

MOST_UNPACKED = 2**31
"""Bytes that the publisher's own workbook may unpack to."""

LARGEST_UNPACKED, UNPACKED_EACH = 48 * 2**20, 40
"""Bytes that somebody else's workbook may unpack to, and how many more for each of its own."""

PARTS = {
    "[Content_Types].xml",
    "_rels/.rels",
    "docProps/app.xml",
    "docProps/core.xml",
    "xl/_rels/workbook.xml.rels",
    "xl/sharedStrings.xml",
    "xl/styles.xml",
    "xl/theme/theme1.xml",
    "xl/workbook.xml",
    "xl/worksheets/sheet1.xml",
}
"""The parts of a workbook that is written here."""

CORE, DATA = "docProps/core.xml", "xl/worksheets/sheet1.xml"
NO_DATES = (
    '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/'
    'core-properties"/>'
)
FORMULA = Unreadable("a formula", "Save the sheet with values in place of formulas first.")
ERROR = Unreadable("an Excel error", "Correct it, or leave the column out with --drop.")
OLD = b"\xd0\xcf\x11\xe0"


@dataclass(frozen=True, eq=False)
class ExcelTable(CellsTable):
    """One sheet of an Excel workbook."""

    kind: str = "xlsx"
    extension: str = "xlsx"

    def to_bytes(self) -> bytes:
        """Write a workbook with one sheet of values, the same bytes for the same table."""
        openpyxl = _import_openpyxl()
        from openpyxl.cell import WriteOnlyCell

        if self.rows >= MOST_ROWS or len(self.names) > MOST_COLUMNS:
            raise TableError(
                f"An Excel sheet holds {MOST_ROWS - 1:,} rows and {MOST_COLUMNS:,} columns at the "
                "most: say another --format."
            )

        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet(SHEET)

        def make(value: Any) -> Any:
            if not isinstance(value, str):
                return value
            cell = WriteOnlyCell(sheet, _require_writable(value))
            cell.data_type = "s"  # text that begins with = stays text
            return cell

        sheet.append([make(name) for name in self.names])
        for row in zip(*self.columns, strict=True):
            sheet.append([make(value) for value in row])
        buffer = io.BytesIO()
        book.save(buffer)
        return _write_again(buffer.getvalue())


def build_excel(names: Sequence[str], columns: Sequence[Sequence[Any]]) -> ExcelTable:
    """Build a sheet of columns."""
    return ExcelTable(tuple(names), tuple(map(tuple, columns)))


def read_excel(source: Path | bytes, form: Form) -> ExcelTable:
    """Read one sheet of a workbook: the one that is named, or the only one."""
    openpyxl = _import_openpyxl()
    raw = source if isinstance(source, bytes) else source.read_bytes()
    if raw.startswith(OLD):
        raise TableError(
            "The file is an old Excel workbook, or one with a password. Save it as .xlsx without "
            "a password first."
        )
    book = _open(openpyxl, raw, MOST_UNPACKED)
    return _read_sheet(_choose_sheet(book, form.sheet), form)


def read_released_excel(content: bytes, rows: int) -> ExcelTable:
    """Read a workbook of so many rows that somebody else released, with the parts we write."""
    openpyxl = _import_openpyxl()
    most = LARGEST_UNPACKED + UNPACKED_EACH * len(content)
    book = _open(openpyxl, content, most, PARTS, rows + 1)
    if book.sheetnames != [SHEET]:
        raise TableError("A released workbook has one sheet.")
    table = _read_sheet(book[SHEET], Form())
    for name in table.names:
        table.cells(name)  # a formula or an error is no released value
    return table


def _open(
    openpyxl: Any, raw: bytes, most: int, parts: set[str] | None = None, rows: int = 0
) -> Any:
    """Open a workbook after its parts were measured."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as packed:
            names = packed.namelist()
            if sum(part.file_size for part in packed.infolist()) > most:
                raise TableError("The workbook unpacks to far more than a table should hold.")
            if parts is not None and not (set(names) <= parts and len(set(names)) == len(names)):
                raise TableError("The released workbook has parts that a release never has.")
            if parts is not None and any(b"<!" in packed.read(name) for name in names):
                raise TableError("The released workbook declares something of its own.")
            if parts is not None and packed.read(DATA).count(b"<row") != rows:
                raise TableError("The released workbook has other than the stated rows.")
            if parts is not None and packed.read(CORE) != NO_DATES.encode():
                raise TableError("The released workbook says more of itself than a release does.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and extensions, which are left behind
            return openpyxl.load_workbook(io.BytesIO(raw))
    except TableError:
        raise
    except Exception as problem:  # openpyxl raises whatever a broken part leads to
        raise TableError(
            "The file cannot be read as an Excel workbook: it is damaged or cut short."
        ) from problem


def _choose_sheet(book: Any, wanted: str | None) -> Any:
    known = ", ".join(
        repr(sheet.title) + ("" if sheet.sheet_state == "visible" else " (hidden)")
        for sheet in book.worksheets
    )
    if wanted is None:
        if len(book.worksheets) == 1:
            return book.worksheets[0]
        raise TableError(f"The workbook has several sheets: {known}. Name one with --sheet.")
    for sheet in book.worksheets:
        if sheet.title == wanted:
            return sheet
    raise TableError(f"There is no sheet {wanted!r}. The sheets are: {known}.")


def _read_sheet(sheet: Any, form: Form) -> ExcelTable:
    """Read a sheet as a table: its first row that holds anything is the header."""
    rows = [[_read_cell(cell) for cell in row] for row in sheet.iter_rows()]
    first = form.skip_rows
    while first < len(rows) and all(cell is None for cell in rows[first]):
        first += 1
    if first >= len(rows):
        raise TableError("The table is empty: the sheet holds no header and no rows.")
    _require_shown(sheet, first)
    kept = [row for row in rows[first:] if not _is_comment(row, form.comment)]
    while kept and all(cell is None for cell in kept[-1]):
        kept.pop()
    kept = kept[: len(kept) - form.skip_footer] if form.skip_footer else kept
    filled = [at for at in range(len(kept[0])) if any(row[at] is not None for row in kept)]
    kept = [[row[at] for at in filled] for row in kept]
    _ask_about_titles(kept, first)
    names = [_name_column(cell, at) for at, cell in zip(filled, kept[0], strict=True)]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise TableError(f"The header names the column {repeated!r} more than once.")
    columns = list(zip(*kept[1:], strict=True)) or [()] * len(names)
    return build_excel(names, columns)


def _read_cell(cell: Any) -> Any:
    """Read the value of a cell; what is no plain value is marked."""
    if cell.data_type == "f":
        return FORMULA
    if cell.data_type == "e":
        return ERROR
    value = cell.value
    if value is None or (isinstance(value, str) and not value):
        return None
    known = (bool, int, float, str, date, datetime, time, timedelta)
    return value if isinstance(value, known) else str(value)


def _require_shown(sheet: Any, first: int) -> None:
    """Refuse merged cells, and what is hidden in the part of the sheet that holds the table."""
    for merged in sheet.merged_cells.ranges:
        if merged.max_row > first:
            raise TableError(
                f"The cells {merged.coord} of the sheet are merged, so it is not plain what each "
                "of them holds. Take the merge apart and fill every cell; if it is a title, leave "
                "it out with --skip-rows."
            )
    rows = [at for at, row in sheet.row_dimensions.items() if row.hidden and at > first]
    columns = [name for name, column in sheet.column_dimensions.items() if column.hidden]
    if rows or columns:
        what = f"Row {rows[0]}" if rows else f"Column {columns[0]}"
        raise TableError(
            f"{what} of the sheet is hidden, and would be read all the same. Show everything "
            "that belongs to the table, and delete the rest."
        )


def _is_comment(row: Sequence[Any], mark: str | None) -> bool:
    start = next((cell for cell in row if cell is not None), None)
    return mark is not None and isinstance(start, str) and start.startswith(mark)


def _ask_about_titles(rows: Sequence[Sequence[Any]], first: int) -> None:
    """Ask about lines with one cell before the header and after the last row."""
    widths = [sum(cell is not None for cell in row) for row in rows]
    widest = max(widths)
    if widest < 2:
        return
    if widths[0] == 1:
        header = next(at for at, width in enumerate(widths) if width > 1)
        raise TableError(
            f"The sheet seems to begin with a title: row {first + header + 1} is the first with "
            f"more than one cell. If that is the header, say --skip-rows {first + header}."
        )
    notes = next(at for at, width in enumerate(reversed(widths)) if width > 1)
    if notes:
        raise TableError(
            f"The sheet seems to end with footnotes: the last {notes} rows have one cell or none. "
            f"Leave them out with --skip-footer {notes}."
        )


def _name_column(cell: Any, at: int) -> str:
    from openpyxl.utils import get_column_letter

    if cell is None or isinstance(cell, Unreadable):
        raise TableError(
            f"Column {get_column_letter(at + 1)} of the sheet has no name in the header row. Give "
            "it one; if the header is further down, say --skip-rows."
        )
    return str(cell)


def _require_writable(text: str) -> str:
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    if ILLEGAL_CHARACTERS_RE.search(text) or len(text) > 32_767:
        raise TableError("A label has a character, or a length, that no Excel cell can hold.")
    return text


def _write_again(content: bytes) -> bytes:
    """Pack a workbook again without the time it was made and the names of programs."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in sorted(old.namelist()):
            part = NO_DATES.encode() if name == CORE else old.read(name)
            new.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), part, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _import_openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError as missing:
        raise MissingExtraError("openpyxl", "excel") from missing
    return openpyxl
