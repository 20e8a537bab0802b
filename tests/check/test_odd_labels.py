"""Releases of labels that writers change still check; such columns make no groups."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tallyveil as tv
from tests.asking import privatize

LABELS = {
    "float32": np.float32([123456789, 3] * 20),
    "negative zero": [-0.0, 0.0, 1.0, 2.0] * 10,
    "trailing blanks": ["a ", "a", "b", "c"] * 10,
    "truth": [True, False] * 20,
    "truth as objects": pd.Series([True, None] * 20, dtype=object),
    "nan as text": pd.Series(["nan", "x", np.nan, "y"] * 10, dtype=object),
}
EMPTY = ["a", "", "c", None] * 10


@pytest.mark.parametrize(
    ("make", "labels"),
    [
        *(pytest.param(pd.DataFrame, labels, id=name) for name, labels in LABELS.items()),
        *(pytest.param(make, EMPTY, id="empty") for make in (pd.DataFrame, pl.DataFrame, pa.table)),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_releases_of_odd_labels_check(tmp_path, make, labels, ending):
    counts = [i % 20 for i in range(40)]
    table = make({"label": labels, "id": list(range(40)), "cases": counts})
    options = {"count": "cases", "upper": 30, "epsilon": 1, "keep": "all", "method": "geometric"}
    privatize(table, **options, format=ending, out=tmp_path / "release")
    assert [finding for finding in tv.check_package(tmp_path / "release") if not finding.ok] == []
