"""Polars data frames and series: the home of polars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.tables.base import CountArray, Order, Table
from tallyveil.tables.codes import Codes, encode_floats, encode_objects, encode_values
from tallyveil.tables.counts import convert_numbers, convert_objects

__all__ = ["PolarsTable", "build_polars_series"]


@dataclass(frozen=True, eq=False)
class PolarsTable(Table):
    """A Polars DataFrame."""

    frame: Any
    kind: str = "polars"
    extension: str = "csv"

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in order."""
        return tuple(self.frame.columns)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.frame.height)

    def slice(self, start: int, stop: int) -> PolarsTable:
        """Give the rows `start` to `stop` as a view."""
        return PolarsTable(self.frame.slice(start, stop - start))

    def counts(self, name: str) -> Integers:
        """Read a column as counts."""
        import polars as pl

        series = self.frame.get_column(name)
        if _is_machine_integer(series.dtype) or series.dtype.is_float():
            missing = series.is_null().to_numpy()
            return convert_numbers(series.fill_null(0).to_numpy(), name, missing)
        if series.dtype.is_decimal():
            whole = series.cast(pl.Int64, strict=False)
            if whole.null_count() == 0 and (whole.cast(series.dtype, strict=False) == series).all():
                return convert_numbers(whole.to_numpy(), name)
        return convert_objects(series.to_list(), name)

    def codes(self, name: str) -> Codes:
        """Encode the labels of a column."""
        import polars as pl

        series = self.frame.get_column(name)
        missing, dtype = series.null_count() > 0, series.dtype
        if dtype in (pl.String, pl.Categorical, pl.Enum):
            codes, values = _rank(series.cast(pl.String).fill_null(""))
            return Codes(codes, np.array(values.to_list(), dtype=object))
        if dtype.is_float() and not missing:
            return encode_floats(series.to_numpy())
        if dtype.is_integer() or dtype.is_temporal() or dtype.is_decimal():
            codes, values = _rank(series)
            if _is_machine_integer(dtype) and not missing:
                return Codes(codes, values.to_numpy())
            return encode_values(codes, values.to_list())
        return encode_objects(series.to_list(), series.is_null().to_numpy())

    def type_of(self, name: str) -> str:
        """Give the Frictionless type of a column."""
        dtype = self.frame.schema[name]
        if dtype.is_integer():
            return "integer"
        if dtype.is_numeric():
            return "number"
        return {"Boolean": "boolean", "Date": "date", "Datetime": "datetime"}.get(
            type(dtype).__name__, "string"
        )

    def build_released(
        self, counts: Mapping[str, CountArray], keep: Sequence[str], order: Order = None
    ) -> PolarsTable:
        """Build the frame that is published."""
        import polars as pl

        columns = [build_polars_series(name, values) for name, values in counts.items()]
        frame = self.frame.select(list(keep)).with_columns(columns)
        frame = frame if order is None else frame[order]
        coded = [name for name, dtype in frame.schema.items() if dtype == pl.Categorical]
        again = [pl.col(name).cast(pl.String).cast(pl.Categorical) for name in coded]
        return PolarsTable(frame.with_columns(again))  # no level that does not occur

    def build_grouped(
        self, by: Sequence[str], labels: Sequence[tuple[Any, ...]], counts: Mapping[str, CountArray]
    ) -> PolarsTable:
        """Build a frame with one row for each category."""
        import polars as pl

        keys = [pl.Series(name, [label[at] for label in labels]) for at, name in enumerate(by)]
        columns = [build_polars_series(name, values) for name, values in counts.items()]
        return PolarsTable(pl.DataFrame([*keys, *columns]))

    def native(self) -> Any:
        """Give the frame."""
        return self.frame

    def to_bytes(self) -> bytes:
        """Write the frame as CSV."""
        text: str = self.frame.write_csv()
        return text.encode()


def build_polars_series(name: str, values: CountArray, _index: None = None) -> Any:
    """Build a Series of counts."""
    import polars as pl

    return pl.Series(name, values).cast(pl.Int64)


def _is_machine_integer(dtype: Any) -> bool:
    """Whether NumPy has an integer type of the same width."""
    return bool(dtype.is_integer()) and not str(dtype).endswith("128")


def _rank(series: Any) -> tuple[Any, Any]:
    """Give the position of every row in the sorted distinct values, and those values."""
    import polars as pl

    ranks = series.rank("dense").cast(pl.Int64)  # from 1, null for a row without a value
    codes = ranks.fill_null(0) if series.null_count() else ranks - 1
    return codes.to_numpy(), series.unique().sort()  # null comes first
