"""Plain arrays, lists and series of counts: one column without a table around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers
from tallyveil.errors import TableError
from tallyveil.tables.base import CountArray, Order, Table, encode_file, write_text
from tallyveil.tables.codes import Codes, encode_text
from tallyveil.tables.counts import (
    convert_numbers,
    convert_objects,
    convert_text,
    name_type,
)

__all__ = ["ArrayTable", "wrap_array"]


def wrap_array(source: Any) -> ArrayTable:
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
    return ArrayTable(values, _choose_rebuild(source))


@dataclass(frozen=True, eq=False)
class ArrayTable(Table):
    """A plain array of counts, or a Series without its labels, under one name.

    `rebuild` turns released counts into the kind of object that came in. It can be pickled, and
    holds no count. Nobody said whether the labels of a Series are public: a DataFrame can say it.
    """

    values: NDArray[Any]
    rebuild: Callable[[CountArray], Any]
    name: str = "count"
    kind: str = "array"
    extension: str = "csv"

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return (self.name,)

    @property
    def rows(self) -> int:
        """How many counts there are."""
        return len(self.values)

    def slice(self, start: int, stop: int) -> ArrayTable:
        """Give the rows `start` to `stop` as a view."""
        return replace(self, values=self.values[start:stop])

    def counts(self, name: str) -> Integers:
        """Read the array as counts."""
        if self.values.dtype.kind in "iuf":
            return convert_numbers(self.values, name)
        if self.values.dtype.kind == "U":
            return convert_text(self.values.tolist(), name)
        return convert_objects(self.values.tolist(), name)

    def codes(self, name: str) -> Codes:
        """Encode the text of the values."""
        if self.values.dtype.kind in "iu":
            values, codes = np.unique(self.values, return_inverse=True)
            return Codes(codes, values)
        return encode_text(list(map(str, self.values.tolist())))

    def type_of(self, name: str) -> str:
        """Give the Frictionless type of the array."""
        return name_type(self.values.dtype.kind)

    def build_released(
        self, counts: Mapping[str, CountArray], keep: Sequence[str], order: Order = None
    ) -> ArrayTable:
        """Give the released counts in place of the old ones."""
        if len(counts) > 1:
            raise TableError("An array of counts has room for one column; give a table instead.")
        values = counts[self.name]
        return replace(self, values=values if order is None else values[order])

    def build_grouped(
        self, by: Sequence[str], labels: Sequence[tuple[Any, ...]], counts: Mapping[str, CountArray]
    ) -> ArrayTable:
        """Refuse: an array has no categories."""
        raise TableError("An array of counts has no categories; give a table for that.")

    def native(self) -> Any:
        """Give the counts as the kind of object that came in."""
        return self.rebuild(self.values)

    def to_bytes(self) -> bytes:
        """Write a file of one column."""
        counts = "\n".join(map(str, self.values.tolist()))
        return encode_file(write_text([self.name], [()]) + counts + "\n")


def _choose_rebuild(source: Any) -> Callable[[CountArray], Any]:
    """Choose what turns released counts into the kind of `source`."""
    library, kind = type(source).__module__.partition(".")[0], type(source)
    if kind in (list, tuple):
        return partial(_build_sequence, kind)
    if library == "pandas" and kind.__name__ == "Series":
        from tallyveil.tables.pandas import build_pandas_series

        return partial(build_pandas_series, source.name)
    if library == "polars" and kind.__name__ == "Series":
        from tallyveil.tables.polars import build_polars_series

        return partial(build_polars_series, source.name)
    return _build_array


def _build_sequence(kind: Callable[[list[int]], Any], values: CountArray) -> Any:
    return kind(values.tolist())


def _build_array(values: CountArray) -> Integers:
    return values.astype(np.int64)
