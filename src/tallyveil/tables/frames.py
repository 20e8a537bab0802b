"""pandas, Polars, arrays and lists: in through Arrow, and back as they came."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.errors import TableError
from tallyveil.tables.counts import convert_objects
from tallyveil.tables.labels import write_texts
from tallyveil.tables.table import (
    ArrowNative,
    CountArray,
    Held,
    Table,
    encode_name,
    make_counts,
    plain_type,
    read_signed,
)

__all__ = ["rename_array", "wrap"]

ARRAY = "count"
"""The column that an array of counts is."""


def wrap(source: Any) -> Table:
    """Wrap a table in memory by the library that its type belongs to."""
    library, shape = type(source).__module__.partition(".")[0], type(source).__name__
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


@dataclass(frozen=True)
class _Levels:
    """The categories of a column in their own order."""

    values: tuple[Any, ...]

    def keep_only(self, labels: Collection[str]) -> _Levels:
        """Those of them that occur."""
        import pyarrow as pa

        texts = write_texts(pa.array(self.values, from_pandas=True)).to_pylist()
        occurs = [text in labels for text in texts]
        return _Levels(tuple(compress(self.values, occurs)))


@dataclass(frozen=True, eq=False)
class PandasNative:
    """How columns of text, numbers and codes become a data frame; holds types alone.

    `labels` are the columns as the frame names them; `index` are the names of its levels.
    """

    dtypes: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, Any] = field(default_factory=dict)
    index: tuple[tuple[str, Any], ...] = ()
    levels: Mapping[str, _Levels] = field(default_factory=dict)

    def build(self, table: Table) -> Any:
        """Build the frame, its index from the columns that name rows."""
        import pandas as pd

        columns = {at: self._build(table, name) for at, name in enumerate(table.names)}
        frame = pd.DataFrame(columns)
        if table.index_names:
            levels = [self._build(table, name) for name in table.index_names]
            names = [label for _, label in self.index]
            one = len(levels) == 1
            frame.index = (
                pd.Index(levels[0], name=names[0])
                if one
                else pd.MultiIndex.from_arrays(levels, names=names)
            )
        frame.columns = pd.Index([self.labels.get(name, name) for name in table.names])
        return frame

    def _build(self, table: Table, name: str) -> Any:
        import pandas as pd

        column, dtype = table.column(name), self.dtypes.get(name)
        if dtype is None:
            return column.to_pandas().array
        if dtype == "category":
            return self._build_category(column.to_pandas(), self.levels.get(name))
        if isinstance(dtype, pd.ArrowDtype):
            return pd.array(column.combine_chunks().cast(dtype.pyarrow_dtype), dtype=dtype)
        if not isinstance(dtype, np.dtype):
            return pd.array(column.to_pylist(), dtype=dtype)
        values = column.to_pylist() if dtype.kind == "O" else column.to_pandas()
        return np.array(values, dtype=dtype)

    @staticmethod
    def _build_category(values: Any, levels: _Levels | None) -> Any:
        import pandas as pd

        if levels is not None:
            return pd.Categorical(values, categories=list(levels.values), ordered=True)
        return pd.Categorical(values, categories=sorted(values.dropna().unique(), key=str))

    def narrow(self, table: Table) -> PandasNative:
        """Forget the types of columns that are not published, and unused categories."""
        names = table.label_names
        levels = {
            name: levels.keep_only(set(table.codes(name).labels))
            for name, levels in self.levels.items()
            if name in names
        }
        return PandasNative(
            {name: dtype for name, dtype in self.dtypes.items() if name in names},
            {name: label for name, label in self.labels.items() if name in table.names},
            self.index if table.index_names else (),
            levels,
        )

    def forget(self) -> PandasNative:
        """Keep no type."""
        return PandasNative()


def _wrap_pandas(frame: Any) -> Table:
    import pandas as pd

    names = [str(name) for name in frame.columns]
    has_index = not (isinstance(frame.index, pd.RangeIndex) and frame.index.name is None)
    index = [
        (f"index {at}" if name is None else str(name), name)
        for at, name in enumerate(frame.index.names if has_index else ())
    ]
    series = [frame.index.get_level_values(at).to_series() for at in range(len(index))]
    series += [frame.iloc[:, at] for at in range(len(names))]
    every = [*(name for name, _ in index), *names]
    levels, dtypes = {}, {}
    for name, column in zip(every, series, strict=True):
        dtypes[name] = column.dtype
        if isinstance(column.dtype, pd.CategoricalDtype):
            dtypes[name] = "category"
            if column.dtype.ordered:
                levels[name] = _Levels(tuple(column.dtype.categories))
    native = PandasNative(
        dtypes, dict(zip(names, frame.columns, strict=True)), tuple(index), levels
    )
    table = _convert(every, series, "pandas", native)
    return replace(table, index_names=tuple(name for name, _ in index))


@dataclass(frozen=True, eq=False)
class PolarsNative:
    """How columns become a Polars frame; holds types alone."""

    dtypes: Mapping[str, Any] = field(default_factory=dict)
    levels: Mapping[str, _Levels] = field(default_factory=dict)

    def build(self, table: Table) -> Any:
        """Build the frame."""
        import polars as pl

        columns = []
        for name in table.names:
            series = pl.Series(name, table.column(name).combine_chunks())
            dtype = self.dtypes.get(name)
            if dtype == "category":
                levels = self.levels.get(name)
                known = sorted(set(series.drop_nulls())) if levels is None else levels.values
                dtype = pl.Enum(list(known))
            columns.append(series if dtype is None else series.cast(dtype))
        return pl.DataFrame(columns)

    def narrow(self, table: Table) -> PolarsNative:
        """Forget the types of columns that are not published, and unused categories."""
        names = table.label_names
        dtypes = {name: dtype for name, dtype in self.dtypes.items() if name in names}
        levels = {
            name: levels.keep_only(set(table.codes(name).labels))
            for name, levels in self.levels.items()
            if name in names
        }
        return PolarsNative(dtypes, levels)

    def forget(self) -> PolarsNative:
        """Keep no type."""
        return PolarsNative()


def _wrap_polars(frame: Any) -> Table:
    import polars as pl

    dtypes, levels = {}, {}
    for name, dtype in frame.schema.items():
        is_category = isinstance(dtype, (pl.Categorical, pl.Enum))
        dtypes[name] = "category" if is_category else dtype
        if isinstance(dtype, pl.Enum):
            levels[name] = _Levels(tuple(dtype.categories.to_list()))
    series = [frame.get_column(name) for name in frame.columns]
    return _convert(frame.columns, series, "polars", PolarsNative(dtypes, levels))


def _convert(names: Sequence[str], series: Sequence[Any], kind: str, native: Any) -> Table:
    """Convert columns to Arrow; one of several types becomes text, and cannot be published."""
    import pyarrow as pa

    columns, unreadable, mixed = [], {}, {}
    for name, column in zip(names, series, strict=True):
        encode_name(name)
        try:
            array = _to_arrow(column, kind)
        except UnicodeError:
            array = pa.nulls(len(column))
            unreadable[name] = (
                f"The column {name!r} has a character that cannot be written. Correct its labels "
                "first."
            )
        if array is None:
            array = _to_text(column)
            mixed[name] = (
                f"The column {name!r} holds text beside numbers, or values of a type that a "
                "release cannot hold. Convert it to a plain type first, to text or to numbers."
            )
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
    """Write every value of a column as text; no value stays without one."""
    import pyarrow as pa

    gone = column.isna() if hasattr(column, "isna") else column.is_null()
    cells = zip(column.to_list(), gone.to_list(), strict=True)
    return pa.array([None if is_gone else str(cell) for cell, is_gone in cells], pa.string())


@dataclass(frozen=True, eq=False)
class ArrayNative:
    """How released counts become the kind of object that came in; `rebuild` holds no count."""

    rebuild: Callable[[CountArray], Any]

    def build(self, table: Table) -> Any:
        """Build the array, list or series."""
        return self.rebuild(read_signed(table, table.names[0]))

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
    import pyarrow as pa

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
    if values.dtype.kind not in "iufbU":
        column = make_counts(convert_objects(values.tolist(), ARRAY))
    elif values.dtype.kind == "f":
        column = pa.array(values.astype(np.float64))
    else:
        column = pa.array(values)
    rows = Held(pa.Table.from_arrays([column], names=[ARRAY]))
    return Table(rows, "array", native_form=ArrayNative(_choose_rebuild(source)))


def rename_array(table: Table, name: str) -> Table:
    """Give the one column of an array its name."""
    assert isinstance(table.rows_in, Held)
    return replace(table, rows_in=Held(table.rows_in.table.rename_columns([name])), facts={})


def _choose_rebuild(source: Any) -> Callable[[CountArray], Any]:
    """Choose what turns released counts into the kind of `source`.

    Nobody said whether the labels of a series are public: a data frame can say it.
    """
    library, kind = type(source).__module__.partition(".")[0], type(source)
    if kind in (list, tuple):
        return partial(_build_sequence, kind)
    if library in ("pandas", "polars") and kind.__name__ == "Series":
        return partial(_build_series, library, source.name)
    return _build_array


def _build_sequence(kind: Callable[[list[int]], Any], values: CountArray) -> Any:
    return kind(values.tolist())


def _build_series(library: str, name: Any, values: CountArray) -> Any:
    if library == "pandas":
        import pandas as pd

        return pd.Series(np.array(values, dtype=np.int64), name=name)
    import polars as pl

    return pl.Series(name, np.array(values, dtype=np.int64))


def _build_array(values: CountArray) -> Integers:
    return values.astype(np.int64)
