"""pandas, Polars, arrays and lists: in through Arrow, and back as they came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from tallyveil.errors import TableError, replacing
from tallyveil.tables.table import (
    ArrowNative,
    Held,
    Native,
    Table,
    cast_back,
    encode_name,
    plain_type,
    read_signed,
)

ARRAY = "count"
"""The column that an array of counts is."""


def wrap(source: Any) -> Table:
    """Wrap a table in memory; no error of its library is shown."""
    shape = type(source).__name__
    problem = partial(
        TableError,
        f"The table of type {shape} cannot be read: its library stopped with an error, which may "
        "quote data and is not shown. Convert its columns to text or numbers first.",
    )
    with replacing(problem):
        return _wrap(source, shape)


def _wrap(source: Any, shape: str) -> Table:
    """Wrap a table in memory by the library that its type belongs to."""
    library = type(source).__module__.partition(".")[0]
    if library == "pandas" and shape == "DataFrame":
        return _wrap_pandas(source)
    if library == "polars" and shape in ("DataFrame", "LazyFrame"):
        return _wrap_polars(source if shape == "DataFrame" else source.collect())
    if library == "pyarrow" and shape in ("Table", "RecordBatch"):
        import pyarrow as pa

        table = pa.Table.from_batches([source]) if shape == "RecordBatch" else source
        return _wrap_arrow(table)
    return _wrap_array(source)


def _wrap_arrow(table: Any) -> Table:
    import pyarrow as pa

    levels = {}
    for field_in, column in zip(table.schema, table.columns, strict=True):
        if pa.types.is_dictionary(field_in.type) and field_in.type.ordered and column.num_chunks:
            levels[field_in.name] = column.unify_dictionaries().chunk(0).dictionary
    types = {f.name: f.type for f in table.schema if f.type != plain_type(f.type)}
    return Table(Held(table), "arrow", native_form=ArrowNative(types, levels))


@dataclass(frozen=True, eq=False)
class PandasNative(Native):
    """The form of a pandas data frame.

    `labels` are the columns as the frame names them; `index` are the names of its levels.
    """

    labels: Mapping[str, Any] = field(default_factory=dict)
    index: tuple[tuple[str, Any], ...] = ()

    def build(self, table: Table) -> Any:
        """Build the frame, its index from the columns that name rows."""
        import pandas as pd

        columns = {number: self._build(table, name) for number, name in enumerate(table.names)}
        frame = pd.DataFrame(columns)
        if table.index_names:
            levels = [self._build(table, name) for name in table.index_names]
            names = [label for _, label in self.index]
            frame.index = (
                pd.Index(levels[0], name=names[0])
                if len(levels) == 1
                else pd.MultiIndex.from_arrays(levels, names=names)
            )
        frame.columns = pd.Index([self.labels.get(name, name) for name in table.names])
        return frame

    def _build(self, table: Table, name: str) -> Any:
        import pandas as pd

        column, dtype = table.column(name), self.types.get(name)
        if dtype is None:
            return column.to_pandas().array
        if dtype == "category":
            values, levels = column.to_pandas(), self.levels.get(name)
            if levels is not None:
                return pd.Categorical(values, categories=levels.to_pandas(), ordered=True)
            return pd.Categorical(values, categories=sorted(values.dropna().unique(), key=str))
        if isinstance(dtype, pd.ArrowDtype):
            array = cast_back(column.combine_chunks(), dtype.pyarrow_dtype)
            return pd.array(array, dtype=pd.ArrowDtype(array.type))
        if not isinstance(dtype, np.dtype):
            return pd.array(column.to_pylist(), dtype=dtype)
        values = column.to_pylist() if dtype.kind == "O" else column.to_pandas()
        return np.array(values, dtype=dtype)

    def narrow(self, table: Table) -> PandasNative:
        """Forget the types and names of columns that are not published, and unused categories."""
        labels = {name: label for name, label in self.labels.items() if name in table.names}
        index = self.index if table.index_names else ()
        return replace(super().narrow(table), labels=labels, index=index)


def _wrap_pandas(frame: Any) -> Table:
    import pandas as pd

    names = [str(name) for name in frame.columns]
    has_index = _holds_labels(frame.index)
    index = [
        (f"index {number}" if name is None else str(name), name)
        for number, name in enumerate(frame.index.names if has_index else ())
    ]
    series = [frame.index.get_level_values(number).to_series() for number in range(len(index))]
    series += [frame.iloc[:, number] for number in range(len(names))]
    every = [*(name for name, _ in index), *names]
    levels, dtypes = {}, {}
    for name, column in zip(every, series, strict=True):
        dtypes[name] = column.dtype
        if isinstance(column.dtype, pd.CategoricalDtype):
            dtypes[name] = "category"
            if column.dtype.ordered:
                levels[name] = column.dtype.categories
    labels = dict(zip(names, frame.columns, strict=True))
    native = PandasNative(dtypes, _convert_levels(levels), labels, tuple(index))
    table = convert_columns(every, series, "pandas", native)
    return replace(table, index_names=tuple(name for name, _ in index))


def _holds_labels(index: Any) -> bool:
    """Return whether an index holds labels.

    Numbers without a name are places of rows: a table that was sorted or filtered by a
    confidential count has its order there, and a RangeIndex only where nothing moved.
    """
    import pandas as pd

    named = any(name is not None for name in index.names)
    return named or index.nlevels > 1 or not pd.api.types.is_numeric_dtype(index.dtype)


def _convert_levels(levels: Mapping[str, Any]) -> dict[str, Any]:
    """Convert ordered categories to Arrow, unless they are of several types."""
    arrays = {name: _to_arrow(values, "") for name, values in levels.items()}
    return {name: a.cast(plain_type(a.type)) for name, a in arrays.items() if a is not None}


class PolarsNative(Native):
    """The form of a Polars frame."""

    def build(self, table: Table) -> Any:
        """Build the frame."""
        import polars as pl

        columns = []
        for name in table.names:
            series = pl.Series(name, table.column(name).combine_chunks())
            dtype = self.types.get(name)
            if dtype == "category":
                levels = self.levels.get(name)
                values = set(series.drop_nulls()) if levels is None else levels.to_pylist()
                dtype = pl.Enum(sorted(values) if levels is None else values)
            columns.append(series if dtype is None else series.cast(dtype))
        return pl.DataFrame(columns)


def _wrap_polars(frame: Any) -> Table:
    import polars as pl

    levels, dtypes = {}, {}
    for name, dtype in frame.schema.items():
        is_category = isinstance(dtype, (pl.Categorical, pl.Enum))
        dtypes[name] = "category" if is_category else dtype
        if isinstance(dtype, pl.Enum):
            levels[name] = dtype.categories.to_list()
    series = [frame.get_column(name) for name in frame.columns]
    native = PolarsNative(dtypes, _convert_levels(levels))
    return convert_columns(frame.columns, series, "polars", native)


def convert_columns(
    names: Sequence[str], series: Sequence[Any], kind: str, native: Native
) -> Table:
    """Convert columns to Arrow; one of several types becomes text, and cannot be published."""
    import pyarrow as pa

    columns, unreadable, mixed = [], {}, {}
    for name, column in zip(names, series, strict=True):
        encode_name(name)
        odd = (
            f"The column {name!r} holds text and numbers, or values of a type that a "
            "release cannot hold. Convert it to a plain type first, to text or to numbers."
        )
        try:
            array = _to_arrow(column, kind)
            if array is None:
                array, mixed[name] = _to_text(column), odd
        except MemoryError:
            raise
        except UnicodeError:
            array = pa.nulls(len(column))
            unreadable[name] = (
                f"The column {name!r} has a character that cannot be written. Correct its labels "
                "first."
            )
        except Exception:  # an object may raise anything when it is written as text
            array, unreadable[name] = pa.nulls(len(column)), odd
        columns.append(array)
    table = pa.Table.from_arrays(columns, names=list(names))
    return Table(Held(table), kind, native_form=native, unreadable=unreadable, mixed=mixed)


def _to_arrow(column: Any, kind: str) -> Any:
    """Convert a column of one plain type; None if it is not."""
    import pyarrow as pa

    try:
        if kind == "polars":
            return None if str(column.dtype) == "Object" else column.to_arrow()
        array = pa.array(column, from_pandas=True)
    except UnicodeError:
        raise
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    except BaseException as problem:  # how Polars stops for a type that it does not know
        if type(problem).__name__ != "PanicException":
            raise
        return None
    values = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    return None if isinstance(values, pa.BaseExtensionType) else array


def _to_text(column: Any) -> Any:
    """Write every value of a column as text; missing values of a frame stay missing."""
    import pyarrow as pa

    if isinstance(column, np.ndarray):
        return pa.array(list(map(str, column.tolist())), pa.string())
    missing = column.isna() if hasattr(column, "isna") else column.is_null()
    cells = zip(column.to_list(), missing.to_list(), strict=True)
    return pa.array([None if is_missing else str(c) for c, is_missing in cells], pa.string())


@dataclass(frozen=True, eq=False)
class ArrayNative(Native):
    """The kind of array, list or series that came in, and a series' name.

    The labels of a series are not kept: only a data frame can declare its index public.
    """

    kind: type = np.ndarray
    name: Any = None

    def build(self, table: Table) -> Any:
        """Build the array, list or series."""
        values = read_signed(table, table.names[0])
        if self.kind in (list, tuple):
            return self.kind(values.tolist())
        if self.kind is np.ndarray:
            return values
        series = self.kind(values)
        return series.rename(self.name) if self.name is not None else series

    def narrow(self, table: Table) -> ArrayNative:
        """Refuse what an array has no room for."""
        if len(table.names) > 1:
            raise TableError("An array of counts has room for one column; give a table instead.")
        return self

    def forget(self) -> ArrayNative:
        """Refuse: an array has no categories."""
        raise TableError("An array of counts has no categories; give a table for that.")


def _wrap_array(source: Any) -> Table:
    """Wrap a one-dimensional array, list or series of counts as a table of one column, "count"."""
    try:
        values = np.asarray(source)
    except (TypeError, ValueError):
        values = np.empty((0, 0))  # lists of unequal length, and what is no array at all
    if values.ndim != 1:
        raise TableError(
            f"A table is a path, an Arrow, pandas or Polars table, or a one-dimensional array of "
            f"counts. Got {type(source).__name__}."
        )
    if len(values) == 0:
        raise TableError("The table is empty: the array holds no counts.")
    if np.ma.is_masked(source):
        raise TableError("The array has masked values, and a count is needed in every row.")
    kind = type(source)
    if kind.__name__ == "Series" and kind.__module__.startswith(("pandas.", "polars.")):
        native = ArrayNative(kind=kind, name=source.name)
    else:
        native = ArrayNative(kind=kind if kind in (list, tuple) else np.ndarray)
    return convert_columns([ARRAY], [values], "array", native)


def rename_array(table: Table, name: str) -> Table:
    """Give the one column of an array its name."""
    assert isinstance(table.rows_in, Held)
    rows = Held(table.rows_in.table.rename_columns([name]))
    whys = [why.replace(repr(ARRAY), repr(name)) for why in table.unreadable.values()]
    unreadable = dict(zip([name], whys, strict=False))
    return replace(table, rows_in=rows, unreadable=unreadable, facts={})
