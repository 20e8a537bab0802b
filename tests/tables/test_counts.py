"""Counts are read once, in batches, into one compact array."""

import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tallyveil.errors import TableError
from tallyveil.tables.counts import LARGEST, read_counts
from tallyveil.tables.read import read_table
from tallyveil.tables.table import BATCH_ROWS

ACROSS = BATCH_ROWS + 3
"""More rows than one batch has."""


@pytest.mark.parametrize(
    ("upper", "dtype"),
    [
        (0, np.uint8),
        (255, np.uint8),
        (256, np.uint16),
        (65_535, np.uint16),
        (65_536, np.uint32),
        (2**32 - 1, np.uint32),
        (2**32, np.uint64),
        (2**63, np.uint64),
    ],
)
def test_counts_take_the_smallest_type_that_holds_the_range(upper, dtype):
    given = [0, max(upper - 1, 0), upper, upper + 1, 10**30]
    read = read_counts(read_table(np.array([str(count) for count in given])), "count", upper)
    assert read.values.dtype == dtype
    assert read.values.tolist() == [min(count, upper, LARGEST) for count in given]
    assert read.above == (2 if upper < LARGEST else 0)
    with pytest.raises(ValueError, match="read-only"):
        read.values[0] = 1


DECIMALS = [Decimal(0), Decimal(7), Decimal(300)]
COLUMNS = (
    pd.Series([0, 7, 300], dtype=object),
    pd.Series([0, 7.0, 300], dtype=object),
    pd.Series([0, Decimal(7), np.int64(300)], dtype=object),
    pd.Series([0, 7, 300]).astype("category"),
    pd.Series([0, 7, 300], dtype="UInt16"),
    pd.Series([0, 7, 300], dtype="double[pyarrow]"),
    pd.Series([0, 7, 300], dtype="float32"),
    pl.Series([0, 7, 2**70], dtype=pl.Int128),
    *(pl.Series(DECIMALS, dtype=pl.Decimal(20, scale)) for scale in (0, 2)),
    *(pa.array(DECIMALS, pa.decimal128(20, scale)) for scale in (0, 2)),
    pa.array(DECIMALS).dictionary_encode(),
)


def wrap(column):
    library = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
    return read_table(library[type(column).__module__.partition(".")[0]]({"n": column}))


@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: str(getattr(c, "dtype", "arrow")))
def test_counts_of_any_type_of_column(column):
    read = read_counts(wrap(column), "n", 9)
    assert (read.values.tolist(), read.above) == ([0, 7, 9], 1)


@pytest.mark.parametrize("library", [pa.table, pl.DataFrame])
def test_a_fraction_among_decimals_is_refused(library):
    with pytest.raises(TableError, match=r"Row 2 of .* has a fraction"):
        read_counts(read_table(library({"n": [Decimal(1), Decimal("2.5")]})), "n", 9)


@pytest.mark.parametrize("row", [1, BATCH_ROWS, BATCH_ROWS + 1, ACROSS])
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table, None])
def test_errors_name_the_row_of_the_whole_table(row, library):
    values = np.ones(ACROSS, dtype=np.int64)
    values[row - 1] = -4711
    source = values if library is None else library({"count": values})
    with pytest.raises(TableError, match=f"Row {row} of .* has a negative number") as caught:
        read_counts(read_table(source), "count", 9)
    assert "4711" not in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    ("cells", "counts"),
    [
        ([10**400, 1], [LARGEST, 1]),
        ([10**400, 1.0], [LARGEST, 1]),
        ([2.0**60, 3], [2**60, 3]),
        ([Decimal(2), 3], [2, 3]),
        (["9" * 5000, "0" * 5000 + "7", "9" * 18], [LARGEST, 7, 10**18 - 1]),
        ([str(LARGEST), str(LARGEST + 1), "3.0"], [LARGEST, LARGEST, 3]),
    ],
)
def test_numbers_of_any_size_are_counts(cells, counts):
    assert read_table(cells).counts("count").tolist() == counts


@pytest.mark.parametrize(
    "source",
    [
        [3, 1, 2],
        (3, 1, 2),
        np.array([3, 1, 2], dtype=np.int16),
        pd.Series([3, 1, 2], index=["a", "b", "c"], name="n"),
        pl.Series("n", [3, 1, 2]),
        range(3),
        pd.DataFrame({"n": [3, 1, 2]}),
        pl.DataFrame({"n": [3, 1, 2]}),
        pa.table({"n": [3, 1, 2]}),
    ],
    ids=lambda source: f"{type(source).__module__}.{type(source).__name__}",
)
def test_released_tables_can_be_pickled(source):
    table = read_table(source)
    name = table.names[0]
    released = table.build_released({name: np.array([5, 0, 6], dtype=np.uint8)}, [name])
    again = pickle.loads(pickle.dumps(released))
    assert type(again.native()) is type(released.native())
    assert again.to_bytes() == released.to_bytes()
