"""Tables from a path, standard input, a database, or another library."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tallyveil.errors import TableError, UsageError
from tallyveil.tables.databases import is_database, read_database, require_file
from tallyveil.tables.labels import require_own_names
from tallyveil.tables.source import Source
from tallyveil.tables.table import Table
from tallyveil.tables.text import (
    ANY_SIZE,
    PACKINGS,
    Room,
    UnpackedError,
    open_text,
    read_start,
    split_packing,
)

TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".txt")
PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".arrow", ".feather", ".ipc")
EXCEL_ENDINGS = (".xlsx", ".xlsm")
STATISTICS_ENDINGS = (".dta", ".sav", ".zsav", ".xpt", ".sas7bdat")
ENDINGS = TEXT_ENDINGS + PARQUET_ENDINGS + ARROW_ENDINGS + EXCEL_ENDINGS + STATISTICS_ENDINGS
PACKED_ENDINGS = tuple(text + packing for text in TEXT_ENDINGS for packing in PACKINGS)
TAB_ENDINGS = (".tsv", ".tab")
STANDARD_INPUT = "-"
HINTS = {
    ".xls": "Save it as .xlsx or as CSV first.",
    ".xlsb": "Save it as .xlsx or as CSV first.",
    ".ods": "Save it as .xlsx or as CSV first.",
    ".numbers": "Export it as CSV first.",
    ".zip": "Unpack it first.",
    ".json": "Turn it into a table first, such as a CSV file.",
    ".pdf": "A table must come as CSV, Excel or Parquet.",
}
BEGINNINGS = (
    (b"PK\x03\x04", ".xlsx", "an Excel workbook"),
    (b"\xd0\xcf\x11\xe0", ".xlsx", "an old Excel workbook, or one with a password"),
    (b"PAR1", ".parquet", "a Parquet file"),
    (b"ARROW1", ".arrow", "an Arrow file"),
    (b"\x1f\x8b", ".csv.gz", "packed with gzip"),
    (b"\x28\xb5\x2f\xfd", ".csv.zst", "packed with Zstandard"),
)
"""How files begin that are not text, the ending they should have, and what they are."""

TEXT_ONLY = ("delimiter", "encoding", "comment", "skiprows", "skipfooter")
EXCEL_NOT = ("delimiter", "encoding")


def read_table(source: Any, options: Source | None = None) -> Table:
    """Read a table from a path or a database, or wrap one that is in memory without copying it.

    Takes a path ("-" for standard input), a database's address, an Arrow, pandas or Polars table,
    or an array of counts; `options` say how a file is written, or which query gives the table. Two
    columns or index levels of one name are refused: one could be published instead of the other.
    """
    options = options or Source()
    if is_database(source) != (options.sql is not None):
        raise UsageError(
            "A database's address and 'source.sql' go together: postgresql://USER@HOST/NAME or "
            "duckdb:FILE, and the query that gives the table."
        )
    if options.sql is not None:
        options.require_unused((*TEXT_ONLY, "sheet_name"), "a database")
        table = read_database(source, options.sql)
    elif isinstance(source, (str, Path)):
        require_file(source)
        table = _read_file(Path(source), options)
    else:
        from tallyveil.tables.frames import wrap

        options.require_unused((*TEXT_ONLY, "sheet_name"), "a table in memory")
        table = wrap(source)
    require_own_names(table.rows_in.schema.names)
    return table


def _read_file(path: Path, options: Source) -> Table:
    """Read a file by its ending; standard input by how it begins."""
    if str(path) == STANDARD_INPUT:
        raw = sys.stdin.buffer.read()
        ending, packing = split_packing(Path("stdin" + (_recognize(raw)[0] or ".csv")))
        return _read_kind(raw, ending, packing, options)
    if not path.exists():
        raise TableError(f"There is no file {str(path)!r}.")
    if not path.is_file():
        raise TableError(f"{str(path)!r} is not a plain file; a table is one file.")
    ending, packing = split_packing(path)
    if ending not in ENDINGS:
        listed = ", ".join((*ENDINGS, *(f".csv{end}" for end in PACKINGS)))
        hint = HINTS.get(ending, f"Known endings: {listed}.")
        raise TableError(f"{path.name!r} is not a kind of table that is read. {hint}")
    if packing and ending not in TEXT_ENDINGS:
        raise TableError(f"Only text files are read packed: unpack {path.name!r} first.")
    return _read_kind(path, ending, packing, options)


def _read_kind(source: Path | bytes, ending: str, packing: str, options: Source) -> Table:
    """Read a file, or the bytes of one, of a known kind."""
    start = read_start(source)
    right, words = _recognize(start)
    if ending in EXCEL_ENDINGS:
        from tallyveil.tables.excel import read_excel

        options.require_unused(EXCEL_NOT, "an Excel workbook")
        return read_excel(source, options)
    options.require_unused(("sheet_name",), "anything but an Excel workbook")
    if ending in PARQUET_ENDINGS + ARROW_ENDINGS:
        options.require_unused(TEXT_ONLY, "a Parquet or Arrow file")
        from tallyveil.tables.columnar import FeatherRows, ParquetRows

        try:
            if ending in PARQUET_ENDINGS:
                rows = ParquetRows.open(_require_path(source, "Parquet"))
                return Table(rows, "parquet", "parquet")
            return Table(FeatherRows.open(_require_path(source, "Arrow")), "arrow")
        except TableError as problem:
            if right or not start or b"\0" in start:
                raise
            raise TableError(f"{problem} It seems to be text: name it .csv.") from None
    if ending in STATISTICS_ENDINGS:
        from tallyveil.tables.statistics import read_statistics

        options.require_unused(TEXT_ONLY, "a file of a statistics program")
        return read_statistics(_require_path(source, ending), ending)
    if right and not packing:
        raise TableError(f"The file is {words}, not text: give it the ending {right}.")
    mark = options.delimiter or ("tab" if ending in TAB_ENDINGS else ",")
    mark = "\t" if mark == "tab" else mark
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    room = Room.of(size) if packing else ANY_SIZE
    try:
        text = open_text(source, options, mark, packing, room)
    except UnpackedError as problem:
        raise TableError(f"{problem} If that is right, unpack it first.") from None
    return Table(text, "tsv" if mark == "\t" else "csv", is_text=True, options=options)


def _recognize(start: bytes) -> tuple[str, str]:
    """Find the ending and the words for a file that is not text; nothing if it may be."""
    for beginning, ending, words in BEGINNINGS:
        if start.startswith(beginning):
            return ending, words
    return "", ""


def _require_path(source: Path | bytes, kind: str) -> Path:
    if isinstance(source, bytes):
        raise TableError(f"{kind} is not read from standard input: name the file.")
    return source
