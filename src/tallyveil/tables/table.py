"""The one table: columns of plain Arrow types, read in batches as often as needed.

A table knows where its rows are (`Rows`): in memory, in a file, or as the rows of another table
with new counts. Whatever could tell of rows or columns that are not published (metadata, slices,
values beneath nulls, dictionaries) is left behind in one place, `scrub`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers, Mask
from tallyveil.errors import TableError
from tallyveil.tables.counts import RowError, convert_column
from tallyveil.tables.form import Form
from tallyveil.tables.labels import (
    Codes,
    encode_column,
    fill_empty,
    make_texts,
    view_numbers,
    write_texts,
)
from tallyveil.tables.write import TextFacts, bound_csv, bound_parquet, write_csv, write_parquet

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "BATCH_ROWS",
    "TABLE_KINDS",
    "CountArray",
    "FileIdentity",
    "Held",
    "Order",
    "Rows",
    "Table",
    "encode_name",
    "make_counts",
    "plain_type",
    "read_signed",
]

TABLE_KINDS = (
    "csv",
    "tsv",
    "parquet",
    "arrow",
    "xlsx",
    "dta",
    "sav",
    "xpt",
    "sas7bdat",
    "database",
    "pandas",
    "polars",
    "array",
)
"""What a table can be."""

BATCH_ROWS = 65_536
"""How many rows a batch has at the most, those of a text file apart."""

LONGEST_CELL = 131_072
"""Bytes of the longest name or label that is published."""

MOST_DIGITS = 18
"""Whole numbers of so many digits fit into 64 bits."""

CountArray: TypeAlias = NDArray[np.integer[Any]]
"""Counts of any integer type, compact or not."""

Order: TypeAlias = Integers | None
"""Row numbers in the order in which rows are wanted, or None for the order they have."""


class Rows(Protocol):
    """Rows that can be read as often as needed, the same ones every time."""

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""

    @property
    def count(self) -> int:
        """How many rows there are."""

    def scan(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read some columns batch by batch, in the order of the rows."""

    def require_same(self) -> None:
        """Raise a `TableError` if a file was changed since its rows were counted."""


@dataclass(frozen=True)
class FileIdentity:
    """Which file lies at a path, and when it was changed last."""

    path: Path
    facts: tuple[int, ...]

    @classmethod
    def of(cls, path: Path) -> FileIdentity:
        """The file that lies there now."""
        facts = os.stat(path)
        times = facts.st_mtime_ns, facts.st_ctime_ns
        return cls(path, (facts.st_dev, facts.st_ino, facts.st_size, *times))

    def require_same(self) -> None:
        """Raise a `TableError` if another file lies there now, or if it was written to."""
        try:
            same = FileIdentity.of(self.path) == self
        except OSError:
            same = False
        if not same:
            raise TableError(
                "The table was changed while it was read, so its rows may no longer be those that "
                "were checked. Nothing was published. Start again when nobody writes to it."
            )


@dataclass(frozen=True, eq=False)
class Held:
    """Rows in memory; dictionaries and extensions are read as what they stand for."""

    table: pa.Table

    def __reduce__(self) -> Any:
        return Held, (self.table,)

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and plain types of the columns; null for a type that is not plain."""
        return plain_schema(self.table.schema)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.table.num_rows)

    def scan(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read some columns batch by batch."""
        for batch in self.table.select(list(names)).to_batches(max_chunksize=BATCH_ROWS):
            yield make_plain(batch)

    def require_same(self) -> None:
        """Rows in memory do not change."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """Some of the rows of a table."""

    rows: Rows
    stays: Mask

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self.rows.schema

    @property
    def count(self) -> int:
        """How many rows stay."""
        return int(np.count_nonzero(self.stays))

    def scan(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the rows that stay."""
        start = 0
        for batch in self.rows.scan(names or self.schema.names[:1]):
            stays = np.flatnonzero(self.stays[start : start + batch.num_rows])
            start += batch.num_rows
            yield batch.select(list(names)).take(make_counts(stays))

    def require_same(self) -> None:
        """Raise a `TableError` if a file was changed."""
        self.rows.require_same()


