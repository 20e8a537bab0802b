"""The one table: columns of plain Arrow types, read in batches as often as needed.

A table knows where its rows are (`Rows`): in memory, in a file, or as the rows of another table
with new counts. One place, `_take`, removes what could reveal rows or columns that are not
published: metadata, slices, values beneath nulls, dictionaries.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers, Mask
from tallyveil.errors import TableError, replacing
from tallyveil.tables.counts import RowError, convert_column
from tallyveil.tables.labels import (
    Codes,
    encode_column,
    fill_empty,
    make_texts,
    view_numbers,
    write_texts,
)
from tallyveil.tables.source import Source
from tallyveil.tables.write import TextFacts, bound_csv, bound_parquet, write_csv, write_parquet

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 65_536
"""Most rows of a batch; batches of a text file have a size in bytes instead."""

LONGEST_CELL = 131_072
"""Bytes of the longest name or label that is published."""

CountArray: TypeAlias = NDArray[np.integer[Any]]
"""Counts of any integer type, compact or not."""

Order: TypeAlias = Integers | None
"""Row numbers in the new order, or None for the order they have."""


class Rows(Protocol):
    """Rows that can be read as often as needed, the same ones every time."""

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""

    @property
    def count(self) -> int:
        """Number of rows."""

    def scan(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read some columns batch by batch, in the order of the rows."""

    def require_same(self) -> None:
        """Raise a `TableError` if a file was changed since its rows were counted."""


@dataclass(frozen=True)
class FileIdentity:
    """The file at a path, and when it was changed last."""

    path: Path
    facts: tuple[int, ...]

    @classmethod
    def of(cls, path: Path, opened: int | None = None) -> FileIdentity:
        """Identify the file at a path, or that was opened there."""
        facts = os.stat(path if opened is None else opened)
        times = facts.st_mtime_ns, facts.st_ctime_ns
        return cls(path, (facts.st_dev, facts.st_ino, facts.st_size, *times))

    def require_same(self, opened: int | None = None) -> None:
        """Raise a `TableError` if the file was replaced or written to, or another was opened."""
        try:
            same = FileIdentity.of(self.path, opened) == self
        except OSError:
            same = False
        if not same:
            raise TableError(
                "The table was changed while it was read, so its rows may differ from the checked "
                "ones. Nothing was published. Start again when nobody writes to it."
            )


@dataclass(frozen=True, eq=False)
class Held:
    """Rows in memory; dictionaries and extensions are read as their values."""

    table: pa.Table

    def __reduce__(self) -> Any:
        return Held, (self.table,)

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and plain types of the columns; null for a type that is not plain."""
        return plain_schema(self.table.schema)

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.table.num_rows)

    def scan(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read some columns batch by batch."""
        for batch in self.table.select(list(names)).to_batches(max_chunksize=BATCH_ROWS):
            yield make_plain(batch)

    def require_same(self) -> None:
        """Return at once: rows in memory do not change."""


@dataclass(frozen=True, eq=False)
class _Derived:
    """Rows that are made from other rows as they are read."""

    rows: Rows

    @property
    def count(self) -> int:
        """Number of rows."""
        return self.rows.count

    def require_same(self) -> None:
        """Raise a `TableError` if a file was changed since its rows were counted."""
        self.rows.require_same()


