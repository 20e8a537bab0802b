"""CSV and TSV with the standard library: what is not a count is carried over word for word.

Nothing is guessed. A file that mixes line endings, starts with a byte-order mark or has
rows of unequal length is refused with what to do about it, because a column that is read
wrongly would be published wrongly.
"""

from __future__ import annotations

import csv
import gc
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.errors import TableError
from tallyveil.tables.base import BATCH_ROWS, CountArray, Order, Table, encode_file, write_text
from tallyveil.tables.codes import Codes, encode_text
from tallyveil.tables.counts import convert_text

__all__ = ["DelimitedTable", "delimiter_hint", "infer_type", "read_delimited"]

MOST_COLUMNS = 100_000
BOM = b"\xef\xbb\xbf"
INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]*)")
OTHER_DELIMITERS = {";": "';'", "\t": "a tab", "|": "'|'", ",": "','"}


@dataclass(frozen=True)
class DelimitedTable(Table):
    """The cells of a text file by column, and how the file was written."""

    names: tuple[str, ...] = ()
    columns: tuple[tuple[str, ...], ...] = ((),)
    delimiter: str = ","
    line_end: str = "\n"
    encoding: str = "utf-8"

    @property
    def kind(self) -> str:
        """tsv if a tab separates cells, else csv."""
        return "tsv" if self.delimiter == "\t" else "csv"

    @property
    def extension(self) -> str:
        """The ending of the file it is written to."""
        return self.kind

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.columns[0])

    def slice(self, start: int, stop: int) -> DelimitedTable:
        """Give the rows `start` to `stop`; cells are shared, not copied."""
        return replace(self, columns=tuple(column[start:stop] for column in self.columns))

    def counts(self, name: str) -> Integers:
        """Read a column as counts."""
        return convert_text(self.labels(name), name)

    def codes(self, name: str) -> Codes:
        """Encode the cells of a column."""
        return encode_text(self.labels(name))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.names)}

    def labels(self, name: str) -> tuple[str, ...]:
        """Give the cells of a column."""
        return self.columns[self._places[name]]

    def type_of(self, name: str) -> str:
        """Give the Frictionless type of a column."""
        return infer_type(self.labels(name))

    def build_released(
        self, counts: Mapping[str, CountArray], keep: Sequence[str], order: Order = None
    ) -> DelimitedTable:
        """Build the table that is published, written as this one is."""
        columns = []
        names = (*keep, *(name for name in counts if name not in keep))
        for name in names:
            cells = tuple(map(str, counts[name].tolist())) if name in counts else self.labels(name)
            if order is not None:
                cells = tuple(map(cells.__getitem__, order.tolist()))
            columns.append(cells)
        return replace(self, names=names, columns=tuple(columns))

    def build_grouped(
        self, by: Sequence[str], labels: Sequence[tuple[Any, ...]], counts: Mapping[str, CountArray]
    ) -> DelimitedTable:
        """Build a table with one row for each category.

        Its line ends are plain ones: a file with a header alone has no others to tell.
        """
        columns = [tuple(str(label[at]) for label in labels) for at in range(len(by))]
        columns += [tuple(map(str, values.tolist())) for values in counts.values()]
        return replace(self, names=(*by, *counts), columns=tuple(columns), line_end="\n")

    def native(self) -> Any:
        """Give a pyarrow table: numbers as numbers, codes such as 007 and text as text."""
        from tallyveil.tables.arrow import build_arrow

        columns = dict(zip(self.names, self.columns, strict=True))
        return build_arrow(columns, {name: self.type_of(name) for name in self.names})

    def to_bytes(self) -> bytes:
        """Write the file with the same delimiter, line ends and encoding as it was read."""
        text = write_text(self.names, self.columns, self.delimiter, self.line_end)
        return encode_file(text, self.encoding)


def read_delimited(
    source: str | Path | bytes,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    most_rows: int | None = None,
) -> DelimitedTable:
    """Read a CSV or TSV file, given as a path or as its bytes; a `TableError` says what is wrong.

    The delimiter is by default a comma, or a tab for .tsv and .tab. More than `most_rows` rows are
    refused early.
    """
    if isinstance(source, bytes):
        raw, mark = source, delimiter or ","
    else:
        path = Path(source)
        raw = path.read_bytes()
        mark = delimiter or ("\t" if path.suffix.lower() in (".tsv", ".tab") else ",")
    if len(mark) != 1:
        raise TableError("A delimiter is one character, such as ',' or ';' or a tab.")
    if not raw.strip():
        raise TableError("The table is empty: the file holds no header and no rows.")
    if raw.startswith(BOM) and encoding.lower().replace("_", "-") != "utf-8-sig":
        raise TableError(
            "The file starts with a byte-order mark, which would become part of the first "
            "column's name. Read it with --encoding utf-8-sig, which also writes the mark back."
        )
    line_end = _find_line_end(raw)
    try:
        text = raw.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        raise TableError(
            f"The file cannot be read as {encoding} text. Name its encoding with --encoding, "
            "for example latin-1 or cp1252."
        ) from None
    return _parse(text, mark, line_end, encoding, most_rows)


