"""Copies of a published table for other programs: Excel, Stata, SPSS, Arrow, other CSV.

A copy is no release: only the folder that it was made from can be checked.
"""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tallyveil.errors import ArgumentError, MissingExtraError, TableError
from tallyveil.tables.table import Table

ENDINGS = (".xlsx", ".dta", ".sav", ".tsv", ".feather", ".csv")
"""What a copy can be, by the ending of its file."""

MOST_ROWS, MOST_COLUMNS, LONGEST_TEXT = 2**20 - 1, 2**14, 32_767
"""What a sheet of Excel holds below its header."""

LARGEST_EXACT = 2**53
"""Excel and SPSS hold whole numbers as doubles."""

About = Mapping[str, Sequence[Sequence[Any]]]
"""Further sheets of a workbook by name: rows of cells."""


def write_copy(table: Table, target: Path, about: About, delimiter: str = ",") -> None:
    """Write a table to a file that does not exist yet, complete or not at all."""
    ending = target.suffix.lower()
    if ending not in ENDINGS:
        raise ArgumentError("file", f"end in one of {', '.join(ENDINGS)}", target.name)
    if delimiter != "," and ending != ".csv":
        raise ArgumentError("delimiter", "be left out, unless the file ends in .csv")
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ArgumentError("delimiter", "be one character, such as ;", delimiter)
    fill = {
        ".xlsx": lambda path: _write_excel(table, path, about),
        ".dta": lambda path: _write_statistics(table, path, "write_dta"),
        ".sav": lambda path: _write_statistics(table, path, "write_sav"),
        ".feather": lambda path: _write_feather(table, path),
        ".tsv": lambda path: _write_text(table, path, "\t"),
        ".csv": lambda path: _write_text(table, path, delimiter),
    }[ending]
    _write_new(target, fill)


def _write_new(target: Path, fill: Callable[[Path], None]) -> None:
    """Fill a hidden file and give it its name, unless there is a file of that name."""
    if os.path.lexists(target):
        raise FileExistsError(17, "The file already exists", str(target))
    with tempfile.TemporaryDirectory(prefix=".tallyveil-copy-", dir=target.parent) as folder:
        hidden = Path(folder, f"copy{target.suffix.lower()}")
        fill(hidden)
        os.link(hidden, target)  # fails if somebody else was quicker


def _write_text(table: Table, path: Path, delimiter: str) -> None:
    with path.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(table.written_names)
        for batch in table.batches():
            columns = [batch.labels(name) for name in table.written_names]
            writer.writerows(zip(*columns, strict=True))


def _write_feather(table: Table, path: Path) -> None:
    from pyarrow import feather

    feather.write_feather(table.native(), path, compression="lz4")


def _write_statistics(table: Table, path: Path, writer: str) -> None:
    try:
        import pyreadstat
    except ImportError as missing:
        raise MissingExtraError("pyreadstat", "statistics") from missing
    frame = table.native().to_pandas()
    try:
        getattr(pyreadstat, writer)(frame, path)
    except (pyreadstat.PyreadstatError, pyreadstat.ReadstatError, OverflowError, ValueError):
        raise TableError(
            f"The format {path.suffix} cannot hold this table: names of columns must be short, of "
            "letters and digits, and numbers finite and not too large. Name a .csv or .xlsx file."
        ) from None


def _write_excel(table: Table, path: Path, about: About) -> None:
    try:
        import xlsxwriter
    except ImportError as missing:
        raise MissingExtraError("XlsxWriter", "excel") from missing
    columns = table.native()
    if columns.num_rows > MOST_ROWS or columns.num_columns > MOST_COLUMNS:
        raise TableError(
            f"An Excel sheet holds {MOST_ROWS:,} rows and {MOST_COLUMNS:,} columns at most. "
            "Name a .csv file."
        )
    with xlsxwriter.Workbook(path, {"in_memory": True, "constant_memory": False}) as book:
        sheet = book.add_worksheet("data")
        for number, name in enumerate(columns.column_names):
            for row, cell in enumerate([name, *columns.column(name).to_pylist()]):
                _write_cell(sheet, row, number, cell)
        for title, rows in about.items():
            sheet = book.add_worksheet(title)
            for row, cells in enumerate(rows):
                for number, cell in enumerate(cells):
                    _write_cell(sheet, row, number, cell)


def _write_cell(sheet: Any, row: int, column: int, cell: Any) -> None:
    """Write a cell; text that begins with = stays text."""
    if cell is None:
        return
    is_number = isinstance(cell, (int, float)) and not isinstance(cell, bool)
    if is_number and abs(cell) <= LARGEST_EXACT:
        sheet.write_number(row, column, cell)
    elif isinstance(cell, bool):
        sheet.write_boolean(row, column, cell)
    elif len(str(cell)) > LONGEST_TEXT:
        raise TableError("A label is longer than an Excel cell may be. Name a .csv file.")
    else:
        sheet.write_string(row, column, str(cell))
