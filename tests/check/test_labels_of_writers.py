"""Releases whose labels a writer changes still check: such columns make no groups."""

import datetime

import numpy as np
import pandas as pd
import pytest

import tallyveil as tv
from tests.asking import privatize

ROWS = 40
LABELS = {
    "float32": np.float32([123456789, 3] * 20),
    "negative zero": [-0.0, 0.0, 1.0, 2.0] * 10,
    "blanks at the end": ["a ", "a", "b", "c"] * 10,
    "truth": [True, False] * 20,
    "truth as objects": pd.Series([True, None] * 20, dtype=object),
    "timedelta": [pd.Timedelta(days=1), pd.Timedelta(days=2)] * 20,
    "timedelta as objects": pd.Series([datetime.timedelta(1), None] * 20, dtype=object),
    "nan as text": pd.Series(["nan", "x", np.nan, "y"] * 10, dtype=object),
}


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_odd_labels(tmp_path, name, ending):
    table = pd.DataFrame({"g": LABELS[name], "id": range(ROWS), "c": np.arange(ROWS) % 20})
    options = {"count": "c", "upper": 30, "epsilon": 1, "keep": "all", "method": "geometric"}
    privatize(table, **options, format=ending, out=tmp_path / "r")
    assert [found for found in tv.check_package(tmp_path / "r") if not found.ok] == []
