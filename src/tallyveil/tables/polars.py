"""Polars data frames and series: the home of polars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.tables.counts import Counts, counts_of_numbers, counts_of_objects, require_fits

__all__ = ["polars_series", "polars_table"]

Order = NDArray[Any] | None


def polars_table(source: Any) -> PolarsTable:
    """A Polars DataFrame, or a LazyFrame once it is collected, as a table."""
    return PolarsTable(source.collect() if hasattr(source, "collect") else source)


@dataclass(frozen=True, eq=False)
class PolarsTable:
    """A Polars DataFrame."""

    frame: Any
    kind: str = "polars"
    extension: str = "csv"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.frame.columns)

    @property
    def index_names(self) -> tuple[str, ...]:
        return ()

    @property
    def rows(self) -> int:
        return int(self.frame.height)

    def counts(self, name: str) -> Counts:
        series = self.frame.get_column(name)
        missing = series.is_null().to_numpy()
        if series.dtype.is_integer() or series.dtype.is_float():
            return counts_of_numbers(series.fill_null(0).to_numpy(), name, missing)
        return counts_of_objects(series.to_list(), name)

    def labels(self, name: str) -> Sequence[str]:
        return ["" if v is None else str(v) for v in self.frame.get_column(name).to_list()]

    def type_of(self, name: str) -> str:
        dtype = self.frame.schema[name]
        if dtype.is_integer():
            return "integer"
        if dtype.is_numeric():
            return "number"
        return {"Boolean": "boolean", "Date": "date", "Datetime": "datetime"}.get(
            type(dtype).__name__, "string"
        )

    def require_room(self, name: str, upper: int) -> None:
        import polars as pl

        dtype = self.frame.schema[name]
        try:
            held = pl.Series([0, upper]).cast(dtype).cast(pl.Int64).to_numpy()
        except pl.exceptions.PolarsError:
            held = np.zeros(1)
        require_fits(held, name, str(dtype), upper)

    def released(
        self, counts: Mapping[str, Counts], keep: Sequence[str], order: Order = None
    ) -> PolarsTable:
        import polars as pl

        new = [
            pl.Series(name, values).cast(self.frame.schema[name]) for name, values in counts.items()
        ]
        frame = self.frame.select(list(keep)).with_columns(new)
        frame = frame if order is None else frame[order]
        coded = [name for name, dtype in frame.schema.items() if dtype == pl.Categorical]
        again = [pl.col(name).cast(pl.String).cast(pl.Categorical) for name in coded]
        return PolarsTable(frame.with_columns(again))  # no level that does not occur

    def grouped(
        self, by: Sequence[str], labels: Sequence[tuple[str, ...]], counts: Mapping[str, Counts]
    ) -> PolarsTable:
        import polars as pl

        keys = [
            pl.Series(name, [label[at] for label in labels]).cast(self.frame.schema[name])
            for at, name in enumerate(by)
        ]
        return PolarsTable(pl.DataFrame([*keys, *(pl.Series(n, v) for n, v in counts.items())]))

    def native(self) -> Any:
        return self.frame

    def to_bytes(self) -> bytes:
        text: str = self.frame.write_csv()
        return text.encode()


def polars_series(like: Any) -> Callable[[NDArray[Any]], Any]:
    """What turns an array into a Series with the name and type of `like`."""
    import polars as pl

    name, dtype = like.name, like.dtype
    return lambda values: pl.Series(name, values).cast(dtype)
