"""Excel workbooks: the home of openpyxl.

A sheet is read cell by cell, and what is not plainly a cell of a table is asked about: formulas,
errors, merged cells, hidden rows, titles, footnotes. What leaves is a new workbook with one sheet
of values; no style, author, comment, hidden sheet or name of the one that came in goes along.
"""

from __future__ import annotations

import io
import re
import zipfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from tallyveil.errors import TableError
from tallyveil.tables.bare import require_bare_zip
from tallyveil.tables.cells import CellsTable, Unreadable
from tallyveil.tables.excel_book import (
    Book,
    Sheet,
    bound_tags,
    count_word,
    guard,
    has_too_much,
    import_openpyxl,
)
from tallyveil.tables.form import Form
from tallyveil.untrusted import read_file

__all__ = ["ExcelTable", "build_excel", "read_excel", "read_released_excel"]

SHEET = "data"
"""The name of the one sheet that is written."""

MOST_ROWS, MOST_COLUMNS = 2**20, 2**14
"""What a sheet can hold, its header included."""

EMPTY_LEAST, EMPTY_EACH = 4_000_000, 4
"""Cells of a sheet that may be empty, and how many more for each that is filled."""

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
OLD = b"\xd0\xcf\x11\xe0"
UNFIT, LONGEST = re.compile("[\ud800-\udfff\ufffe\uffff]"), 32_767
"""Characters that XML does not have, beside those that openpyxl knows, and the longest text."""

LARGEST_WHOLE = 10**15
"""Below this, workbooks hold whole numbers as their digits."""


@dataclass(frozen=True, eq=False)
class ExcelTable(CellsTable):
    """One sheet of an Excel workbook."""

    kind: str = "xlsx"
    extension: str = "xlsx"

    def to_bytes(self) -> bytes:
        """Write a workbook with one sheet of values, the same bytes for the same table."""
        openpyxl = import_openpyxl()
        from openpyxl.cell import WriteOnlyCell

        if self.rows >= MOST_ROWS or len(self.names) > MOST_COLUMNS:
            raise TableError(
                f"An Excel sheet holds {MOST_ROWS - 1:,} rows and {MOST_COLUMNS:,} columns at the "
                "most: say another --format."
            )

        for name, column in zip(self.names, self.columns, strict=True):
            _require_writable(name, {name, *(cell for cell in column if isinstance(cell, str))})
        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet(SHEET)

        def make(value: Any) -> Any:
            if not isinstance(value, str):
                return value
            cell = WriteOnlyCell(sheet, value)
            cell.data_type = "s"  # text that begins with = stays text
            return cell

        sheet.append([make(name) for name in self.names])
        for row in zip(*self.columns, strict=True):
            sheet.append([make(value) for value in row])
        buffer = io.BytesIO()
        book.save(buffer)
        return _write_again(buffer.getvalue())


def build_excel(names: Sequence[str], columns: Sequence[Sequence[Any]]) -> ExcelTable:
    """Build a sheet of columns; whole numbers have no point in it."""
    return ExcelTable(tuple(names), tuple(tuple(map(_plain, column)) for column in columns))


def _plain(cell: Any) -> Any:
    whole = isinstance(cell, float) and cell.is_integer() and abs(cell) < LARGEST_WHOLE
    return int(cell) if whole else cell


def read_excel(source: Path | bytes, form: Form, *, released: bool = False) -> ExcelTable:
    """Read one sheet of a workbook, which may be a `released` one: that named, or the only one."""
    raw = source if isinstance(source, bytes) else read_file(source)
    if raw.startswith(OLD):
        raise TableError(
            "The file is an old Excel workbook, or one with a password. Save it as .xlsx without "
            "a password first."
        )
    with guard(), zipfile.ZipFile(io.BytesIO(raw)) as parts:
        if has_too_much(parts, bound_tags(len(raw))):
            raise TableError(
                "The workbook unpacks to far more than a table should hold. If that is right, save "
                "the sheet as CSV first."
            )
        book = Book(raw)
        return _read_sheet(book.read_sheet(book.choose_sheet(form.sheet)), form, released=released)


