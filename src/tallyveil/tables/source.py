"""Where tables come in: a path, a table of some library, or an array of counts."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from tallyveil.errors import TableError, UsageError
from tallyveil.tables.array import wrap_array
from tallyveil.tables.bare import require_bare_packing
from tallyveil.tables.base import Table
from tallyveil.tables.databases import is_database, read_database, require_file
from tallyveil.tables.delimited import DelimitedTable, read_delimited
from tallyveil.tables.form import Form
from tallyveil.tables.packed import (
    ANY_SIZE,
    PACKINGS,
    PackedTable,
    Room,
    UnpackedError,
    open_unpacked,
    split_packing,
    unpack,
)
from tallyveil.tables.plain import open_plain
from tallyveil.tables.text import (
    START,
    ask_about_lines,
    find_encoding,
    has_title,
    normalize_text,
    read_start,
)
from tallyveil.untrusted import SMALL, read_file, remove_invisible

__all__ = [
    "read_published",
    "read_released",
    "read_table",
    "require_likely_rows",
    "require_own_names",
]

Given = ParamSpec("Given")
Found = TypeVar("Found")

TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".txt")
PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".arrow", ".feather", ".ipc")
EXCEL_ENDINGS = (".xlsx", ".xlsm")
STATISTICS_ENDINGS = (".dta", ".sav", ".zsav", ".xpt", ".sas7bdat")
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

ONE_FORM = "The data are not written in the one form that a release has."

LONG_RELEASE = 2 << 20
"""Files of fewer bytes are read as a whole."""

ROWS_READ, BYTES_READ = 2_500_000, 4
"""Rows that a small file of somebody else may have, and the bytes each must take in a larger; one
that is not small has a row more for every byte beyond."""

TEXT_ONLY = ("delimiter", "encoding", "comment", "skip_rows", "skip_footer")
EXCEL_NOT = ("delimiter", "encoding")


def read_table(source: Any, form: Form | None = None) -> Table:
    """Read a table from a path or a database, or wrap one that is in memory without copying it.

    Takes a path ("-" for standard input), a database's address, an Arrow, pandas or Polars table,
    or an array of counts; `form` says how a file is written, or which query gives the table. Two
    columns or index levels of one name are refused: one could be published as it is in place of
    the other.
    """
    form = form or Form()
    if is_database(source) != (form.query is not None):
        raise UsageError(
            "A database's address and 'query' go together: postgresql://USER@HOST/NAME or "
            "duckdb:FILE, and the SQL query that gives the table."
        )
    table: Table
    if form.query is not None:
        form.require_unused((*TEXT_ONLY, "sheet"), "a database")
        table = read_database(source, form.query)
    elif isinstance(source, (str, Path)):
        require_file(source)
        table = _read_file(Path(source), form)
    else:
        form.require_unused((*TEXT_ONLY, "sheet"), "a table in memory")
        table = _wrap(source)
    require_own_names((*table.names, *table.index_names))
    return table


def require_own_names(names: Sequence[str]) -> None:
    """Raise a `TableError` if two columns have one name, or names that nobody can tell apart."""
    seen: dict[str, str] = {}
    for name in names:
        look = " ".join(unicodedata.normalize("NFC", remove_invisible(name)).split())
        if look in seen:
            how = "" if name == seen[look] else ", apart from characters that nobody sees"
            raise TableError(
                f"Two columns are called {look!r}{how}. Every column needs its own name."
            )
        seen[look] = name


def read_released(
    path: Path,
    delimiter: str,
    encoding: str,
    *,
    rows: int,
    counts: Sequence[str],
    labels: Sequence[str],
    large: bool = False,
) -> Table:
    """Read a table of so many rows that somebody else released, or only the columns named.

    Long text is read in batches; so are long Parquet and Arrow, unless labels are asked for.

    Nothing the file says of itself makes this cost much more than its size suggests, unless it
    may be `large`.
    """
    ending, packing = split_packing(path)
    opened = _open_released(path, (delimiter, encoding), counts, large)
    if packing and ending in TEXT_ENDINGS:
        require_bare_packing(path, packing)
    if opened is not None and (ending in TEXT_ENDINGS or not labels):
        return opened
    content = read_file(path)
    if ending in PARQUET_ENDINGS + ARROW_ENDINGS and not packing:
        from tallyveil.tables.arrow import read_released_arrow

        kind = "parquet" if ending in PARQUET_ENDINGS else "arrow"
        return read_released_arrow(content, kind, counts, labels)
    if ending == ".xlsx" and not packing:
        from tallyveil.tables.excel import read_released_excel

        return read_released_excel(content, rows, large=large)
    if ending in STATISTICS_ENDINGS and not packing:
        from tallyveil.tables.statistics import read_released_statistics

        return read_released_statistics(path, ending, rows, large=large)
    if ending not in TEXT_ENDINGS:
        raise TableError(f"{path.name!r} is not a kind of table that is released.")
    if packing:
        content = unpack(content, packing, ANY_SIZE if large else Room.for_whole(len(content)))
    read = _parse(content, delimiter, Form(), encoding, rows)
    if read.to_bytes() != content:
        raise TableError(ONE_FORM)
    return _wrap_text(read, packing)


def _open_released(
    path: Path, written: tuple[str, str], counts: Sequence[str], large: bool
) -> Table | None:
    """Open a long file to be read in batches; None where it is read as a whole."""
    if not path.is_file():
        return None
    size = path.stat().st_size
    ending, packing = split_packing(path)
    if ending in TEXT_ENDINGS and (packing or size >= LONG_RELEASE):
        room = ANY_SIZE if large else Room.for_blocks(size)
        opened = open_plain(path, *written, packing, room)
        if opened is not None and not opened.ends_with_a_row:
            raise TableError(ONE_FORM)
        return opened
    if ending not in PARQUET_ENDINGS + ARROW_ENDINGS or packing or size < LONG_RELEASE:
        return None
    from tallyveil.tables.arrow_released import open_released_feather, open_released_parquet

    is_parquet = ending in PARQUET_ENDINGS
    return (open_released_parquet if is_parquet else open_released_feather)(path, counts)


def read_published(path: Path, delimiter: str | None, encoding: str) -> Table:
    """Read the data file of a release; delimiter and encoding are for text only."""
    ending = split_packing(path)[0]
    if ending == ".xlsx" and path.is_file():
        from tallyveil.tables.excel import read_excel

        return read_excel(path, Form(), released=True)
    return read_table(path, Form(delimiter, encoding) if ending in TEXT_ENDINGS else None)


def require_likely_rows(path: Path) -> None:
    """Refuse somebody else's table that has far more rows than a file of its size should.

    Rows of text take a few bytes each; this is for what can hold very many in hardly any.
    """
    ending, packing = split_packing(path)
    if not path.is_file() or (ending in TEXT_ENDINGS and not packing):
        return
    size = path.stat().st_size
    most = max(ROWS_READ, size // BYTES_READ) + max(0, size - SMALL)
    if packing:
        with open_unpacked(path, packing, Room(64 * most, most)) as stream:
            while stream.read(LONG_RELEASE):
                pass
    elif ending in PARQUET_ENDINGS + ARROW_ENDINGS:
        from tallyveil.tables.arrow_file import count_rows

        if count_rows(path, "parquet" if ending in PARQUET_ENDINGS else "arrow") > most:
            raise UnpackedError


def _wrap(source: Any) -> Table:
    """Wrap a table in memory by the library that its type belongs to."""
    library = type(source).__module__.partition(".")[0]
    shape = type(source).__name__
    if library == "pandas" and shape == "DataFrame":
        from tallyveil.tables.pandas import PandasTable

        return PandasTable(source)
    if library == "polars" and shape in ("DataFrame", "LazyFrame"):
        from tallyveil.tables.polars import PolarsTable

        return PolarsTable(source if shape == "DataFrame" else source.collect())
    if library == "pyarrow" and shape in ("Table", "RecordBatch"):
        from tallyveil.tables.arrow import wrap_arrow

        return wrap_arrow(source)
    return wrap_array(source)


def _read_file(path: Path, form: Form) -> Table:
    """Read a file by its ending; standard input by how it begins."""
    if str(path) == STANDARD_INPUT:
        raw = sys.stdin.buffer.read()
        ending, packing = split_packing(Path("stdin" + (_recognize(raw)[0] or ".csv")))
        return _read_kind(raw, ending, packing, form)
    if not path.exists():
        raise TableError(f"There is no file {str(path)!r}.")
    if not path.is_file():
        raise TableError(f"{str(path)!r} is not a plain file; a table is one file.")
    ending, packing = split_packing(path)
    known = (
        *TEXT_ENDINGS,
        *PARQUET_ENDINGS,
        *ARROW_ENDINGS,
        *EXCEL_ENDINGS,
        *STATISTICS_ENDINGS,
    )
    if ending not in known:
        listed = ", ".join((*known, *(f".csv{end}" for end in PACKINGS)))
        hint = HINTS.get(ending, f"Known endings: {listed}.")
        raise TableError(f"{path.name!r} is not a kind of table that is read. {hint}")
    if packing and ending not in TEXT_ENDINGS:
        raise TableError(f"Only text files are read packed: unpack {path.name!r} first.")
    return _read_kind(path, ending, packing, form)


def _read_kind(source: Path | bytes, ending: str, packing: str, form: Form) -> Table:
    """Read a file, or the bytes of one, of a known kind."""
    found, words = _recognize(read_start(source))
    if ending in EXCEL_ENDINGS:
        from tallyveil.tables.excel import read_excel

        form.require_unused(EXCEL_NOT, "an Excel workbook")
        return read_excel(source, form)
    form.require_unused(("sheet",), "anything but an Excel workbook")
    if ending in PARQUET_ENDINGS + ARROW_ENDINGS:
        from tallyveil.tables.arrow_file import open_arrow

        form.require_unused(TEXT_ONLY, "a Parquet or Arrow file")
        kind = "parquet" if ending in PARQUET_ENDINGS else "arrow"
        try:
            return open_arrow(_require_path(source, kind), kind)
        except TableError as problem:
            if found or not _is_text(read_start(source)):
                raise
            raise TableError(f"{problem} It seems to be text: name it .csv.") from None
    if ending in STATISTICS_ENDINGS:
        from tallyveil.tables.statistics import read_statistics

        form.require_unused(TEXT_ONLY, "a file of a statistics program")
        return read_statistics(_require_path(source, ending), ending)
    if found and not packing:
        raise TableError(f"The file is {words}, not text: give it the ending {found}.")
    return _read_text(source, ending, packing, form)


def _read_text(source: Path | bytes, ending: str, packing: str, form: Form) -> Table:
    """Read a text file; what seems to be a title or a footnote is asked about."""
    mark = form.delimiter or ("\t" if ending in TAB_ENDINGS else ",")
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    start = _read_text_start(source, packing)
    encoding = find_encoding(start, form.encoding)
    if has_title(start, form, encoding, mark):
        asked = ask_about_lines(start, form, encoding, mark)
        if asked:
            raise TableError(asked.strip())
    if form.is_plain and isinstance(source, Path):
        opened = _ask_to_unpack(open_plain, source, mark, encoding, packing, Room.for_blocks(size))
        if opened is not None:
            return opened
    raw = source if isinstance(source, bytes) else read_file(source)
    if packing:
        raw = _ask_to_unpack(unpack, raw, packing, Room.for_whole(size))
    try:
        if form.is_plain and encoding == "utf-8":
            return _wrap_text(read_delimited(raw, mark, encoding), packing)
        return _wrap_text(_parse(raw, mark, form, encoding), packing)
    except TableError as problem:
        asked = ask_about_lines(raw, form, encoding, mark)
        if not asked:
            raise
        raise TableError(f"{problem}{asked}") from None


def _ask_to_unpack(
    read: Callable[Given, Found], *arguments: Given.args, **named: Given.kwargs
) -> Found:
    """Read a packed file of the publisher, who may also unpack it first."""
    try:
        return read(*arguments, **named)
    except UnpackedError as problem:
        raise TableError(f"{problem} If that is right, unpack it first.") from None


def _read_text_start(source: Path | bytes, packing: str) -> bytes:
    if not packing:
        return read_start(source)
    with open_unpacked(source, packing, ANY_SIZE) as stream:
        return stream.read(START)


def _parse(
    raw: bytes, mark: str, form: Form, encoding: str, most_rows: int | None = None
) -> DelimitedTable:
    """Split the rows of a text into cells; it is written again in its own encoding."""
    if not raw.strip():
        raise TableError("The table is empty: the file holds no header and no rows.")
    rows = normalize_text(raw, form, encoding)
    return replace(read_delimited(rows, mark, "utf-8", most_rows), encoding=encoding)


def _wrap_text(table: Table, packing: str) -> Table:
    return PackedTable(table, packing) if packing else table


def _recognize(start: bytes) -> tuple[str, str]:
    """Find the ending and the words for a file that is not text; nothing if it may be."""
    for beginning, ending, words in BEGINNINGS:
        if start.startswith(beginning):
            return ending, words
    return "", ""


def _is_text(start: bytes) -> bool:
    return bool(start) and b"\0" not in start


def _require_path(source: Path | bytes, kind: str) -> Path:
    if isinstance(source, bytes):
        raise TableError(f"{kind.capitalize()} is not read from standard input: name the file.")
    return source
