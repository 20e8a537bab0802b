"""A published table, written and read back before anything is spent.

A format may take a table and still not give it back: a mark that ends rows inside a label, a name
that is cut short, a number with more digits than there is room for. So the table that will be
published, with the largest counts in place of drawn ones, is written and read as `tallyveil check`
reads it. Nothing but labels and names decides what is refused, and they are public.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.errors import TableError, TallyveilError
from tallyveil.tables.base import CountArray, Table, UnheldError, read_signed
from tallyveil.tables.codes import Codes, is_number, normal_label
from tallyveil.tables.packed import PackedTable
from tallyveil.tables.source import read_released
from tallyveil.tables.streamed import StreamedTable

__all__ = ["measure_release"]

Found = TypeVar("Found")

WHOLE_ROWS = 2000
"""Up to so many rows are read back; of longer tables those that may turn out otherwise."""

FEW_LABELS, MOST_ODD, USUAL = 300, 500, 20
"""A column of few labels is read back with each of them; of others so many odd and usual ones."""

LONGEST_CELL = 1 << 17
"""Python reads no longer cell of a text file."""

UNPACKED = ("dta", "xpt")
"""Files whose size does not tell how alike their counts are, so that it can be judged."""

ARROW = ("parquet", "arrow")
TEXT = ("csv", "tsv")
ODD = re.compile("[^ !#-~\\xa1-\\ud7ff\\ue000-\\ufdcf\\ufdf0-\\ufefe\\uff00-\\uffef]")
"""What makes a label odd: controls, quotation marks, what is no character."""

MISSING = ("", "nan", "nat", "none", "null", "<na>")
"""What libraries write for no value."""

TRUTH = {"True": "1", "False": "0"}
WHOLE = re.compile(r"-?[0-9]+")
TIME = re.compile(r"[-+0-9TZ:., days]*[0-9][-+0-9TZ:., days]*")
"""Times and durations, which every library writes in a way of its own."""

NESTED = "any"
"""The type of lists and structs."""

ROUNDED = 1e-3
"""By how much a measurement may be rounded; narrow floats have three digits."""


def measure_release(
    build: Callable[[], Table],
    counts: Mapping[str, CountArray],
    *,
    exact: Sequence[str] = (),
    apart: Sequence[str] = (),
    source: Table | None = None,
) -> int:
    """Bound the size of a published table; a `TableError` if it would not be read back the same.

    Parameters
    ----------
    build : callable
        Builds the table with these counts.
    counts : mapping
        The largest that each column of counts can hold.
    exact, apart : sequence of str
        Columns that the release adds up by, whose labels must stay the same to the letter, and
        those that it draws by, whose labels must stay as many as they are.
    source : Table, optional
        The table that such columns were read from.

    Returns
    -------
    int
        At least as many bytes as the file takes.
    """
    trial = _Trial(counts, frozenset(exact), frozenset(apart))
    try:
        table = _guard(build)
    except UnheldError as problem:
        raise TableError(str(problem)) from None
    try:
        size, any_text = _guard(lambda: _measure(table))
        if source is not None:
            trial.require_apart(source, table)
        if _is_tried(table):
            trial.require_same(trial.choose_rows(table, any_text))
    except UnheldError as problem:
        named = trial.find_column(trial.choose_rows(table, any_text=False))
        found = f" It is the column {named!r}." if named else ""
        raise TableError(f"{problem}{found}") from None
    return size


def _measure(table: Table) -> tuple[int, bool]:
    """Bound the size of a file, and say whether any of the table's text can stand in it.

    It can in files of Arrow, and in text files if it is not too long: their writers quote what has
    to be quoted.
    """
    if isinstance(table, StreamedTable) or not table.extension.startswith(TEXT):
        return table.largest_size(), table.extension in ARROW
    if isinstance(table, PackedTable):
        return table.largest_size(), _has_short_rows(table.inner.to_bytes())
    content = table.to_bytes()
    return len(content), _has_short_rows(content)


def _has_short_rows(content: bytes) -> bool:
    """Whether no row of a text could hold a cell that is too long."""
    at = 0
    while at + LONGEST_CELL < len(content):
        at = content.rfind(b"\n", at + 1, at + LONGEST_CELL)
        if at < 0:
            return False
    return True


def _is_tried(table: Table) -> bool:
    """Whether a table may be read back otherwise than it is written.

    Text that is read batch by batch has nothing in it that could be; what is long is not read.
    """
    if not isinstance(table, StreamedTable):
        return True
    return table.rows <= WHOLE_ROWS and not table.extension.startswith(TEXT)


def _guard(do: Callable[[], Found]) -> Found:
    """Do something with a table; what a library says of it is said in our words."""
    try:
        return do()
    except (TallyveilError, OSError, MemoryError):
        raise
    except UnicodeError:
        raise UnheldError("A name or label has a character that cannot be written.") from None
    except Exception:  # whatever the writer of some format raises, which might quote a cell
        raise UnheldError(
            "The table cannot be written in this format. Convert columns of unusual types to text "
            "or numbers first, leave them out, or say another --format."
        ) from None


@dataclass(frozen=True)
class _Trial:
    """What is known of a release before it is drawn."""

    counts: Mapping[str, CountArray]
    exact: frozenset[str]
    apart: frozenset[str]

    def require_same(self, table: Table) -> None:
        """Write a table, read it as whoever checks it does, and compare."""
        try:
            same = self._is_same(table)
        except (OSError, MemoryError):
            raise
        except Exception:  # our own words are for somebody who reads a file, not for its publisher
            same = False
        if not same:
            other = "parquet" if table.extension.startswith(TEXT) else "csv"
            raise UnheldError(
                f"A column would not be read back the same from a file of the format "
                f"{table.extension} by whoever checks the release. Convert it to plain text, "
                f"correct its name, leave it out, or say another --format, such as {other}."
            )

    def require_apart(self, source: Table, table: Table) -> None:
        """Refuse a table in whose columns labels are one that the release holds apart."""
        for name in sorted(self.exact | self.apart):
            if len(source.codes(name).labels) != len(table.codes(name).labels):
                raise TableError(
                    f"Labels of column {name!r} that are written in different ways become one as "
                    f"{table.extension}. Write them the same way, or say another --format."
                )

    def _is_same(self, table: Table) -> bool:
        columns = (*table.index_names, *table.names)
        labels = [name for name in columns if name not in self.counts]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"data.{table.extension}")
            with path.open("wb") as file:
                table.write(file)
            form = getattr(table, "delimiter", ","), getattr(table, "encoding", "utf-8")
            read = read_released(
                path,
                *form,
                rows=table.rows,
                counts=list(self.counts),
                labels=labels,
                large=table.extension not in UNPACKED,
            )
            if read.names != columns or read.rows != table.rows:
                return False
            return all(self._has_counts(read, name) for name in self.counts) and all(
                self._has_labels(table, read, name) for name in labels
            )

    def _has_counts(self, read: Table, name: str) -> bool:
        return bool((read_signed(read, name) == self.counts[name][0]).all())

    def _has_labels(self, table: Table, read: Table, name: str) -> bool:
        """Whether a column has its labels after it was read, as far as the release needs it."""
        kind = table.type_of(name) if name in table.names else "string"
        if kind == NESTED:
            return name not in self.exact | self.apart  # whoever checks does not read it
        before, after = table.codes(name), read.codes(name)
        pairs = _list_pairs(before, after)
        if name in self.exact:
            return all(old == new for old, new in pairs)
        if name in self.apart and not len(pairs) == len(before.labels) == len(after.labels):
            return False
        return all(_agree(old, new, kind == "integer") for old, new in pairs)

    def choose_rows(self, table: Table, any_text: bool) -> Table:
        """Give a short table as it is, and of a long one rows that may be read back otherwise.

        What the release groups by is always looked at. Where `any_text` can stand, a few other rows
        show that names and types can be written.
        """
        if table.rows <= WHOLE_ROWS or isinstance(table, StreamedTable):
            return table
        names = [name for name in (*table.index_names, *table.names) if name not in self.counts]
        if any_text:
            names = [name for name in names if name in self.exact | self.apart]
        rows: Integers = np.arange(USUAL)
        for name in names:
            rows = np.union1d(rows, _find_odd(table.codes(name)))
        return table.build_released(self.counts, table.names, rows)

    def find_column(self, table: Table) -> str:
        """Find the first column that alone is not read back the same; empty if none is found."""
        if not self._passes(table, ()):
            first = table.index_names or tuple(self.counts)
            return first[0] if len(first) == 1 else ""
        names = (name for name in table.names if name not in self.counts)
        return next((name for name in names if not self._passes(table, (name,))), "")

    def _passes(self, table: Table, names: tuple[str, ...]) -> bool:
        keep = (*names, *(name for name in table.names if name in self.counts))
        counts = {name: values[: table.rows] for name, values in self.counts.items()}
        try:
            part = _guard(lambda: table.build_released(counts, keep))
            _guard(part.largest_size)
            self.require_same(part)
        except UnheldError:
            return False
        return True


def _list_pairs(before: Codes, after: Codes) -> list[tuple[str, str]]:
    """List the labels of rows before and after, every pair once."""
    joined = before.codes.astype(np.int64) * len(after.labels) + after.codes
    places = (divmod(int(pair), len(after.labels)) for pair in np.unique(joined))
    return [(before.labels[old], after.labels[new]) for old, new in places]


def _agree(before: str, after: str, is_whole: bool) -> bool:
    """Whether a label says the same before and after, however libraries write it.

    >>> _agree("1", "1.0", True), _agree("a ", "a", False), _agree("abc", "ab", False)
    (True, True, False)
    """
    old, new = (" ".join(normal_label(label).split()) for label in (before, after))
    if old == new or (old.lower() in MISSING and new.lower() in MISSING):
        return True
    if TRUTH.get(old) == new or (TIME.fullmatch(before) and not is_number(old)):
        return True
    if not (is_number(old) and is_number(new)):
        return False
    first, second = float(old), float(new)
    if is_whole and WHOLE.fullmatch(old):
        return second.is_integer() and int(second) == int(old)
    return math.isclose(first, second, rel_tol=ROUNDED)


def _find_odd(codes: Codes) -> Integers:
    """Find the first rows of labels that a format may not hold, and of some others."""
    places = np.arange(len(codes.values))
    if len(places) > FEW_LABELS:
        places = _choose_labels(codes)
    first = np.full(len(codes.values), -1)
    first[codes.codes[::-1]] = np.arange(len(codes.codes))[::-1]
    found: Integers = first[places]
    return found[found >= 0]


def _choose_labels(codes: Codes) -> Integers:
    """Choose among many labels: the least and the largest number, the longest text, odd marks."""
    values = codes.values
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        unfit = np.flatnonzero(~np.isfinite(values))[:USUAL]
        ends = [np.argmin(values), np.argmax(values)]
        return np.concatenate([np.arange(USUAL), unfit, ends])
    labels = codes.labels
    longest = max(range(len(labels)), key=lambda at: len(labels[at]))
    chosen = [*range(USUAL), *range(0, len(labels), 1 + len(labels) // FEW_LABELS), longest]
    if ODD.search("\n".join(labels).replace("\n", "")) or any(map(_has_blanks, labels)):
        odd = (at for at, label in enumerate(labels) if ODD.search(label) or _has_blanks(label))
        chosen += islice(odd, MOST_ODD)
    return np.array(chosen)


def _has_blanks(label: str) -> bool:
    return label != label.strip()
