"""A release of a table with an empty label checks, from whatever kind of table it was made."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tallyveil as tv
from tests.asking import privatize

COLUMNS = {"area": ["a", "", "c", None, "e"], "part": [1, 2, 3, 4, 5], "cases": [3, 1, 4, 1, 5]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_empty_labels_are_written_in_the_one_form(tmp_path, make, ending):
    table = make(COLUMNS)
    out = tmp_path / "release"
    privatize(table, count="cases", upper=9, epsilon=1, keep="all", out=out, format=ending)
    assert [found for found in tv.check_package(out) if not found.ok] == []
