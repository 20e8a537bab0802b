"""Polars data frames and series: the home of polars."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.errors import TableError
from tallyveil.tables.base import CountArray, Order, Table, encode_file, write_text
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

        columns = []
        for name in (*keep, *(name for name in counts if name not in keep)):
            if name in counts:
                values = counts[name] if order is None else counts[name][order]
                columns.append(build_polars_series(name, values))
            else:
                series = self.frame.get_column(name)
                columns.append(_rebuild(series if order is None else series[order]))
        return PolarsTable(pl.DataFrame(columns))

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
        """Write the frame as CSV; empty text is written as nothing, not in quotes."""
        import polars as pl

        plain = self.frame.with_columns(pl.col(pl.String).replace("", None))
        text: str = plain.write_csv()
        if '"' in text:  # in the one form that whoever checks it writes again
            header, *rows = csv.reader(io.StringIO(text, newline=""))
            text = write_text(header, list(zip(*rows, strict=True)))
        return encode_file(text)


def build_polars_series(name: str, values: CountArray) -> Any:
    """Build a Series of counts."""
    import polars as pl

    return pl.Series(name, np.array(values, dtype=np.int64))


def _rebuild(series: Any) -> Any:
    """Build a series anew from its values, in memory of its own.

    Its buffers may hold rows that are not published and values beneath nulls. Categories become an
    Enum of what occurs, sorted: the codes of a Categorical tell in which order labels came.
    """
    import polars as pl

    name, dtype = series.name, series.dtype
    if dtype.is_nested() or dtype == pl.Object:
        raise TableError(
            f"Column {name!r} has the type {dtype}, which a text file cannot hold. Convert it to a "
            "plain type first."
        )
    if isinstance(dtype, (pl.Categorical, pl.Enum)):
        texts = series.cast(pl.String).to_list()
        found = set(texts) - {None}
        declared = dtype.categories.to_list() if isinstance(dtype, pl.Enum) else sorted(found)
        return pl.Series(name, texts, dtype=pl.Enum([one for one in declared if one in found]))
    if dtype.is_decimal():  # what it is stored as cannot be cast back
        return pl.Series(name, series.to_list(), dtype=dtype)
    stored = series.to_physical()
    return pl.Series(name, stored.to_list(), dtype=stored.dtype).cast(dtype)


def _is_machine_integer(dtype: Any) -> bool:
    """Whether NumPy has an integer type of the same width."""
    return bool(dtype.is_integer()) and not str(dtype).endswith("128")


def _rank(series: Any) -> tuple[Any, Any]:
    """Give the position of every row in the sorted distinct values, and those values."""
    import polars as pl

    ranks = series.rank("dense").cast(pl.Int64)  # from 1, null for a row without a value
    codes = ranks.fill_null(0) if series.null_count() else ranks - 1
    return codes.to_numpy(), series.unique().sort()  # null comes first
