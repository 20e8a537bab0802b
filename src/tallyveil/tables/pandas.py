"""pandas data frames and series: the home of pandas."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.tables.arrow_rebuild import rebuild_array
from tallyveil.tables.base import CountArray, Order, Table, encode_file, write_text
from tallyveil.tables.codes import Codes, encode_floats, encode_objects, encode_values
from tallyveil.tables.counts import convert_numbers, convert_objects, name_type

__all__ = ["PandasTable", "build_frame", "build_pandas_series"]


@dataclass(frozen=True, eq=False)
class PandasTable(Table):
    """A pandas DataFrame; its index goes along."""

    frame: Any
    kind: str = "pandas"
    extension: str = "csv"

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in order."""
        return tuple(str(name) for name in self.frame.columns)

    @property
    def index_names(self) -> tuple[str, ...]:
        """The levels of the index, unless it only numbers the rows."""
        import pandas as pd

        if isinstance(self.frame.index, pd.RangeIndex) and self.frame.index.name is None:
            return ()
        names = enumerate(self.frame.index.names)
        return tuple(f"index {at}" if name is None else str(name) for at, name in names)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.frame)

    def slice(self, start: int, stop: int) -> PandasTable:
        """Give the rows `start` to `stop` as a view."""
        return PandasTable(self.frame.iloc[start:stop])

    def counts(self, name: str) -> Integers:
        """Read a column as counts."""
        series = self._column(name)
        missing = series.isna().to_numpy()
        dtype = series.dtype
        if not missing.any() and dtype.kind != "O" and hasattr(dtype, "numpy_dtype"):
            return convert_numbers(series.to_numpy(dtype.numpy_dtype), name)
        values = series.to_numpy()
        if values.dtype.kind in "iuf":
            return convert_numbers(values, name, missing)
        cells = list(values)
        if missing.any():
            cells[int(missing.argmax())] = None  # reported as the first row without a value
        return convert_objects(cells, name)

    def codes(self, name: str) -> Codes:
        """Encode the labels of a column or index level."""
        if name in self.names:
            return _encode(self._column(name), is_index=False)
        level = self.index_names.index(name)
        return _encode(self.frame.index.get_level_values(level), is_index=True)

    def type_of(self, name: str) -> str:
        """Give the Frictionless type of a column."""
        return name_type(self._column(name).dtype.kind)

    def build_released(
        self, counts: Mapping[str, CountArray], keep: Sequence[str], order: Order = None
    ) -> PandasTable:
        """Build the frame that is published, column by column, in memory of its own."""
        import pandas as pd

        ordered = {name: _take(values, order) for name, values in counts.items()}
        columns, labels = [], []
        for name in keep:
            at = self.names.index(name)
            column = self.frame.iloc[:, at] if order is None else self.frame.iloc[order, at]
            columns.append(ordered[name] if name in ordered else _rebuild(column, name))
            labels.append(self.frame.columns[at])
        added = [name for name in counts if name not in keep]
        columns = [*columns, *(ordered[name] for name in added)]
        frame = pd.DataFrame(dict(enumerate(columns)))
        if self.index_names:  # else row numbers would tell old places
            index = self.frame.index if order is None else self.frame.index[order]
            frame.index = _rebuild_index(index)
        frame.columns = pd.Index([*labels, *added])
        return PandasTable(frame)

    def build_grouped(
        self, by: Sequence[str], labels: Sequence[tuple[Any, ...]], counts: Mapping[str, CountArray]
    ) -> PandasTable:
        """Build a frame with one row for each category."""
        import pandas as pd

        columns: dict[str, Any] = {
            name: [label[at] for label in labels] for at, name in enumerate(by)
        }
        columns |= {name: np.asarray(values, dtype=np.int64) for name, values in counts.items()}
        return PandasTable(pd.DataFrame(columns))

    def native(self) -> Any:
        """Give the frame."""
        return self.frame

    def to_bytes(self) -> bytes:
        """Write the frame as CSV, its index first unless it only numbers the rows."""
        text = self._write("\n")
        if "\r" in text:
            header, *rows = csv.reader(io.StringIO(self._write("\r\n"), newline=""))
            text = write_text(header, list(zip(*rows, strict=True)))
        return encode_file(text)

    def _write(self, line_end: str) -> str:
        text: str = self.frame.to_csv(
            header=list(self.names),
            index=bool(self.index_names),
            index_label=list(self.index_names) or None,
            lineterminator=line_end,
        )
        return text

    def _column(self, name: str) -> Any:
        return self.frame.iloc[:, self.names.index(name)]