@dataclass(frozen=True, eq=False)
class Published:
    """The columns `keep` of other rows with released counts, new ones last."""

    rows: Rows
    counts: Mapping[str, CountArray]
    keep: tuple[str, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and types; every count is a 64-bit whole number, however large the true ones."""
        import pyarrow as pa

        names = (*self.keep, *(name for name in self.counts if name not in self.keep))
        old = self.rows.schema
        count = pa.int64()
        return pa.schema(pa.field(n, count) if n in self.counts else old.field(n) for n in names)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.rows.count

    def scan(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read labels beside the counts, and nothing else of their memory."""
        import pyarrow as pa

        schema = pa.schema([self.schema.field(name) for name in names])
        labels = [name for name in names if name not in self.counts]
        start = 0
        for size, batch in self._scan_labels(labels):
            part = slice(start, start + size)
            columns = [
                make_counts(self.counts[name][part])
                if name in self.counts
                else scrub(batch.column(name))
                for name in names
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
            start = part.stop

    def _scan_labels(self, labels: Sequence[str]) -> Iterator[tuple[int, Any]]:
        if labels:
            yield from ((batch.num_rows, batch) for batch in self.rows.scan(labels))
            return
        for start in range(0, self.count, BATCH_ROWS):
            yield min(BATCH_ROWS, self.count - start), None

    def require_same(self) -> None:
        """Raise a `TableError` if the file of the labels was changed."""
        self.rows.require_same()


@dataclass(frozen=True, eq=False)
class Typed:
    """Rows that were written as text, read as the types that they had."""

    rows: Rows
    schema: Any

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.rows.count

    def scan(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read some columns batch by batch."""
        import pyarrow as pa

        schema = pa.schema([self.schema.field(name) for name in names])
        for batch in self.rows.scan(names):
            pairs = zip(batch.columns, schema.types, strict=True)
            columns = [c if c.type == kind else _read_texts(c, kind) for c, kind in pairs]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def require_same(self) -> None:
        """Raise a `TableError` if the file was changed."""
        self.rows.require_same()


class Native(Protocol):
    """How a published table becomes what came in again; holds no row."""

    def build(self, table: Table) -> Any:
        """Build the frame, array or Arrow table."""

    def narrow(self, table: Table) -> Native:
        """Forget what the published table does not have, such as unused categories."""

    def forget(self) -> Native:
        """Forget every column: those of the published table come from a public list."""


@dataclass(frozen=True, eq=False)
class ArrowNative:
    """A pyarrow table: files give one too, with whole and other numbers as numbers."""

    types: Mapping[str, Any] = field(default_factory=dict)
    levels: Mapping[str, Any] = field(default_factory=dict)
    """The values of ordered dictionaries, in their order."""

    def build(self, table: Table) -> Any:
        """Build the table, dictionaries anew from the rows."""
        import pyarrow as pa

        columns, fields = [], []
        for name in table.written_names:
            column, kind = table.column(name), self.types.get(name)
            if kind is None and table.is_text:
                column = _read_numbers(column, table.type_of(name))
            elif kind is not None and pa.types.is_null(kind):
                column = pa.nulls(len(column))
            elif kind is not None and pa.types.is_dictionary(kind):
                column = _encode_again(column, self.levels.get(name))
            elif kind is not None:
                column = column.cast(kind)
            columns.append(column)
            fields.append(pa.field(name, column.type))
        return pa.table(columns, schema=pa.schema(fields))

    def narrow(self, table: Table) -> ArrowNative:
        """Keep the types of published labels; counts have one type."""
        import pyarrow.compute as pc

        names = table.label_names
        levels = {
            name: values.filter(pc.is_in(values, value_set=pc.unique(table.column(name))))
            for name, values in self.levels.items()
            if name in names
        }
        types = {name: kind for name, kind in self.types.items() if name in names}
        return ArrowNative(types, levels)

    def forget(self) -> ArrowNative:
        """Keep no type."""
        return ArrowNative()


def _encode_again(column: Any, levels: Any) -> Any:
    """Encode a column by the values that occur: in their own order, or sorted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_ordered = levels is not None
    if levels is None:
        levels = pc.drop_null(pc.unique(column))
        levels = levels.take(pc.sort_indices(levels))
    codes = pc.index_in(column.combine_chunks(), value_set=levels)
    return pa.DictionaryArray.from_arrays(codes, levels, ordered=is_ordered)


class _Facts(NamedTuple):
    """What a pass over a column of labels shows."""

    kind: str
    text: TextFacts


@dataclass(frozen=True, eq=False)
class Table:
    """A table, whatever library or file it came from.

    `index_names` are columns that name rows (a pandas index); they are written first. Columns of
    text files hold text alone (`is_text`), and so do those of workbooks: what they hold is inferred
    from the rows there are. `unreadable` says why a column cannot be read; `mixed`, why one that
    holds values of several types is read as text and cannot be published. `released` names the
    columns of released counts.
    """

    rows_in: Rows
    kind: str = "arrow"
    format: str = "csv"
    is_text: bool = False
    index_names: tuple[str, ...] = ()
    native_form: Native = field(default_factory=ArrowNative)
    released: tuple[str, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    mixed: Mapping[str, str] = field(default_factory=dict)
    form: Form = field(default_factory=Form)
    facts: dict[str, _Facts] = field(default_factory=dict)

    @cached_property
    def written_names(self) -> tuple[str, ...]:
        """Every column of the file, labels of rows first."""
        return (*self.index_names, *self.names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns in order, without labels of rows."""
        return tuple(name for name in self.rows_in.schema.names if name not in self.index_names)

    @property
    def label_names(self) -> tuple[str, ...]:
        """Every column of the file but released counts."""
        return tuple(name for name in self.written_names if name not in self.released)

    @property
    def extension(self) -> str:
        """The ending of the file that is written."""
        return self.format

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.rows_in.count

    def scan(self, names: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read some columns, or all, batch by batch; each must be readable."""
        names = self.written_names if names is None else names
        self.require_readable(names)
        yield from self.rows_in.scan(names)

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Table]:
        """Give some columns, or all that can be read, as tables of consecutive rows."""
        import pyarrow as pa

        if names is None:
            names = [name for name in self.written_names if not self._why_unreadable(name)]
        for batch in self.scan(list(dict.fromkeys(names))):
            yield replace(
                self, rows_in=Held(pa.Table.from_batches([batch])), facts=dict(self.facts)
            )

    def slice(self, start: int, stop: int) -> Table:
        """Give the rows `start` to `stop`, the last one left out, in memory."""
        import pyarrow as pa

        names = [name for name in self.written_names if not self._why_unreadable(name)]
        pieces, begin = [], 0
        for batch in self.scan(names):
            pieces.append(batch.slice(max(start - begin, 0), max(stop - max(start, begin), 0)))
            begin += batch.num_rows
            if begin >= stop:
                break
        schema = pa.schema([self.rows_in.schema.field(name) for name in names])
        return replace(self, rows_in=Held(pa.Table.from_batches(pieces, schema)), facts={})

    def column(self, name: str) -> pa.ChunkedArray:
        """Read one column into memory."""
        import pyarrow as pa

        kind = self.rows_in.schema.field(name).type
        return pa.chunked_array((batch.column(0) for batch in self.scan([name])), kind)

    def counts(self, name: str) -> Integers:
        """Read a column as counts of at least 0, all at once, those above 2^62 cut to it.

        A row without a count raises a `RowError`. `read_counts` reads in batches.
        """
        return np.concatenate([np.zeros(0, np.int64), *(c for c, _ in self.scan_counts(name))])

    def scan_counts(self, name: str) -> Iterator[tuple[Integers, Any]]:
        """Read a column as counts batch by batch, beside what it holds."""
        start = 0
        for batch in self.scan([name]):
            column = batch.column(0)
            try:
                counts = convert_column(column, name, self.form)
            except RowError as error:
                raise RowError(name, start + error.row, error.what) from None
            start += len(counts)
            yield counts, column

    def codes(self, name: str) -> Codes:
        """Encode the labels of a column; only what occurs has a code."""
        return encode_column(self.column(name))

    def labels(self, name: str) -> list[str]:
        """Give the label of each row, empty for no value."""
        labels: list[str] = fill_empty(write_texts(self.column(name))).to_pylist()
        return labels

    def list_types(self) -> dict[str, str]:
        """Give the type of every column but those that name rows, in one pass over the rows."""
        if self.is_text:
            self.measure([name for name in self.names if not self._why_unreadable(name)])
        return {name: self.type_of(name) for name in self.names}

    def type_of(self, name: str) -> str:
        """Give the Frictionless type of a column, such as integer or string."""
        kind = self.rows_in.schema.field(name).type
        if self._why_unreadable(name) or name in self.mixed:
            return "any"
        if not (self.is_text and str(kind) in ("string", "double")):
            return _name_type(kind)
        return self.measure([name])[name].kind

    def measure(self, names: Sequence[str]) -> dict[str, _Facts]:
        """What columns of labels hold, in one pass over those that were not measured before."""
        unknown = [name for name in names if name not in self.facts]
        surveys = {name: _Survey(self.is_text) for name in unknown}
        for batch in self.scan(unknown) if unknown else ():
            for name, survey in surveys.items():
                try:
                    survey.add(batch.column(name))
                except TableError:
                    raise
                except (UnicodeError, ValueError):
                    raise _cannot_write(name) from None
        self.facts.update((name, survey.finish()) for name, survey in surveys.items())
        return {name: self.facts[name] for name in names}

    def leave_out(self, stays: Mask) -> Table:
        """Give the rows that stay; what they hold is inferred anew."""
        return replace(self, rows_in=Chosen(self.rows_in, stays), facts={})

    def build_released(
        self, counts: Mapping[str, CountArray], keep: Sequence[str], order: Order = None
    ) -> Table:
        """Build the published table: the columns `keep`, with released counts as int64.

        Counts of a name that is not in `keep` become new columns, after the others. Counts
        stand in the row order of this table, the result in `order`. The labels of a file are read
        when they are written, unless rows are put in order.
        """
        kept = (*self.index_names, *keep)
        self.require_publishable(name for name in kept if name not in counts)
        rows: Rows = Published(self.rows_in, dict(counts), kept)
        if order is not None or isinstance(self.rows_in, Held):
            rows = Held(_take(rows, order))
        labels = {*kept} - {*counts}
        facts = {name: fact for name, fact in self.facts.items() if name in labels}
        built = replace(self, rows_in=rows, unreadable={}, mixed={}, form=Form(), facts=facts)
        built = replace(built, released=tuple(counts))
        return replace(built, native_form=self.native_form.narrow(built))

    def build_grouped(
        self, by: Sequence[str], labels: Sequence[tuple[Any, ...]], counts: Mapping[str, CountArray]
    ) -> Table:
        """Build a table with one row for each public category; nothing of this one goes along."""
        made = Table.of_categories(by, labels, counts)
        native = self.native_form.forget()
        return replace(made, kind=self.kind, format=self.format, native_form=native)

    @classmethod
    def of_categories(
        cls,
        by: Sequence[str],
        labels: Sequence[tuple[Any, ...]],
        counts: Mapping[str, CountArray],
    ) -> Table:
        """Build a table of the columns `by` and the counts from a public list alone.

        The type of a column of a confidential table may tell of a row, such as one without a value.
        """
        import pyarrow as pa

        columns = {name: pa.array([label[at] for label in labels]) for at, name in enumerate(by)}
        fields = [pa.field(name, column.type) for name, column in columns.items()]
        fields += [pa.field(name, pa.int64()) for name in counts]
        arrays = [*columns.values(), *map(make_counts, counts.values())]
        return cls(Held(pa.table(arrays, schema=pa.schema(fields))), released=tuple(counts))

    def native(self) -> Any:
        """Give the table as the kind that came in; a file gives a pyarrow table."""
        return self.native_form.build(self)

    def require_writable(self) -> int:
        """Refuse names and labels that the file cannot hold; give a bound on its size.

        Nothing but labels and names decides what is refused, and they are public.
        """
        self.rows_in.require_same()
        for name in self.written_names:
            if len(encode_name(name)) > LONGEST_CELL:
                raise TableError(f"A column has a name of more than {LONGEST_CELL:,} bytes.")
        if self.written_names[0].startswith("\ufeff"):
            raise TableError(
                "The name of the first column begins with a byte-order mark, a character that "
                "cannot be written there. Correct the name."
            )
        facts = {name: fact.text for name, fact in self.measure(self.label_names).items()}
        for name, fact in facts.items():
            if fact.longest > LONGEST_CELL:
                raise TableError(
                    f"The column {name!r} has a label of more than {LONGEST_CELL:,} bytes. Shorten "
                    "it, or leave the column out of 'keep'."
                )
        bound = bound_csv if self.format == "csv" else bound_parquet
        header = sum(len(name.encode()) + 3 for name in self.written_names)
        return header + bound(facts, self.rows, len(self.released))

    def write(self, file: IO[bytes]) -> None:
        """Write the file batch by batch; equal tables give equal bytes."""
        self.rows_in.require_same()
        names, batches = self.written_names, self.scan()
        if self.format == "csv":
            write_csv(file, names, batches)
        else:
            write_parquet(file, *self._read_whole_numbers(names, batches))
        self.rows_in.require_same()

    def to_bytes(self) -> bytes:
        """Write the file into memory."""
        buffer = io.BytesIO()
        self.write(buffer)
        return buffer.getvalue()

    def reopen(self, rows: Callable[[], Rows]) -> Table:
        """Give the table after it was written: a long one refers to the rows in its file."""
        if isinstance(self.rows_in, Held):
            return self
        written = rows()
        same = self.is_text or written.schema.equals(self.rows_in.schema)
        return replace(self, rows_in=written if same else Typed(written, self.rows_in.schema))

    def hold(self) -> Table:
        """Give the table in memory."""
        if isinstance(self.rows_in, Held):
            return self
        self.rows_in.require_same()
        return replace(self, rows_in=Held(_take(self.rows_in, None)))

    def __reduce__(self) -> Any:
        """Copy the table itself, and nothing of the file that it refers to."""
        held = self.hold()
        form = held.kind, held.format, held.is_text, held.index_names, held.native_form
        return Table, (held.rows_in, *form, held.released)

    def _read_whole_numbers(
        self, names: Sequence[str], batches: Iterable[Any]
    ) -> tuple[Any, Iterator[Any]]:
        """Columns of text that hold whole numbers alone become numbers in a Parquet file."""
        import pyarrow as pa

        schema = self.rows_in.schema
        kinds = {
            name: pa.int64() if self.is_text and self.type_of(name) == "integer" else None
            for name in names
            if str(schema.field(name).type) == "string"
        }
        fields = [
            pa.field(name, kinds.get(name) or schema.field(name).type, name not in self.released)
            for name in names
        ]
        wanted = pa.schema(fields)

        def read(batch: Any) -> Any:
            columns = [
                _read_numbers(batch.column(name), "integer")
                if kinds.get(name)
                else batch.column(name)
                for name in names
            ]
            return pa.RecordBatch.from_arrays(columns, schema=wanted)

        return wanted, map(read, batches)

    def _why_unreadable(self, name: str) -> str:
        if name in self.unreadable:
            return self.unreadable[name]
        kind = self.rows_in.schema.field(name).type
        return "" if kind == plain_type(kind) else _not_plain(name, kind)

    def require_readable(self, names: Iterable[str]) -> None:
        """Raise a `TableError` for the first column that cannot be read."""
        for name in names:
            problem = self._why_unreadable(name)
            if problem:
                raise TableError(problem)

    def require_publishable(self, names: Iterable[str]) -> None:
        """Raise a `TableError` for the first column that a release cannot hold unchanged."""
        for name in names:
            problem = self._why_unreadable(name) or self.mixed.get(name)
            if problem:
                raise TableError(problem)


class _Survey:
    """What a column of labels holds, batch by batch."""

    def __init__(self, is_text: bool) -> None:
        self.is_text = is_text
        self.kinds: set[str] = set()
        self.size = self.quotes = self.longest = 0
        self.odd = False

    def add(self, column: Any) -> None:
        """Look at the labels of a batch."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_string(column.type) and not self.is_text:  # else Arrow made it of UTF-8
            column.validate(full=True)
        texts = write_texts(column)
        if self.is_text and "string" not in self.kinds:
            self.kinds |= _find_kinds(texts if len(texts) < FEW else pc.unique(texts))
        facts = TextFacts.of(texts)
        self.size += facts.size
        self.quotes += facts.quotes
        self.longest = max(self.longest, facts.longest)
        self.odd |= facts.odd

    def finish(self) -> _Facts:
        """What all batches held."""
        kinds = ("string", "number", "integer")
        kind = next((kind for kind in kinds if kind in self.kinds), "string")
        return _Facts(kind, TextFacts(self.size, self.quotes, self.longest, self.odd))


FEW = 1000
"""Cells that take less time than their repetitions to find."""

INTEGER = r"^(?:0|-?[1-9][0-9]{0,17})$"
NUMBER = r"^[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?$"


def _find_kinds(texts: Any) -> set[str]:
    """The Frictionless types of cells; a leading zero makes a code, which is no number."""
    import pyarrow.compute as pc

    if pc.all(pc.match_substring_regex(texts, INTEGER), min_count=1).as_py():
        return {"integer"}
    filled = texts.filter(pc.not_equal(texts, make_texts([""])[0]))
    whole = pc.match_substring_regex(filled, INTEGER)
    others = filled.filter(pc.invert(whole))
    kinds = {"integer"} if len(others) < len(filled) else set()
    if len(others):
        numbers = pc.all(pc.match_substring_regex(others, NUMBER)).as_py()
        kinds.add("number" if numbers else "string")
    return kinds


def _read_numbers(column: Any, kind: str) -> Any:
    """Read text as whole or other numbers; an empty cell is no value."""
    import pyarrow as pa

    kinds = {"integer": pa.int64(), "number": pa.float64()}
    if kind not in kinds or not pa.types.is_string(column.type):
        return column
    return _read_texts(column, kinds[kind])


def _read_texts(column: Any, kind: Any) -> Any:
    """Read text as another type; an empty cell is no value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(pc.equal(column, make_texts([""])[0]), pa.NULL, column).cast(kind)


def encode_name(name: str) -> bytes:
    """Encode the name of a column; raise a `TableError` for half a character or a zero byte."""
    try:
        encoded = name.encode()
    except UnicodeError:
        raise _cannot_write(name) from None
    if b"\0" in encoded:
        raise _cannot_write(name)
    return encoded


def _cannot_write(name: str) -> TableError:
    shown = name.encode(errors="replace").decode()
    return TableError(
        f"The column {shown!r} has a character that cannot be written, in its name or in a label. "
        "Correct it first."
    )


def _not_plain(name: str, kind: Any) -> str:
    return (
        f"The column {name!r} has the type {kind}, which a release cannot hold. Convert it to a "
        "plain type first, to text for instance."
    )


def _name_type(kind: Any) -> str:
    import pyarrow as pa

    for test, word in (
        (pa.types.is_integer, "integer"),
        (pa.types.is_floating, "number"),
        (pa.types.is_decimal, "number"),
        (pa.types.is_boolean, "boolean"),
        (pa.types.is_date, "date"),
        (pa.types.is_timestamp, "datetime"),
        (pa.types.is_nested, "any"),
    ):
        if test(kind):
            return word
    return "string"


def plain_type(kind: Any) -> Any:
    """Give the type as which a column is read, the same for a plain one; None if there is none."""
    import pyarrow as pa

    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if types.is_dictionary(kind):
        return plain_type(kind.value_type)
    is_text = types.is_string(kind) or types.is_large_string(kind) or kind == pa.string_view()
    for fits, plain in (
        (is_text or types.is_null(kind), pa.string()),
        (types.is_float16(kind), pa.float32()),
        (types.is_date(kind), pa.date32()),
        (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind), kind),
        (types.is_boolean(kind) or types.is_timestamp(kind) or types.is_time(kind), kind),
    ):
        if fits:
            return plain
    return None


def plain_schema(schema: Any) -> Any:
    """The same columns as they are read, without metadata; others keep their type."""
    import pyarrow as pa

    return pa.schema([pa.field(f.name, plain_type(f.type) or f.type) for f in schema])


def make_plain(batch: Any) -> Any:
    """Read the columns of a batch as plain types; a `TableError` names one that cannot be."""
    import pyarrow as pa

    columns, schema = [], plain_schema(batch.schema)
    for wanted, column in zip(schema, batch.columns, strict=True):
        is_extension = isinstance(column.type, pa.BaseExtensionType)
        stored = column.storage if is_extension else column
        try:
            columns.append(stored if stored.type == wanted.type else stored.cast(wanted.type))
        except pa.ArrowException:
            raise TableError(_not_plain(wanted.name, stored.type)) from None
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def scrub(column: Any) -> Any:
    """Copy a column into buffers of its own: no offset, nothing beneath nulls or beyond rows."""
    import pyarrow as pa

    copy = column.take(make_counts(np.arange(len(column))))  # copies rows, and zeros for nulls
    if copy.null_count:
        return copy
    return pa.Array.from_buffers(copy.type, len(copy), [None, *copy.buffers()[1:]])


def _take(rows: Rows, order: Order) -> Any:
    """Rows in memory, in `order`, each column in one piece of its own."""
    import pyarrow as pa

    schema = rows.schema
    whole = pa.Table.from_batches(rows.scan(schema.names), schema)
    columns = []
    for column in whole.columns:
        joined = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        columns.append(scrub(joined if order is None else joined.take(make_counts(order))))
    return pa.table(columns, schema=schema)


def make_counts(values: NDArray[Any]) -> Any:
    """Make an Arrow array of 64-bit whole numbers."""
    import pyarrow as pa

    wide = np.array(values, dtype=np.int64)
    return pa.Array.from_buffers(pa.int64(), len(wide), [None, pa.py_buffer(wide)])


def read_signed(table: Table, name: str) -> Integers:
    """Read a released column of whole numbers of any sign, written in their one form."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.column(name)
    if pa.types.is_string(column.type):
        if not pc.all(pc.match_substring_regex(column, INTEGER)).as_py():
            raise TableError(f"Column {name!r} must hold a whole number in every row.")
        column = column.cast(pa.int64())
    if not pa.types.is_integer(column.type) or column.null_count:
        raise TableError(f"Column {name!r} must hold a whole number in every row.")
    numbers = np.concatenate([np.zeros(0, np.int64), *map(view_numbers, column.chunks)])
    return numbers.astype(np.int64)