def _find_line_end(raw: bytes) -> str:
    """Find the one line ending between rows; the end of the last row does not matter."""
    pieces = raw.decode("latin-1").split('"')  # every other one is quoted; text, for bytes
    bare = "".join(pieces[::2]).rstrip("\r\n")  # take 80 bytes for each piece that is joined
    pairs = bare.count("\r\n")
    found = {"\r\n": pairs, "\n": bare.count("\n") - pairs, "\r": bare.count("\r") - pairs}
    used = [end for end, count in found.items() if count]
    if len(used) > 1:
        raise TableError(
            "The file mixes line endings (Windows, Unix or old Mac), so rows may be cut in the "
            "wrong place. Save it with one kind of line ending first."
        )
    return used[0] if used else "\n"


def _parse(
    text: str, delimiter: str, line_end: str, encoding: str, most_rows: int | None
) -> DelimitedTable:
    """Split text into cells; every row must have as many as the header."""
    try:
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        header = next(lines)
        if len(header) > MOST_COLUMNS:
            raise TableError(f"The header names more than {MOST_COLUMNS:,} columns.")
        repeated = next((name for name, times in Counter(header).items() if times > 1), None)
        if repeated is not None:
            raise TableError(f"The header names the column {repeated!r} more than once.")
        with _pause_collector():
            columns = _split_columns(lines, header, most_rows)
    except csv.Error as problem:
        raise TableError(f"The file is not well-formed text: {problem}.") from None
    return DelimitedTable(tuple(header), columns, delimiter, line_end, encoding)


@contextmanager
def _pause_collector() -> Iterator[None]:
    """Make millions of small lists, none of them in a cycle, in less than half the time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _split_columns(
    lines: Iterator[list[str]], header: list[str], most_rows: int | None
) -> tuple[tuple[str, ...], ...]:
    """Collect the cells by column, some rows at a time; empty lines may stand at the end only."""
    columns: list[list[str]] = [[] for _ in header]
    width, row, ended = len(header), 0, False
    while batch := list(islice(lines, BATCH_ROWS)):
        filled = len(batch)
        while filled and not batch[filled - 1]:
            filled -= 1
        batch, ended = [[]] if ended and filled else batch[:filled], filled < len(batch)
        if any(map(width.__ne__, map(len, batch))):
            at = next(at for at, line in enumerate(batch) if len(line) != width)
            raise TableError(
                f"Row {row + at + 1} has {len(batch[at])} cells where the header has {width}."
                + delimiter_hint(header)
            )
        row += len(batch)
        if most_rows is not None and row > most_rows:
            raise TableError(f"The table has more than the stated {most_rows:,} rows.")
        for column, cells in zip(columns, zip(*batch, strict=True), strict=False):
            column.extend(cells)
    return tuple(map(tuple, columns))


def delimiter_hint(header: Sequence[str]) -> str:
    """Say what to try if a header of one name seems to be written with another delimiter.

    Either nothing or a sentence that starts with a space.
    """
    if len(header) != 1:
        return ""
    best = max(OTHER_DELIMITERS, key=header[0].count)
    if best not in header[0]:
        return ""
    return (
        f" The header seems to be separated by {OTHER_DELIMITERS[best]}: "
        f"give --delimiter {'tab' if best == chr(9) else repr(best)}."
    )


def infer_type(values: Sequence[str]) -> str:
    """Infer the Frictionless type that every cell fits; empty cells fit any type.

    A leading zero makes a code, not a number, so it stays a string.

    >>> infer_type(["1", "20"]), infer_type(["1.5", "2"]), infer_type(["01", "02"])
    ('integer', 'number', 'string')
    """
    filled = list(set(values) - {""})
    if not filled:
        return "string"
    if all(INTEGER.fullmatch(value) for value in filled):
        return "integer"
    if any(re.match(r"[+-]?0[0-9]", value) for value in filled):
        return "string"
    try:
        finite = np.isfinite(np.array(filled, dtype=float)).all()
    except ValueError:
        return "string"
    return "number" if finite else "string"
