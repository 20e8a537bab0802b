"""Labels of public columns: codes instead of text, the form that is compared, formulas."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import TableError, replacing
from tallyveil.untrusted import remove_invisible

if TYPE_CHECKING:
    import pyarrow as pa

    from tallyveil.tables.table import Table

CodeArray: TypeAlias = NDArray[np.signedinteger[Any]]

WHOLE = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.0*)?")
MIDNIGHT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]00:00:00(\.0+)?")

ZEROS = r"(\.[0-9]*[1-9])0+$|\.0+$"
"""Zeros behind the seconds of a time, which Arrow writes and nobody else."""

OUT_OF_BOUNDS = "<"
"""How Arrow begins to write a time that no calendar has."""

DTYPES = {"halffloat": "float16", "float": "float32", "double": "float64"}
"""What Arrow's floating types are called in NumPy; whole numbers have the same names."""

FORMULA = re.compile(r"[=@\t\r]|[+-](?![0-9.,]*\Z)")
"""How a cell begins that a spreadsheet runs; a number with a sign is none."""

BEGINNING = r"^[=@\t\r+-]"


def normal_label(label: str) -> str:
    """Write a label in the form that is compared, the same for all engines.

    One code is 1 in a column of integers, 1.0 in one with missing values and "1" in a text file;
    the same goes for dates, for true and false, and for composed letters. 007 and 7 stay apart,
    and so do 1 and true.

    >>> [normal_label(text) for text in ("1.0", " 1", "007", "TRUE", "2026-01-31 00:00:00")]
    ['1', '1', '007', 'True', '2026-01-31']
    """
    text = label.strip()
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if text.lower() in ("true", "false"):
        return text.capitalize()
    integer, day = WHOLE.fullmatch(text), MIDNIGHT.fullmatch(text)
    if integer:
        return "0" if integer[2] == "0" else integer[1] + integer[2]
    return day[1] if day else text


def is_number(text: str) -> bool:
    """Return whether Python reads a text as a number.

    >>> is_number("1e5"), is_number("nan"), is_number("a")
    (True, True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class Codes:
    """A column as integers: two rows have the same code exactly if they have the same label.

    `values[codes[row]]` is what a row holds; `values` has every label that occurs once, as a
    number or as the label itself.
    """

    codes: CodeArray
    values: NDArray[Any]

    @cached_property
    def labels(self) -> list[str]:
        """The label of each code, as text."""
        return list(map(str, self.values.tolist()))

    @cached_property
    def numbers(self) -> Floats | None:
        """The label of each code as a number, or None unless every label is a finite number."""
        try:
            numbers = self.values.astype(np.float64)
        except ValueError:
            return None
        return numbers if np.isfinite(numbers).all() else None

    def rank_rows(self) -> Integers:
        """Rank every row by its label: as a number if all labels are numbers, else as text."""
        labels = np.array(self.labels, dtype=object) if self.numbers is None else self.numbers
        ranks: Integers = np.unique(labels, return_inverse=True)[1].reshape(-1)
        return ranks[self.codes]


def number_together(columns: Sequence[CodeArray]) -> Integers:
    """Number rows by what they hold in several columns of codes, smaller codes first.

    Numbers stay below that of rows, however many columns there are.

    >>> number_together([np.array([1, 0, 1]), np.array([7, 7, 2])]).tolist()
    [2, 0, 1]
    """
    numbers = np.zeros(len(columns[0]), dtype=np.int64)
    for codes in columns:
        pairs = numbers * (int(codes.max(initial=0)) + 1) + codes
        numbers = np.unique(pairs, return_inverse=True)[1].reshape(-1)
    return numbers


def encode_text(labels: Sequence[str]) -> Codes:
    """Encode the label of every row, with codes in the order of first occurrence.

    >>> encode_text(["n", "s", "n"]).codes.tolist()
    [0, 1, 0]
    """
    code_of = {label: code for code, label in enumerate(dict.fromkeys(labels))}
    codes = np.fromiter(map(code_of.__getitem__, labels), np.int64, len(labels))
    return Codes(codes, np.array(list(code_of), dtype=object))


def encode_column(column: pa.ChunkedArray) -> Codes:
    """Encode a column of plain Arrow types; no value has the empty label."""
    import pyarrow as pa

    if not (pa.types.is_integer(column.type) and not column.null_count):
        column = fill_empty(write_texts(column))
    encoded = column.dictionary_encode().unify_dictionaries()
    if not encoded.num_chunks:
        return encode_text([])
    codes = np.concatenate([view_numbers(chunk.indices) for chunk in encoded.chunks])
    values = encoded.chunk(0).dictionary
    if pa.types.is_integer(column.type):
        return Codes(codes, view_numbers(values))
    return Codes(codes, np.array(values.to_pylist(), dtype=object))


def write_texts(column: Any) -> Any:
    """Write a column as text, as a CSV file holds it; a missing value stays missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_string(kind):
        return column
    problem = partial(
        TableError,
        f"A column of the type {kind} holds a value out of bounds or in an unknown time zone. "
        "Convert it to text first.",
    )
    with replacing(problem):
        texts = column.cast(pa.string())
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        if pc.any(pc.starts_with(texts, OUT_OF_BOUNDS)).as_py():
            raise problem()
        texts = pc.replace_substring_regex(texts, ZEROS, r"\1")
    return texts


def make_texts(texts: Sequence[str]) -> Any:
    """Make an Arrow array of texts; `pa.array` and `pa.scalar` of anything in Python import pandas.

    >>> make_texts(["a", "", "é"]).to_pylist()
    ['a', '', 'é']
    """
    import pyarrow as pa

    pieces = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, pieces)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(pieces))]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


def fill_empty(texts: Any) -> Any:
    """Replace missing values by the empty label."""
    import pyarrow.compute as pc

    return pc.coalesce(texts, make_texts([""])[0]) if texts.null_count else texts


def view_numbers(array: Any) -> NDArray[Any]:
    """View an Arrow array of numbers without a copy; nulls hold any number.

    pyarrow's own conversion imports pandas, which takes longer than a table of a million rows.
    """
    dtype = np.dtype(DTYPES.get(str(array.type), str(array.type)))
    if not len(array):
        return np.zeros(0, dtype)
    content = array.buffers()[1]
    return np.frombuffer(content, dtype, len(array), array.offset * dtype.itemsize)


def require_own_names(names: Sequence[str]) -> None:
    """Raise a `TableError` if two columns have the same name, or names that look the same."""
    seen: dict[str, str] = {}
    for name in names:
        look = " ".join(unicodedata.normalize("NFC", remove_invisible(name)).split())
        if look in seen:
            how = "" if name == seen[look] else ", apart from characters that nobody sees"
            raise TableError(
                f"Two columns are called {look!r}{how}. Every column needs a different name."
            )
        seen[look] = name


def find_formulas(table: Table, names: Sequence[str]) -> list[str]:
    """List the columns with a name or cell that a spreadsheet would run.

    Parquet files have none: their cells are marked as text.
    """
    import pyarrow.compute as pc

    if table.format != "csv":
        return []
    formulas = {name for name in names if FORMULA.match(name)}
    for batch in table.scan(names):
        for name in set(names) - formulas:
            texts = write_texts(batch.column(name))
            odd = pc.unique(texts.filter(pc.match_substring_regex(texts, BEGINNING)))
            if any(map(FORMULA.match, odd.to_pylist())):
                formulas.add(name)
    return [name for name in names if name in formulas]