def read_released_excel(content: bytes, rows: int, *, large: bool = False) -> ExcelTable:
    """Read a workbook of so many rows that somebody else released, with the parts we write."""
    most = bound_tags(len(content), released=True)
    with guard(), zipfile.ZipFile(io.BytesIO(content)) as parts:
        names = parts.namelist()
        if not (set(names) <= PARTS and len(set(names)) == len(names)):
            raise TableError("The released workbook has parts that a release never has.")
        if not large and has_too_much(parts, most):
            raise TableError("The data unpack to far more than a file of that size should hold.")
        if any(b"<!" in parts.read(name) for name in names if name != DATA):
            raise TableError("The released workbook declares something of its own.")
        if count_word(parts, DATA, b"<row") != rows + 1 or count_word(parts, DATA, b"<!"):
            raise TableError("The released workbook has other than the stated rows.")
        if parts.read(CORE) != NO_DATES.encode():
            raise TableError("The released workbook says more of itself than a release does.")
        require_bare_zip(parts, len(content))
        book = Book(content)
        if list(book.sheets) != [SHEET]:
            raise TableError("A released workbook has one sheet.")
        table = _read_sheet(book.read_sheet(SHEET), Form(), released=True)
    for name in table.names:
        table.cells(name)  # a formula or an error is no released value
    return table


def _read_sheet(sheet: Sheet, form: Form, *, released: bool = False) -> ExcelTable:
    """Read a sheet as a table: its first row that holds anything is the header.

    Nothing is asked about one that was `released`: it has a header and rows, and nothing else.
    """
    found = [row for row in sheet.rows if row[0] > form.skip_rows]
    if not found:
        raise TableError("The table is empty: the sheet holds no header and no rows.")
    first = found[0][0] - 1
    _require_shown(sheet, first)
    comments = {at for at, _, values in found if _is_comment(values, form.comment)}
    found = [row for row in found if row[0] not in comments]
    last = found[-1][0] if found else 0
    numbers = [at for at in range(first + 1, last + 1) if at not in comments]
    numbers = numbers[: len(numbers) - form.skip_footer] if form.skip_footer else numbers
    found = found[: bisect_right(found, numbers[-1], key=itemgetter(0))] if numbers else []
    if not found:
        raise TableError("The table is empty: every row is left out by skipping and comments.")
    filled = tuple(sorted(set().union(*{columns for _, columns, _ in found})))
    cells = sum(len(columns) for _, columns, _ in found)
    if len(numbers) * len(filled) > EMPTY_LEAST + EMPTY_EACH * cells:
        raise TableError(
            "Almost all cells between the first and the last of the sheet are empty. Delete what "
            "stands far from the table."
        )
    by_number = {at: (columns, values) for at, columns, values in found}
    kept = [_fill(*by_number.get(at, ((), ())), filled) for at in numbers]
    if not released:
        _ask_about_titles(kept, first)
    names = [_name_column(cell, at - 1) for at, cell in zip(filled, kept[0], strict=True)]
    repeated = next((name for name, times in Counter(names).items() if times > 1), None)
    if repeated is not None:
        raise TableError(f"The header names the column {repeated!r} more than once.")
    columns = list(zip(*kept[1:], strict=True)) or [()] * len(names)
    return build_excel(names, columns)


def _fill(
    columns: tuple[int, ...], values: tuple[Any, ...], wanted: tuple[int, ...]
) -> tuple[Any, ...]:
    """Give the values of a row in the wanted columns, None where it has none."""
    if columns == wanted:
        return values
    known = dict(zip(columns, values, strict=True))
    return tuple(map(known.get, wanted))


def _require_shown(sheet: Sheet, first: int) -> None:
    """Refuse merged cells, and what is hidden in the part of the sheet that holds the table."""
    from openpyxl.utils import range_boundaries

    for merged in sheet.merged:
        if range_boundaries(merged)[3] > first:
            raise TableError(
                f"The cells {merged} of the sheet are merged, so it is not plain what each "
                "of them holds. Take the merge apart and fill every cell; if it is a title, leave "
                "it out with --skip-rows."
            )
    rows = [at for at in sheet.hidden_rows if at > first]
    columns = sheet.hidden_columns
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


def _require_writable(name: str, texts: Iterable[str]) -> None:
    """Refuse a column with a name or label that XML, or Excel, has no room for."""
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    for text in texts:
        odd = ILLEGAL_CHARACTERS_RE.search(text) or UNFIT.search(text)
        if odd or len(text) > LONGEST:
            raise TableError(
                f"Column {name!r} has a name or label with a character, or a length, that no Excel "
                "cell can hold. Replace it first, or say another --format."
            )


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