def build_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Build a frame of columns of Python values."""
    import pandas as pd

    return pd.DataFrame({name: list(cells) for name, cells in columns.items()})


def build_pandas_series(name: Any, values: CountArray) -> Any:
    """Build a Series of counts."""
    import pandas as pd

    return pd.Series(np.array(values, dtype=np.int64), name=name)


def _encode(column: Any, *, is_index: bool) -> Codes:
    """Encode a Series or an index level.

    A cell without a value has the empty label; an index entry without one is labelled by what it
    prints.
    """
    import pandas as pd

    dtype, missing = column.dtype, np.asarray(column.isna())
    if isinstance(dtype, np.dtype) and dtype.kind == "f":
        return encode_floats(column.to_numpy(), nan_is_missing=not is_index)
    if is_index and missing.any():
        return encode_objects(column, np.zeros_like(missing))
    if dtype.kind == "O" and pd.api.types.infer_dtype(column, skipna=True) == "string":
        filled = column.fillna("") if missing.any() else column
        codes, texts = pd.factorize(filled)
        return Codes(codes, np.asarray(texts, dtype=object))
    if dtype.kind not in "iubmM" and not isinstance(dtype, pd.CategoricalDtype):
        return encode_objects(column, missing)
    codes, found = pd.factorize(column)
    if dtype.kind in "iu" and not missing.any():
        return Codes(codes, np.asarray(found, dtype=np.int64 if dtype.kind == "i" else np.uint64))
    values = [*found, None] if missing.any() else list(found)
    return encode_values(np.where(missing, len(found), codes), values)


def _take(values: CountArray, order: Order) -> Integers:
    taken: Integers = np.array(values if order is None else values[order], dtype=np.int64)
    return taken


def _rebuild(column: Any, name: str) -> Any:
    """Build a Series anew as an array that holds its values and nothing else.

    A view holds rows that are not published, a masked array the values beneath missing ones, a
    category its unused levels and the order in which they came.
    """
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        kept = column.cat.remove_unused_categories().array
        labels = list(map(str, kept.categories))
        order = sorted(range(len(labels)), key=None if dtype.ordered else labels.__getitem__)
        place = np.empty(len(order) + 1, dtype=np.int64)
        place[[*order, -1]] = [*range(len(order)), -1]  # the code -1 is a missing value
        known = pd.Index(_rebuild(pd.Series(kept.categories[order]), name))
        return pd.Categorical.from_codes(place[kept.codes], categories=known, ordered=dtype.ordered)
    if isinstance(dtype, np.dtype):
        return np.array(column, dtype=dtype)
    if isinstance(dtype, pd.ArrowDtype):
        return type(column.array)(rebuild_array(column.array.__arrow_array__(), name))
    return pd.array(list(column), dtype=dtype)


def _rebuild_index(index: Any) -> Any:
    """Build an index of labels anew."""
    import pandas as pd

    levels = [
        _rebuild(index.get_level_values(at).to_series(), str(name))
        for at, name in enumerate(index.names)
    ]
    if isinstance(index, pd.MultiIndex):
        return pd.MultiIndex.from_arrays(levels, names=list(index.names))
    return pd.Index(levels[0], name=index.name)