@dataclass(frozen=True, eq=False)
class Chosen(_Derived):
    """Some of the rows of a table, or of its first rows."""

    stays: Mask

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self.rows.schema

    @property
    def count(self) -> int:
        """Number of rows that stay."""
        return int(np.count_nonzero(self.stays))

    def scan(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the rows that stay."""
        start, length = 0, len(self.stays)
        for batch in self.rows.scan(names or self.schema.names[:1]) if length else ():
            stays = np.flatnonzero(self.stays[start : start + batch.num_rows])
            start += batch.num_rows
            yield batch.select(list(names)).take(make_counts(stays))
            if start > length < self.rows.count:
                return


@dataclass(frozen=True, eq=False)
class Published(_Derived):
    """The columns `keep` of other rows with released counts, new ones last."""

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

    def scan(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read labels and counts; `_take` and the writers leave all else of their memory out."""
        import pyarrow as pa

        schema = pa.schema([self.schema.field(name) for name in names])
        labels = [name for name in names if name not in self.counts]
        start = 0
        for size, batch in self._scan_labels(labels):
            part = slice(start, start + size)
            columns = [
                make_counts(self.counts[name][part]) if name in self.counts else batch.column(name)
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


@dataclass(frozen=True, eq=False)
class Typed(_Derived):
    """Rows with columns of text, read as the types of a schema."""

    schema: Any

    def scan(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read some columns batch by batch."""
        import pyarrow as pa

        schema = pa.schema([self.schema.field(name) for name in names])
        for batch in self.rows.scan(names):
            pairs = zip(batch.columns, schema.types, strict=True)
            columns = [c if c.type == kind else _read_texts(c, kind) for c, kind in pairs]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


@dataclass(frozen=True, eq=False)
class Native:
    """The form that a published table takes again; holds no row.

    These are the types of columns, and the values of ordered categories in their order.
    """

    types: Mapping[str, Any] = field(default_factory=dict)
    levels: Mapping[str, Any] = field(default_factory=dict)

    def build(self, table: Table) -> Any:
        """Build the frame, array or Arrow table."""
        raise NotImplementedError

    def narrow(self, table: Table) -> Self:
        """Keep the types of published labels, and the categories that occur."""
        import pyarrow.compute as pc

        names = table.label_names
        levels = {
            name: values.filter(pc.is_in(values, value_set=pc.unique(table.column(name))))
            for name, values in self.levels.items()
            if name in names
        }
        types = {name: kind for name, kind in self.types.items() if name in names}
        return replace(self, types=types, levels=levels)

    def forget(self) -> Self:
        """Forget every column: the columns of the published table come from a public list."""
        return type(self)()


class ArrowNative(Native):
    """A pyarrow table: files give one too, with whole and other numbers as numbers."""

    def build(self, table: Table) -> Any:
        """Build the table, dictionaries anew from the rows, every column in one piece."""
        import pyarrow as pa

        columns, fields = [], []
        for name in table.written_names:
            column, kind = table.column(name).combine_chunks(), self.types.get(name)
            if kind is None and table.is_text and pa.types.is_string(column.type):
                numbers = {"integer": pa.int64(), "number": pa.float64()}.get(table.type_of(name))
                column = column if numbers is None else _read_texts(column, numbers)
            elif kind is not None:
                column = cast_back(column, kind, self.levels.get(name))
            columns.append(column)
            fields.append(pa.field(name, column.type))
        return pa.table(columns, schema=pa.schema(fields))


def cast_back(column: Any, kind: Any, levels: Any = None) -> Any:
    """Cast a plain column to the type that it had; a dictionary is made anew."""
    import pyarrow as pa

    if pa.types.is_null(kind):
        return pa.nulls(len(column))
    return _encode_again(column, levels) if pa.types.is_dictionary(kind) else column.cast(kind)


def _encode_again(column: Any, levels: Any) -> Any:
    """Encode a column by the values that occur: in their own order, or sorted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_ordered = levels is not None
    if levels is None:
        levels = pc.drop_null(pc.unique(column))
        levels = levels.take(pc.sort_indices(levels))
    codes = pc.index_in(column, value_set=levels)
    return pa.DictionaryArray.from_arrays(codes, levels, ordered=is_ordered)


@dataclass(frozen=True, eq=False)
class Table:
    """A table from any library or file.

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
    options: Source = field(default_factory=Source)
    facts: dict[str, TextFacts] = field(default_factory=dict)

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
    def rows(self) -> int:
        """Number of rows."""
        return self.rows_in.count

    def scan(self, names: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read some columns, or all, batch by batch; each must be readable."""
        names = self.written_names if names is None else names
        self.require_readable(names)
        yield from self.rows_in.scan(names)

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Table]:
        """Yield some columns, or all readable ones, as tables of consecutive rows."""
        import pyarrow as pa

        if names is None:
            names = self.readable_names
        for batch in self.scan(list(dict.fromkeys(names))):
            rows = Held(pa.Table.from_batches([batch]))
            yield replace(self, rows_in=rows, facts=dict(self.facts))

    def slice(self, start: int, stop: int) -> Table:
        """Return the rows from `start` to before `stop`; of the others, later ones are not read."""
        return self.leave_out(np.arange(min(stop, self.rows)) >= start)

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
        """Yield a column batch by batch: its counts, and the column they are read from."""
        start = 0
        for batch in self.scan([name]):
            column = batch.column(0)
            try:
                counts = convert_column(column, name, self.options)
            except RowError as error:
                raise RowError(name, start + error.row, error.what) from None
            start += len(counts)
            yield counts, column

    def codes(self, name: str) -> Codes:
        """Encode the labels of a column; only what occurs has a code."""
        return encode_column(self.column(name))

    def labels(self, name: str) -> list[str]:
        """Return the label of each row, empty for no value."""
        labels: list[str] = fill_empty(write_texts(self.column(name))).to_pylist()
        return labels

    def list_types(self) -> dict[str, str]:
        """List the type of every column except the index, in one pass over the rows."""
        if self.is_text:
            self.measure([n for n in self.readable_names if n not in self.index_names])
        return {name: self.type_of(name) for name in self.names}

    def type_of(self, name: str) -> str:
        """Return the Frictionless type of a column, such as integer or string."""
        kind = self.rows_in.schema.field(name).type
        if self._why_unreadable(name) or name in self.mixed:
            return "any"
        if not (self.is_text and str(kind) in ("string", "double")):
            return _name_type(kind)
        others = self.label_names if self.released else ()  # measured in the same pass
        return self.measure([*dict.fromkeys((name, *others))])[name].kind or "string"

    def measure(
        self, names: Sequence[str], visit: Callable[[pa.RecordBatch], None] | None = None
    ) -> dict[str, TextFacts]:
        """Measure columns of labels that are new, in one pass; `visit` sees every column."""
        facts = {name: TextFacts() for name in names if name not in self.facts}
        scanned = list(names) if visit else list(facts)
        for batch in self.scan(scanned) if scanned else ():
            if visit is not None:
                visit(batch)
            for name, fact in facts.items():
                try:
                    facts[name] = fact.join(self._measure_labels(batch.column(name), fact.kind))
                except TableError:
                    raise
                except (UnicodeError, ValueError):
                    raise _cannot_write(name) from None
        self.facts.update(facts)
        return {name: self.facts[name] for name in names}

    def _measure_labels(self, column: Any, kind: str) -> TextFacts:
        """Measure the labels of a batch; earlier batches were of a kind."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_integer(column.type):
            return TextFacts.of_integers(column)
        texts = write_texts(column)
        if self.is_text and kind != "string":
            kind = _find_kind(texts if len(texts) < FEW else pc.unique(texts))
        return TextFacts.of(texts, kind)

    def leave_out(self, stays: Mask) -> Table:
        """Return the rows that stay; what they hold is inferred anew."""
        return replace(self, rows_in=Chosen(self.rows_in, stays), facts={})

    def build_released(
        self, counts: Mapping[str, CountArray], keep: Sequence[str], order: Order = None
    ) -> Table:
        """Build the published table: the columns `keep`, with released counts as int64.

        Counts of a name that is not in `keep` become new columns, after the others. Counts are in
        the row order of this table, the result in `order`. The labels of a file are read when they
        are written, unless rows are put in order.
        """
        names = (*self.index_names, *keep)
        labels = {*names} - {*counts}
        self.require_publishable(name for name in names if name in labels)
        rows: Rows = Published(self.rows_in, dict(counts), names)
        if order is not None or isinstance(self.rows_in, Held):
            rows = Held(_take(rows, order))
        facts = {name: fact for name, fact in self.facts.items() if name in labels}
        built = replace(self, rows_in=rows, unreadable={}, mixed={}, options=Source(), facts=facts)
        built = replace(built, released=tuple(counts))
        return replace(built, native_form=self.native_form.narrow(built))

    def build_grouped(
        self, by: Sequence[str], labels: Sequence[tuple[Any, ...]], counts: Mapping[str, CountArray]
    ) -> Table:
        """Build a table with one row for each public category; nothing of this one goes along."""
        built = Table.of_categories(by, labels, counts)
        native = self.native_form.forget()
        return replace(built, kind=self.kind, format=self.format, native_form=native)

    @classmethod
    def of_categories(
        cls, by: Sequence[str], labels: Sequence[tuple[Any, ...]], counts: Mapping[str, CountArray]
    ) -> Table:
        """Build a table of the columns `by` and the counts from a public list alone.

        The type of a column of a confidential table may reveal a row, such as one without a value.
        """
        import pyarrow as pa

        columns = {name: pa.array([label[k] for label in labels]) for k, name in enumerate(by)}
        fields = [pa.field(name, column.type) for name, column in columns.items()]
        fields += [pa.field(name, pa.int64()) for name in counts]
        arrays = [*columns.values(), *map(make_counts, counts.values())]
        return cls(Held(pa.table(arrays, schema=pa.schema(fields))), released=tuple(counts))

    def native(self) -> Any:
        """Return the table as the kind that came in; a file gives a pyarrow table."""
        problem = partial(
            TableError,
            "The released table cannot be given in the types that came in. Convert the public "
            "columns to text or numbers first.",
        )
        with replacing(problem):
            return self.native_form.build(self)

    def require_writable(self) -> int:
        """Refuse what the file, or the kind that came in, cannot hold; return a bound on its size.

        Nothing but labels, names and types decides what is refused, and they are public.
        """
        import pyarrow as pa

        self.rows_in.require_same()
        for name in self.written_names:
            if len(encode_name(name)) > LONGEST_CELL:
                raise TableError(f"A column has a name of more than {LONGEST_CELL:,} bytes.")
        if self.written_names[0].startswith("\ufeff"):
            raise TableError(
                "The name of the first column begins with a byte-order mark, a character that "
                "cannot be written there. Correct the name."
            )
        facts = self.measure(self.label_names)
        for name, fact in facts.items():
            if fact.longest > LONGEST_CELL:
                raise TableError(
                    f"The column {name!r} has a label of more than {LONGEST_CELL:,} bytes. Shorten "
                    "it, or leave the column out of 'keep'."
                )
        self.slice(0, FEW).native()
        for column in self._read_whole_numbers().schema if self.format == "parquet" else ():
            with replacing(partial(TableError, _not_plain(column.name, column.type))):
                write_parquet(io.BytesIO(), pa.schema([column]), ())
        bound = bound_csv if self.format == "csv" else bound_parquet
        header = sum(len(name.encode()) + 3 for name in self.written_names)
        return header + bound(facts, self.rows, len(self.released))

    def write(self, file: IO[bytes]) -> None:
        """Write the file batch by batch; equal tables give equal bytes."""
        self.rows_in.require_same()
        if self.format == "csv":
            write_csv(file, self.written_names, self.scan())
        else:
            typed = self._read_whole_numbers()
            write_parquet(file, typed.schema, typed.scan(self.written_names))
        self.rows_in.require_same()

    def to_bytes(self) -> bytes:
        """Write the file into memory."""
        buffer = io.BytesIO()
        self.write(buffer)
        return buffer.getvalue()

    def reopen(self, open_rows: Callable[[Sequence[str], int], Rows]) -> Table:
        """Return the table after it was written: a long one refers to the rows in its file.

        The rows are opened by names and number.
        """
        if isinstance(self.rows_in, Held):
            return self
        written = open_rows(self.written_names, self.rows)
        same = self.is_text or written.schema.equals(self.rows_in.schema)
        return replace(self, rows_in=written if same else Typed(written, self.rows_in.schema))

    def hold(self) -> Table:
        """Return the table in memory."""
        if isinstance(self.rows_in, Held):
            return self
        self.rows_in.require_same()
        return replace(self, rows_in=Held(_take(self.rows_in, None)))

    def __reduce__(self) -> Any:
        """Copy the rows, without any reference to the file that they are in."""
        held = self.hold()
        facts = held.kind, held.format, held.is_text, held.index_names, held.native_form
        return Table, (held.rows_in, *facts, held.released)

    def _read_whole_numbers(self) -> Typed:
        """Read columns of text that hold nothing but whole numbers as numbers, for Parquet."""
        import pyarrow as pa

        fields = []
        for name in self.written_names:
            kind = self.rows_in.schema.field(name).type
            if self.is_text and kind == pa.string() and self.type_of(name) == "integer":
                kind = pa.int64()
            fields.append(pa.field(name, kind, name not in self.released))
        return Typed(self.rows_in, pa.schema(fields))

    @property
    def readable_names(self) -> list[str]:
        """Every column of the file that can be read."""
        return [name for name in self.written_names if not self._why_unreadable(name)]

    def _why_unreadable(self, name: str) -> str:
        if name in self.unreadable:
            return self.unreadable[name]
        kind = self.rows_in.schema.field(name).type
        return "" if kind == plain_type(kind) else _not_plain(name, kind)

    def require_readable(self, names: Iterable[str]) -> None:
        """Raise a `TableError` for the first column that cannot be read."""
        _raise_first(map(self._why_unreadable, names))

    def require_publishable(self, names: Iterable[str]) -> None:
        """Raise a `TableError` for the first column that a release cannot hold unchanged."""
        _raise_first(self._why_unreadable(name) or self.mixed.get(name) for name in names)


FEW = 1000
"""Cells that take less time than their repetitions to find."""

INTEGER = r"^(?:0|-?[1-9][0-9]{0,17})$"
NUMBER = r"^[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?$"


def _find_kind(texts: Any) -> str:
    """Find the Frictionless type of cells; a leading zero makes a code, which is no number."""
    import pyarrow.compute as pc

    if pc.all(pc.match_substring_regex(texts, INTEGER), min_count=1).as_py():
        return "integer"
    filled = texts.filter(pc.not_equal(texts, make_texts([""])[0]))
    others = filled.filter(pc.invert(pc.match_substring_regex(filled, INTEGER)))
    if not len(others):
        return "integer" if len(filled) else ""
    return "number" if pc.all(pc.match_substring_regex(others, NUMBER)).as_py() else "string"


def _read_texts(column: Any, kind: Any) -> Any:
    """Read text as another type; an empty cell is no value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(pc.equal(column, make_texts([""])[0]), pa.NULL, column).cast(kind)


def _raise_first(problems: Iterable[str | None]) -> None:
    """Raise a `TableError` for the first problem, if there is one."""
    problem = next(filter(None, problems), None)
    if problem:
        raise TableError(problem)


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
    """Return the type that a column is read as, the same for a plain one; None if there is none."""
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
    """Return the schema of columns as they are read, without metadata; others keep their type."""
    import pyarrow as pa

    return pa.schema([pa.field(f.name, plain_type(f.type) or f.type) for f in schema])


def make_plain(batch: Any) -> Any:
    """Read the columns of a batch as plain types; a `TableError` names one that cannot be."""
    import pyarrow as pa

    columns, schema = [], plain_schema(batch.schema)
    for plain, column in zip(schema, batch.columns, strict=True):
        is_extension = isinstance(column.type, pa.BaseExtensionType)
        stored = column.storage if is_extension else column
        with replacing(partial(TableError, _not_plain(plain.name, stored.type))):
            columns.append(stored if stored.type == plain.type else stored.cast(plain.type))
        if pa.types.is_string(plain.type):
            with replacing(partial(_cannot_write, plain.name)):
                columns[-1].validate(full=True)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _take(rows: Rows, order: Order) -> Any:
    """Copy rows into memory, in `order`: no offset, nothing beneath nulls or beyond rows."""
    import pyarrow as pa

    schema, columns = rows.schema, []
    for column in pa.Table.from_batches(rows.scan(schema.names), schema).columns:
        joined = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        places = make_counts(np.arange(len(joined)) if order is None else order)
        copy = joined.take(places)  # zeros for nulls
        if not copy.null_count:
            copy = pa.Array.from_buffers(copy.type, len(copy), [None, *copy.buffers()[1:]])
        columns.append(copy)
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
    is_text = pa.types.is_string(column.type)
    if is_text and pc.all(pc.match_substring_regex(column, INTEGER)).as_py():
        column = column.cast(pa.int64())
    if not pa.types.is_integer(column.type) or column.null_count:
        raise TableError(f"Column {name!r} must hold a whole number in every row.")
    numbers = np.concatenate([np.zeros(0, np.int64), *map(view_numbers, column.chunks)])
    return numbers.astype(np.int64)
