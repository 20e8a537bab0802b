"""Excel workbooks, read by python-calamine.

The reader returns formulas without a value and errors as empty cells, and does not report hidden
rows. So the XML of a sheet is scanned first: formulas, errors, merged cells, hidden rows, titles
and footnotes are refused or asked about, and a file that unpacks to far more than a table is
refused before it is parsed.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from functools import partial
from pathlib import Path
from typing import Any
from xml.parsers import expat

from tallyveil.errors import MissingExtraError, TableError, replacing
from tallyveil.tables.columnar import describe_damage
from tallyveil.tables.labels import require_own_names
from tallyveil.tables.source import Source
from tallyveil.tables.table import Held, Table
from tallyveil.untrusted import read_file

MOST_ROWS, MOST_COLUMNS = 2**20, 2**14
"""What a sheet can hold."""

EMPTY_LEAST, EMPTY_EACH = 4_000_000, 4
"""Cells of a sheet that may be empty, and how many more for each that is filled."""

TAGS_LEAST, TAGS_EACH = 4_000_000, 2
"""Tags a workbook may have, four for a cell; how many more for each byte."""

TAGS_OUTSIDE = 400_000
"""Tags of all parts without cells: styles, names of ranges."""

PIECE = 1 << 20
SHEETS, STRINGS = "xl/worksheets/", "sharedStrings.xml"
OLD = b"\xd0\xcf\x11\xe0"
FORMULA = "a formula. Save the sheet with values instead of formulas first."
ERROR = "an Excel error. Correct it, or leave the column out of 'keep'."
REFERENCE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")


def read_excel(source: Path | bytes, options: Source) -> Table:
    """Read a sheet of a workbook, the named or only one; its cells are read as text."""
    raw = source if isinstance(source, bytes) else read_file(source)
    if raw.startswith(OLD):
        raise TableError(
            "The file is an old Excel workbook, or one with a password. Save it as .xlsx without "
            "a password first."
        )
    try:
        import python_calamine as calamine
    except ImportError as missing:
        raise MissingExtraError("python-calamine", "excel") from missing
    damaged = partial(describe_damage, "an Excel workbook")  # a reader raises anything
    with replacing(damaged), zipfile.ZipFile(io.BytesIO(raw)) as parts:
        if _has_too_much(parts, TAGS_LEAST + TAGS_EACH * len(raw)):
            raise TableError(
                "The workbook unpacks to far more than a table should hold. If that is right, save "
                "the sheet as CSV first."
            )
        sheets = _list_sheets(parts)
        name = _choose_sheet(sheets, options.sheet_name)
        scan = _Scan()
        _parse(parts, sheets[name][1], scan.read_tag)
        if not scan.filled:
            raise TableError("The table is empty: the sheet holds no header and no rows.")
        if scan.last_row * scan.last_column > EMPTY_LEAST + EMPTY_EACH * scan.filled:
            raise TableError(
                "Almost all cells between the first and the last of the sheet are empty. Delete "
                "what is far from the table."
            )
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(raw))
        rows = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
        return _build(rows, scan, options)


def _build(rows: list[list[Any]], scan: _Scan, options: Source) -> Table:
    """Read the cells of a sheet as a table: the first row that holds anything is the header."""
    import pyarrow as pa

    lines = [(number, list(map(_write, cells))) for number, cells in enumerate(rows, start=1)]
    for (number, column), what in scan.odd.items():
        if number <= len(lines):
            lines[number - 1][1][column - 1] = what
    lines = lines[options.skiprows :]
    while lines and not any(lines[0][1]):
        lines.pop(0)
    if not lines:
        raise TableError("The table is empty: the sheet holds no header and no rows.")
    first = lines[0][0] - 1
    scan.require_shown(first)
    mark = options.comment
    if mark is not None:
        lines = [line for line in lines if not next(filter(None, line[1]), "").startswith(mark)]
    while lines and not any(lines[-1][1]):
        lines.pop()
    lines = lines[: len(lines) - options.skipfooter] if options.skipfooter else lines
    if not lines:
        raise TableError("The table is empty: every row is left out by skipping and comments.")
    columns = [k for k in range(len(lines[0][1])) if any(texts[k] for _, texts in lines)]
    _ask_about_titles([[texts[k] for k in columns] for _, texts in lines], first)
    (header, names_read), body = lines[0], lines[1:]
    names = []
    for k in columns:
        if not names_read[k] or (header, k + 1) in scan.odd:
            raise TableError(
                f"Column {_letter(k + 1)} of the sheet has no name in the header row. Give it one; "
                "if the header is further down, use 'source.skiprows'."
            )
        names.append(names_read[k])
    require_own_names(names)
    name_of = {k + 1: name for k, name in zip(columns, names, strict=True)}
    row_of = {number: row for row, (number, _) in enumerate(body, start=1)}
    unreadable: dict[str, str] = {}
    for (number, column), what in scan.odd.items():
        if number in row_of and column in name_of:
            name = name_of[column]
            unreadable.setdefault(name, f"Row {row_of[number]} of column {name!r} holds {what}")
    arrays = [pa.array([texts[k] for _, texts in body], pa.string()) for k in columns]
    rows_in = Held(pa.Table.from_arrays(arrays, names=names))
    return Table(rows_in, "xlsx", is_text=True, unreadable=unreadable, options=options)


def _write(cell: Any) -> str:
    """Write a cell as text: whole numbers without a point, days without a time."""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time(0) else cell.isoformat(sep=" ")
    return cell.isoformat() if isinstance(cell, (date, time)) else str(cell)


def _ask_about_titles(rows: Sequence[Sequence[str]], first: int) -> None:
    """Ask about lines with one cell before the header and after the last row."""
    widths = [sum(map(bool, row)) for row in rows]
    if max(widths) < 2:
        return
    if widths[0] == 1:
        header = next(row for row, width in enumerate(widths) if width > 1)
        raise TableError(
            f"The sheet seems to begin with a title: row {first + header + 1} is the first with "
            f"more than one cell. If that is the header, use source.skiprows={first + header}."
        )
    notes = next(row for row, width in enumerate(reversed(widths)) if width > 1)
    if notes:
        raise TableError(
            "The sheet seems to end with footnotes: rows with one cell or none. Leave them out "
            f"with source.skipfooter={notes}."
        )


def _has_too_much(parts: zipfile.ZipFile, most: int) -> bool:
    """Return whether a workbook has too many tags, before they are parsed."""
    tags = outside = 0
    for name in parts.namelist():
        for piece in _read_pieces(parts, name):
            tags += piece.count(b"<") + len(piece) // 100
            if not (name.startswith(SHEETS) or name.endswith(STRINGS)):
                outside += piece.count(b"<")
            if tags > most or outside > TAGS_OUTSIDE:
                return True
    return False


def _read_pieces(parts: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    with parts.open(name) as stream:
        while piece := stream.read(PIECE):
            yield piece


def _parse(parts: zipfile.ZipFile, name: str, start: Any) -> None:
    """Read the tags of a part; one with a document type is damaged."""
    parser = expat.ParserCreate(namespace_separator=" ")

    def refuse(*_: Any) -> None:
        raise ValueError("a part declares a document type")

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = lambda tag, facts: start(tag.rpartition(" ")[2], facts)
    for piece in _read_pieces(parts, name):
        parser.Parse(piece)
    parser.Parse(b"", True)


def _list_sheets(parts: zipfile.ZipFile) -> dict[str, tuple[str, str]]:
    """List the sheets of a workbook by name: how each is shown, and which part it is."""
    targets: dict[str, str] = {}
    listed: list[tuple[str, str, str]] = []

    def read_link(tag: str, facts: dict[str, str]) -> None:
        if tag == "Relationship" and facts["Type"].endswith("/worksheet"):
            target = facts["Target"]
            targets[facts["Id"]] = target.lstrip("/") if target[0] == "/" else f"xl/{target}"

    def read_sheet(tag: str, facts: dict[str, str]) -> None:
        if tag == "sheet":
            link = next(v for k, v in facts.items() if k.endswith(" id"))
            listed.append((facts["name"], facts.get("state", "visible"), link))

    _parse(parts, "xl/_rels/workbook.xml.rels", read_link)
    _parse(parts, "xl/workbook.xml", read_sheet)
    present = set(parts.namelist())
    return {
        name: (state, targets[link]) for name, state, link in listed if targets.get(link) in present
    }


def _choose_sheet(sheets: dict[str, tuple[str, str]], name: str | None) -> str:
    """Return the name of a sheet, checked, or that of the only one."""
    listed = ", ".join(
        repr(sheet) + ("" if state == "visible" else " (hidden)")
        for sheet, (state, _) in sheets.items()
    )
    if name is None and len(sheets) == 1:
        return next(iter(sheets))
    if name is None:
        raise TableError(
            f"The workbook has several sheets: {listed}. Name one with 'source.sheet_name'."
        )
    if name not in sheets:
        raise TableError(f"There is no sheet {name!r}. The sheets are: {listed}.")
    return name


@dataclass
class _Scan:
    """The cells of a sheet from its XML: where they are, and which are no plain values."""

    filled: int = 0
    last_row: int = 0
    last_column: int = 0
    odd: dict[tuple[int, int], str] = field(default_factory=dict)
    merged: list[str] = field(default_factory=list)
    hidden_rows: list[int] = field(default_factory=list)
    hidden_columns: list[int] = field(default_factory=list)
    row: int = 0
    column: int = 0

    def read_tag(self, tag: str, facts: dict[str, str]) -> None:
        """Read a tag; rows and cells must be in order, inside a sheet's bounds."""
        if tag == "c":
            self._read_cell(facts)
        elif tag == "row":
            number = int(facts.get("r", self.row + 1))
            _require_order(self.row < number <= MOST_ROWS)
            self.row, self.column = number, 0
            if facts.get("hidden") in ("1", "true"):
                self.hidden_rows.append(number)
        elif tag == "f":
            self.odd.setdefault((self.row, self.column), FORMULA)
            self.last_row = self.row
        elif tag in ("v", "is"):
            self.filled += 1
            self.last_row = self.row
            self.last_column = max(self.last_column, self.column)
        elif tag == "mergeCell":
            self.merged.append(facts["ref"])
        elif tag == "col" and facts.get("hidden") in ("1", "true"):
            self.hidden_columns.append(int(facts["min"]))

    def _read_cell(self, facts: dict[str, str]) -> None:
        column = self.column + 1
        if "r" in facts:
            letters, row = _split_reference(facts["r"])
            _require_order(row == self.row)
            column = _number(letters)
        _require_order(self.column < column <= MOST_COLUMNS)
        self.column = column
        if facts.get("t") == "e":
            self.odd[self.row, column] = ERROR

    def require_shown(self, first: int) -> None:
        """Refuse merged cells, and what is hidden in the part of the sheet that holds the table."""
        for merged in self.merged:
            row = _split_reference(merged.rpartition(":")[2].replace("$", ""))[1]
            if not 0 < row <= first:
                raise TableError(
                    f"The cells {merged} of the sheet are merged, so the value of each is unclear. "
                    "Unmerge them and fill every cell; if they are a title, leave it out with "
                    "'source.skiprows'."
                )
        rows = [number for number in self.hidden_rows if number > first]
        if rows or self.hidden_columns:
            what = f"Row {rows[0]}" if rows else f"Column {_letter(self.hidden_columns[0])}"
            raise TableError(
                f"{what} of the sheet is hidden, but would be read. Show all of the table, and "
                "delete the rest."
            )


def _require_order(holds: bool) -> None:
    """Refuse a sheet whose rows or cells are out of order."""
    if not holds:
        raise TableError("The rows or cells of the sheet are not in order.")


def _split_reference(text: str) -> tuple[str, int]:
    """Split a reference to a cell into its column and its row; row 0 is none."""
    match = REFERENCE.fullmatch(text)
    return (match[1], int(match[2])) if match else ("", 0)


def _number(letters: str) -> int:
    """Return the number of a column, from 1."""
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number


def _letter(number: int) -> str:
    """Return the letters of a column.

    >>> _letter(1), _letter(28), _number("AB")
    ('A', 'AB', 28)
    """
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
