"""Tables leave as the kind they came in as, with everything but the counts untouched."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tallyveil as tv
from tallyveil.errors import ArgumentError, TableError
from tallyveil.tables.read import read_table
from tests.asking import privatize

N = 90
COUNTS = [i % 5 for i in range(N)]
NAMES = [f"c{i}" for i in range(N)]
CODES = pa.array(COUNTS).dictionary_encode()


def release(table, **options):
    return privatize(
        table, **{"count": "cases", "keep": "all", "upper": 9, "epsilon": 1, **options}
    )


@pytest.mark.parametrize(
    "dtype", ["int64", "int8", "uint16", "float64", "Int64", "Float32", "object", "int64[pyarrow]"]
)
def test_pandas(dtype):
    frame = pd.DataFrame(
        {
            "name": NAMES,
            "cases": pd.Series(COUNTS).astype(dtype),
            "kind": pd.Categorical(["a", "b"] * (N // 2)),
            "when": pd.Timestamp("2026-01-01"),
            "code": pd.Series(CODES, dtype=pd.ArrowDtype(CODES.type)),
            "none": pd.Series([None] * N, dtype=pd.ArrowDtype(pa.null())),
        }
    )
    frame.index = pd.Index(range(100, 100 + N), name="id")
    before = frame.copy(deep=True)
    table = release(frame).table
    assert isinstance(table, pd.DataFrame)
    assert table["cases"].dtype == np.int64, "the type of true counts may tell their size"
    pd.testing.assert_frame_equal(table.drop(columns="cases"), frame.drop(columns="cases"))
    assert set(table["cases"].astype(int)) <= set(range(10))
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt8, pl.Float32])
def test_polars(dtype):
    frame = pl.DataFrame({"name": NAMES, "cases": pl.Series(COUNTS, dtype=dtype), "x": [0.5] * N})
    table = release(frame).table
    assert isinstance(table, pl.DataFrame)
    assert table.schema == {**frame.schema, "cases": pl.Int64}
    assert table.drop("cases").equals(frame.drop("cases"))
    lazy = release(frame.lazy()).table
    assert lazy.schema == table.schema


@pytest.mark.parametrize("dtype", [pa.int32(), pa.float64(), pa.decimal128(5, 0), pa.uint64()])
def test_arrow(dtype):
    table = pa.table(
        {"name": NAMES, "cases": pa.array(map(Decimal, COUNTS)).cast(dtype), "x": [None] * N}
    )
    table = table.replace_schema_metadata({"note": "4711 people"})
    released = release(table).table
    assert released.schema.field("cases").type == pa.int64()
    assert released.schema.metadata is None, "free-form metadata may be confidential"
    assert released.drop_columns("cases").equals(table.drop_columns("cases"))
    assert release(table.to_batches()[0]).table.num_rows == N


def test_arrays_lists_and_series():
    for dtype in (np.int64, np.uint8, np.float64):
        given = np.array(COUNTS, dtype=dtype)
        out = privatize(given, upper=9, epsilon=1).table
        assert isinstance(out, np.ndarray)
        assert out.dtype == np.int64
        assert out.shape == given.shape
    assert isinstance(privatize(COUNTS, upper=9, epsilon=1).table, list)
    series = pd.Series(COUNTS, index=NAMES, name="cases", dtype="int16")
    out = privatize(series, upper=9, epsilon=1).table
    assert out.index.equals(pd.RangeIndex(len(COUNTS))), "nobody said that labels are public"
    assert (out.name, out.dtype) == ("cases", np.int64)
    assert privatize(pl.Series("cases", COUNTS), upper=9, epsilon=1).table.name == "cases"


BAD_COLUMNS = {
    "negative": ([-1, 2], "Row 1 of .* has a negative number"),
    "fraction": ([1.0, 2.5], "Row 2 of .* has a fraction"),
    "na_values": ([1.0, float("nan")], "Row 2 of .* has no"),
    "infinite": ([1.0, float("inf")], "Row 2 of .* has no finite number"),
    "none": ([1, None], "Row 2 of .* has no"),
    "text": ([1, "many"], "has text"),
    "true": ([True, False], "holds true and false"),
}


@pytest.mark.parametrize("name", BAD_COLUMNS)
@pytest.mark.parametrize("engine", [pd.DataFrame, pl.DataFrame, pa.table, None])
def test_what_is_not_a_count_is_refused_everywhere(name, engine):
    values, words = BAD_COLUMNS[name]
    if name == "text" and engine in (pl.DataFrame, pa.table):
        values, words = ["1", "many"], "text"
    columns = {"id": [1, 2], "cases": values}
    if engine is None:
        columns = np.array(values, dtype=object if name in ("none", "text") else None)
        options = {"count": None}
    else:
        columns = engine(columns, **({"strict": False} if engine is pl.DataFrame else {}))
        options = {}
    with pytest.raises(TableError, match=words):
        release(columns, **options)


@pytest.mark.parametrize("given", [[], np.zeros((2, 2)), 5, object(), {"a": [1]}])
def test_what_is_no_table_is_refused(given):
    with pytest.raises(TableError):
        privatize(given, upper=9, epsilon=1)


def test_an_index_names_rows_and_so_must_be_distinct():
    frame = pd.DataFrame({"cases": [1, 2, 3]}, index=["a", "b", "a"])
    with pytest.raises(TableError, match="Row 3 repeats"):
        release(frame)
    assert list(release(frame, allow_duplicates=True).table.index) == ["a", "b", "a"]


@pytest.mark.parametrize("name", [None, "place"])
def test_an_index_is_written_and_checked(tmp_path, name):
    index = pd.Index(["a", "b", "c"], name=name)
    frame = pd.DataFrame({"cases": [1, 2, 3], 2018: 5}, index=index)
    made = release(frame, out=tmp_path / "out")
    pd.testing.assert_index_equal(made.table.index, index)
    assert all(finding.ok for finding in tv.check_package(tmp_path / "out"))
    assert release(frame, count=2018, epsilon=50).table[2018].tolist() == [5, 5, 5]


def test_column_types_in_words():
    table = read_table(pa.table({"i": [1], "f": [0.5], "b": [True], "s": ["x"], "l": [[1]]}))
    types = [table.type_of(name) for name in table.names]
    assert types == ["integer", "number", "boolean", "string", "any"]


UNKNOWN = {
    "'neighbours' must": {"neighbours": "friends"},
    "'count' must": {"count": None},
    "'upper' must": {"upper": "many"},
    "'method' must": {"method": "magic"},
    "one for each of the 2": {"count": ["x", "y"], "upper": [1, 2, 3]},
}


@pytest.mark.parametrize("words", UNKNOWN)
def test_unknown_arguments_are_refused_before_the_table_is_read(words):
    with pytest.raises(ArgumentError, match=words):
        release("nowhere.csv", **{"keep": None, **UNKNOWN[words]})


@pytest.mark.parametrize("counts", [[1, 2, 2], [1, 3, 2], [3, 1, 2]])
def test_places_of_rows_in_an_index_are_not_published(counts):
    """A table sorted by its counts has their order in an index that nobody named."""
    frame = pd.DataFrame({"area": list("abc"), "cases": counts}).sort_values("cases")
    for table in (frame, frame.reset_index(drop=True)):
        made = release(table.sort_values("area"))
        assert made.files["data.csv"].startswith(b"area,cases\n")
        assert made.table.index.equals(pd.RangeIndex(3))
