"""Nothing but the certified draws and the public columns leaves with a release.

Each test is a way in which a table engine once carried something else along.
"""

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tallyveil as tv
from tallyveil.release.receipt import promise
from tallyveil.release.unit import PrivacyUnit
from tests.asking import privatize

AREAS = ["f", "b", "d", "a", "c", "e"]  # as they came: in the order of the true counts
COUNTS = [1, 2, 5, 9, 20, 41]
SMALL = {"upper": 9, "epsilon": 60}
OPTIONS = {"count": "cases", "keep": "all", "upper": 60, "epsilon": "0.01"}


@pytest.mark.parametrize("ordered", [False, True])
def test_arrow_dictionaries_and_metadata_are_made_again(tmp_path, ordered):
    frame = pd.DataFrame({"area": AREAS, "cases": COUNTS, "secret": COUNTS})
    frame.attrs["note"] = "the true maximum is 41"
    table = pa.Table.from_pandas(frame)
    codes = pa.array([1, 2, 3, 4, 5, 6], pa.int8())
    coded = pa.DictionaryArray.from_arrays(codes, pa.array(["ghost", *AREAS]), ordered=ordered)
    table = table.set_column(0, pa.field("area", coded.type, metadata={"who": "anna41"}), coded)
    rel = privatize(table, **(OPTIONS | {"keep": "area"}))
    assert rel.table.schema.metadata is None
    assert rel.table.schema.field("area").metadata is None
    kind = rel.table.schema.field("area").type
    assert (kind.value_type, kind.ordered) == (pa.string(), ordered)
    found = rel.table.column("area").combine_chunks()
    levels = found.chunk(0).dictionary if isinstance(found, pa.ChunkedArray) else found.dictionary
    assert levels.to_pylist() == (AREAS if ordered else sorted(AREAS))
    assert rel.table.column("area").to_pylist() == AREAS
    for form in ("csv", "parquet"):
        privatize(table, **(OPTIONS | {"keep": "area"}), format=form, out=tmp_path / form)
        raw = (tmp_path / form / f"data.{form}").read_bytes()
        assert not [
            word for word in (b"maximum", b"anna41", b"secret", b"ghost", b"note") if word in raw
        ]


def test_categories_of_a_confidential_column_are_refused():
    table = pd.DataFrame({"area": ["a", "a"], "cases": [1, 2]})
    with pytest.raises(tv.TallyveilError, match="name public"):
        privatize(table, "cases", by="cases", upper=60, epsilon=1)


@pytest.mark.parametrize(
    "people",
    [
        pd.DataFrame({"region": [1, 2, 2]}),
        pl.DataFrame({"region": pl.Series(["1", "2", "2"], dtype=pl.Enum(["1", "2"]))}),
        pa.table({"region": [1, 2, 2]}),
    ],
    ids=["pandas", "polars", "arrow"],
)
def test_types_follow_from_the_public_list(people):
    """The type of the confidential column may tell of a row, such as one without a value."""
    rel = privatize(people, by="region", categories=["1", "unknown"], other="2", **SMALL)
    assert list(rel.table["region"].to_numpy()) == ["1", "unknown", "2"]
    rel = privatize(people, by="region", categories=[1, 2], **SMALL)
    assert rel.table["region"].to_numpy().dtype == np.int64


@pytest.mark.parametrize("epsilon", ["0.01", "1", "9.3", "9.5", "13.2"])
def test_the_factor_in_words_is_never_below_the_true_one(epsilon):
    words = promise(Fraction(epsilon), PrivacyUnit())
    factor = float(words.split("factor of at most ")[1].split(" ")[0])
    assert np.exp(float(epsilon)) <= factor <= np.exp(float(epsilon)) + 0.011


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame([["a", 11, 22], ["b", 33, 39]], columns=["k", "cases", "cases"]),
        pd.DataFrame({"cases": [17, 23], "k": ["a", "b"]}).set_index("cases", drop=False),
        pa.table([["a", "b"], [11, 33], [22, 39]], names=["k", "cases", "cases"]),
    ],
    ids=["pandas columns", "pandas index", "arrow"],
)
def test_two_columns_of_one_name_are_refused(table):
    with pytest.raises(tv.TableError, match="Two columns are called 'cases'"):
        privatize(table, count="cases", upper=60, epsilon="0.1")


def test_an_array_may_be_given_a_name():
    rel = privatize(np.array([1, 2, 3]), count="cases", upper=9, epsilon=1)
    assert isinstance(rel.table, np.ndarray)
    assert rel.receipt.columns[0].name == "cases"
    with pytest.raises(tv.ArgumentError, match="'count' must be one name"):
        privatize([1, 2], count=["a", "b"], upper=9, epsilon=1)
