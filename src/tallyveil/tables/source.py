"""Tables in and out: a table leaves as the kind it came in as.

Each engine is one frozen class with the same small surface (`Table`) in a module of its own,
the only one that imports it, so that everything after this module sees columns, counts and
labels and never an engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tallyveil.errors import TableError
from tallyveil.tables.counts import (
    Counts,
    counts_of_numbers,
    counts_of_objects,
    counts_of_text,
    letter_type,
    require_fits,
)
from tallyveil.tables.delimited import read_delimited

__all__ = ["Table", "read_table"]

Order = NDArray[Any] | None
TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".txt")
PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".arrow", ".feather", ".ipc")


class Table(Protocol):
    """What the rest of the package knows of a table."""

    @property
    def kind(self) -> str:
        """csv, tsv, parquet, arrow, pandas, polars or array."""

    @property
    def extension(self) -> str:
        """The ending of the file that `to_bytes` fills."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in order."""

    @property
    def index_names(self) -> tuple[str, ...]:
        """Labels beside the columns that name a row (a pandas index), if any."""

    @property
    def rows(self) -> int:
        """How many rows there are."""

    def counts(self, name: str) -> Counts:
        """A column as counts, or a `TableError` that says which row is not one."""

    def labels(self, name: str) -> Sequence[str]:
        """A column (or index level) as text, for comparing categories."""

    def type_of(self, name: str) -> str:
        """The Frictionless type of a column."""

    def require_room(self, name: str, upper: int) -> None:
        """Raise a `TableError` unless the column's type can hold every count up to `upper`."""

    def released(
        self, counts: Mapping[str, Counts], keep: Sequence[str], order: Order = None
    ) -> Table:
        """The columns `keep`, in row order `order`, with `counts` in place of the old ones."""

    def grouped(
        self, by: Sequence[str], labels: Sequence[tuple[str, ...]], counts: Mapping[str, Counts]
    ) -> Table:
        """A new table of the same kind: one row per category, its labels and its counts."""

    def native(self) -> Any:
        """The table as the kind that came in."""

    def to_bytes(self) -> bytes:
        """The table as a file; equal tables give equal bytes."""


def read_table(source: Any, delimiter: str | None = None, encoding: str = "utf-8") -> Table:
    """`source` as a `Table`: a path, an Arrow, pandas or Polars table, or an array of counts.

    Two columns (or index levels) of one name are refused: one of them could be published as
    it is in place of the other.
    """
    if isinstance(source, (str, Path)):
        table = _read_file(Path(source), delimiter, encoding)
    else:
        table = _in_memory(source)
    names = (*table.names, *table.index_names)
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise TableError(
            f"Two columns are called {repeated[0]!r}. Every column needs its own name."
        )
    return table


def _in_memory(source: Any) -> Table:
    library = type(source).__module__.partition(".")[0]
    shape = type(source).__name__
    if library == "pandas" and shape == "DataFrame":
        from tallyveil.tables.pandas import pandas_table

        return pandas_table(source)
    if library == "polars" and shape in ("DataFrame", "LazyFrame"):
        from tallyveil.tables.polars import polars_table

        return polars_table(source)
    if library == "pyarrow" and shape in ("Table", "RecordBatch"):
        from tallyveil.tables.arrow import arrow_table

        return arrow_table(source)
    return ArrayTable.of(source)


def _read_file(path: Path, delimiter: str | None, encoding: str) -> Table:
    ending = path.suffix.lower()
    if not path.exists():
        raise TableError(f"There is no file {str(path)!r}.")
    if path.is_dir():
        raise TableError(f"{str(path)!r} is a folder; a table is one file.")
    if ending in TEXT_ENDINGS:
        return read_delimited(path, delimiter, encoding)
    if ending in PARQUET_ENDINGS + ARROW_ENDINGS:
        from tallyveil.tables.arrow import read_arrow

        return read_arrow(path, "parquet" if ending in PARQUET_ENDINGS else "arrow")
    known = ", ".join(TEXT_ENDINGS + PARQUET_ENDINGS + ARROW_ENDINGS)
    raise TableError(f"{path.name!r} is not a kind of table that is read. Known endings: {known}.")


@dataclass(frozen=True, eq=False)
class ArrayTable:
    """A plain array of counts (or a Series), under one name."""

    values: NDArray[Any]
    rebuild: Callable[[NDArray[Any]], Any]
    name: str = "count"
    kind: str = "array"
    extension: str = "csv"

    @classmethod
    def of(cls, source: Any) -> ArrayTable:
        """`source` as one column; anything that is not one-dimensional is refused."""
        try:
            values = np.asarray(source)
        except (TypeError, ValueError):
            raise _unknown_kind(source) from None
        if values.ndim != 1:
            raise _unknown_kind(source)
        if len(values) == 0:
            raise TableError("The table is empty: the array holds no counts.")
        return cls(values, _rebuilder(source))

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def index_names(self) -> tuple[str, ...]:
        return ()

    @property
    def rows(self) -> int:
        return len(self.values)

    def counts(self, name: str) -> Counts:
        if self.values.dtype.kind in "iuf":
            missing = np.zeros(len(self.values), dtype=bool)
            return counts_of_numbers(self.values, name, missing)
        if self.values.dtype.kind == "U":
            return counts_of_text(self.values.tolist(), name)
        return counts_of_objects(self.values.tolist(), name)

    def labels(self, name: str) -> Sequence[str]:
        return [str(value) for value in self.values.tolist()]

    def type_of(self, name: str) -> str:
        return letter_type(self.values.dtype.kind)

    def require_room(self, name: str, upper: int) -> None:
        if self.values.dtype.kind in "iuf":
            held = np.array([0, upper]).astype(self.values.dtype)
            require_fits(held, name, str(self.values.dtype), upper)

    def released(
        self, counts: Mapping[str, Counts], keep: Sequence[str], order: Order = None
    ) -> ArrayTable:
        values = counts[self.name]
        return ArrayTable(values if order is None else values[order], self.rebuild, self.name)

    def grouped(
        self, by: Sequence[str], labels: Sequence[tuple[str, ...]], counts: Mapping[str, Counts]
    ) -> ArrayTable:
        raise TableError("An array of counts has no categories; give a table for that.")

    def native(self) -> Any:
        return self.rebuild(self.values)

    def to_bytes(self) -> bytes:
        return "".join(f"{cell}\n" for cell in (self.name, *self.values.tolist())).encode()


def _rebuilder(source: Any) -> Callable[[NDArray[Any]], Any]:
    """What turns released counts into the kind of `source`; it keeps no value of `source`."""
    library, kind = type(source).__module__.partition(".")[0], type(source)
    if kind in (list, tuple):
        return lambda values: kind(values.tolist())
    if isinstance(source, np.ndarray):
        wanted = source.dtype if source.dtype.kind in "iuf" else np.dtype(np.int64)
        return lambda values: values.astype(wanted)
    if library == "pandas" and kind.__name__ == "Series":
        from tallyveil.tables.pandas import pandas_series

        return pandas_series(source)
    if library == "polars" and kind.__name__ == "Series":
        from tallyveil.tables.polars import polars_series

        return polars_series(source)
    return lambda values: values


def _unknown_kind(source: Any) -> TableError:
    return TableError(
        f"A table is a path, an Arrow, pandas or Polars table, or a one-dimensional array of "
        f"counts. Got {type(source).__name__}."
    )
