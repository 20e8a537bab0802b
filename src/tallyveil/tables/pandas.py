"""pandas data frames and series: the home of pandas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.tables.counts import (
    Counts,
    counts_of_numbers,
    counts_of_objects,
    letter_type,
    require_fits,
)

__all__ = ["pandas_series", "pandas_table"]

Order = NDArray[Any] | None


def pandas_table(source: Any) -> PandasTable:
    """A pandas DataFrame as a table."""
    return PandasTable(source)


@dataclass(frozen=True, eq=False)
class PandasTable:
    """A pandas DataFrame; its index goes along."""

    frame: Any
    kind: str = "pandas"
    extension: str = "csv"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(str(name) for name in self.frame.columns)

    @property
    def index_names(self) -> tuple[str, ...]:
        import pandas as pd

        if isinstance(self.frame.index, pd.RangeIndex):
            return ()
        return tuple(name or f"index {at}" for at, name in enumerate(self.frame.index.names))

    @property
    def rows(self) -> int:
        return len(self.frame)

    def _series(self, name: str) -> Any:
        return self.frame.iloc[:, self.names.index(name)]

    def counts(self, name: str) -> Counts:
        return _series_counts(self._series(name), name)

    def labels(self, name: str) -> Sequence[str]:
        if name in self.names:
            series = self._series(name)
            return ["" if gone else str(v) for v, gone in zip(series, series.isna(), strict=True)]
        level = self.index_names.index(name)
        return [str(value) for value in self.frame.index.get_level_values(level)]

    def type_of(self, name: str) -> str:
        return letter_type(self._series(name).dtype.kind)

    def require_room(self, name: str, upper: int) -> None:
        dtype = self._series(name).dtype
        try:
            with np.errstate(all="ignore"):
                held = self._as_column(np.array([0, upper]), name).to_numpy()
        except (TypeError, ValueError, OverflowError):
            held = np.zeros(1)
        require_fits(np.asarray(held), name, str(dtype), upper)

    def _as_column(self, values: NDArray[Any], name: str, index: Any = None) -> Any:
        import pandas as pd

        dtype = self._series(name).dtype
        if dtype.kind == "O":
            return pd.Series(values.tolist(), index=index, dtype=object)
        return pd.Series(values, index=index).astype(dtype)

    def released(
        self, counts: Mapping[str, Counts], keep: Sequence[str], order: Order = None
    ) -> PandasTable:
        where = [self.names.index(name) for name in keep]
        frame = self.frame.iloc[:, where].copy()
        for name, values in counts.items():
            at = list(keep).index(name)
            frame.isetitem(at, self._as_column(values, name, self.frame.index))
        frame.attrs = {}  # free-form notes may be confidential
        if order is not None:
            frame = frame.iloc[order]
            if not self.index_names:  # else the index would tell the rows' old places
                frame = frame.reset_index(drop=True)
        for at in range(frame.shape[1]):
            frame.isetitem(at, _without_traces(frame.iloc[:, at]))
        return PandasTable(frame)

    def grouped(
        self, by: Sequence[str], labels: Sequence[tuple[str, ...]], counts: Mapping[str, Counts]
    ) -> PandasTable:
        import pandas as pd

        columns: dict[str, Any] = {}
        for at, name in enumerate(by):
            text, dtype = pd.Series([label[at] for label in labels]), self._series(name).dtype
            if isinstance(dtype, pd.CategoricalDtype):
                # the column's own levels say which categories occur; the public list does not
                dtype = pd.CategoricalDtype(list(dict.fromkeys(text)), ordered=dtype.ordered)
            columns[name] = text.astype(dtype)
        return PandasTable(pd.DataFrame(columns | dict(counts)))

    def native(self) -> Any:
        return self.frame

    def to_bytes(self) -> bytes:
        text: str = self.frame.to_csv(
            index=bool(self.index_names),
            index_label=list(self.index_names) or None,
            lineterminator="\n",
        )
        return text.encode()


def _without_traces(series: Any) -> Any:
    """A column whose levels, if it has any, are only those that occur, in no telling order."""
    import pandas as pd

    if not isinstance(series.dtype, pd.CategoricalDtype):
        return series
    kept = series.cat.remove_unused_categories()
    if kept.cat.ordered:
        return kept
    return kept.cat.reorder_categories(sorted(kept.cat.categories, key=str))


def _series_counts(series: Any, name: str) -> Counts:
    """Counts of a pandas Series of any type."""
    missing = series.isna().to_numpy()
    if missing.any() or series.dtype.kind == "O" or not hasattr(series.dtype, "numpy_dtype"):
        values = series.to_numpy()
        if values.dtype.kind in "iuf":
            return counts_of_numbers(values, name, missing)
        return counts_of_objects([None if m else v for v, m in zip(values, missing, strict=True)],
                                 name)  # fmt: skip
    return counts_of_numbers(series.to_numpy(series.dtype.numpy_dtype), name, missing)


def pandas_series(like: Any) -> Callable[[NDArray[Any]], Any]:
    """What turns an array into a Series with the index, name and type of `like`."""
    import pandas as pd

    index, name, dtype = like.index, like.name, like.dtype
    return lambda values: pd.Series(values, index=index, name=name).astype(dtype)
