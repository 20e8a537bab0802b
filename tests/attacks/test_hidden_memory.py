"""What a table holds beside its values leaves no trace in what is published of it."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather

import tallyveil as tv
from tests.asking import privatize
from tests.attacks.conftest import memory_of


def mask_int64(values):
    array = pd.array(values, dtype="Int64")
    array[1] = pd.NA
    return array


def views(values):
    return pa.array(values, pa.string_view())


def beneath(values, hidden):
    """Integers with a null in the second place, and `hidden` beneath it."""
    kept = np.array([values[0], hidden, values[2]], dtype=np.int64)
    return pa.Array.from_buffers(
        pa.int64(), 3, [pa.py_buffer(b"\x05"), pa.py_buffer(kept.tobytes())]
    )


def levelled(labels, keep):
    index = pd.MultiIndex.from_product([labels, ["x"]], names=["a", "b"])
    frame = pd.DataFrame({"cases": [1] * len(labels)}, index=index)
    return frame[frame.index.get_level_values("a").isin(list(keep))]


LONG = "a label of more than twelve letters"
CASES3 = [1, 2, 3]
HIDDEN = {  # the same public values, with and without something else in memory
    "masked pandas": [
        pd.DataFrame({"x": mask_int64([1, hidden, 3]), "cases": CASES3}) for hidden in (0, 424242)
    ],
    "values beneath nulls": [
        pa.table({"x": beneath([1, 0, 3], hidden), "cases": CASES3}) for hidden in (0, 424242)
    ],
    "string views": [
        pa.table({"x": views([LONG, "b", "c"]), "cases": CASES3}),
        pa.table({"x": views([LONG, "b", "c", f"{LONG} of a secret"]), "cases": [1, 2, 3, 4]})[:3],
    ],
    "bitmaps": [
        pa.table({"x": ["a", "b", "c"], "y": [True, False, True], "cases": CASES3}),
        pa.table(
            {"x": [None, "a", "b", "c"], "y": [None, True, False, True], "cases": [9, 1, 2, 3]}
        )[1:],
    ],
    "chunks": [
        pa.table({"x": ["a", "b", "c"], "cases": CASES3}),
        pa.concat_tables(
            [pa.table({"x": ["a"], "cases": [1]}), pa.table({"x": ["b", "c"], "cases": [2, 3]})]
        ),
    ],
    "polars slices": [
        pl.DataFrame({"x": [LONG, "b", None], "y": [1, None, 3], "cases": CASES3}),
        pl.DataFrame(
            {"x": ["s" * 40, LONG, "b", None], "y": [4, 1, None, 3], "cases": [0, 1, 2, 3]}
        )[1:],
    ],
    "polars categories": [
        pl.DataFrame({"x": ["b", "a", "c"], "cases": CASES3}, schema_overrides={"x": kind})
        for kind in (pl.Categorical, pl.Categorical(pl.Categories("hidden", "attack")))
    ],
    "polars enums": [
        pl.DataFrame(
            {"x": ["b", "a", "b"], "cases": CASES3}, schema_overrides={"x": pl.Enum(known)}
        )
        for known in (["a", "b"], ["a", "secret", "b"])
    ],
    "pandas levels": [levelled(["p", "q", "r"], "pqr"), levelled(["p", "q", "r", "s"], "pqr")],
    "pandas categories": [
        pd.DataFrame({"x": pd.Categorical(["b", "a", "b"], known), "cases": CASES3})
        for known in (["a", "b"], ["secret", "b", "a"])
    ],
    "pandas row numbers": [
        pd.DataFrame({"x": list("abc"), "cases": CASES3}),
        pd.DataFrame({"x": list("sabc"), "cases": [0, 1, 2, 3]})[1:],
    ],
    "pandas columns": [
        pd.DataFrame({"x": list("abc"), "cases": CASES3}),
        pd.DataFrame(
            [["a", 1], ["b", 2], ["c", 3]],
            columns=pd.CategoricalIndex(["x", "cases"], ["secret", "x", "cases"], name="secret"),
        ).astype({"cases": int}),
    ],
    "arrow in pandas": [
        pd.DataFrame({"x": pd.Series(values, dtype="string[pyarrow]").iloc[cut], "cases": CASES3})
        for values, cut in ((list("abc"), slice(None)), (list("abcs"), slice(3)))
    ],
    "labels of a series": [
        pd.Series(CASES3, index=index) for index in (range(3), ["anna", "bert", "carl"])
    ],
}


@pytest.mark.parametrize("name", HIDDEN)
def test_what_is_not_published_leaves_no_trace_in_memory(name, compare, tmp_path):
    pair = HIDDEN[name]
    options = {"count": "cases", "keep": "all", "allow_duplicates": True}
    options = {} if isinstance(pair[0], pd.Series) else options
    for alone in (False, True):
        assert compare(pair, options | {"alone": alone}, tmp_path / "place") == []


@pytest.mark.parametrize("name", [n for n in HIDDEN if isinstance(HIDDEN[n][0], pa.Table)])
def test_what_a_file_holds_beside_its_values_leaves_no_trace_in_memory(name, compare, tmp_path):
    """Feather keeps the bytes beneath nulls, and the rows of each chunk."""
    options = {"count": "cases", "keep": "all", "allow_duplicates": True, "upper": 9, "epsilon": 1}
    found = []
    for table in HIDDEN[name]:
        path = tmp_path / "table.feather"
        feather.write_feather(table, path, compression="uncompressed")
        release = privatize(path, **options)
        found.append([memory_of(release.table), memory_of(release.data.native())])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "kind",
    [
        pa.map_(pa.string(), pa.int8()),
        pa.list_(pa.int8(), 2),
        pa.list_(pa.string()),
        pa.struct([("x", pa.dictionary(pa.int8(), pa.string()))]),
    ],
    ids=["map", "fixed list", "list", "struct"],
)
def test_what_cannot_be_built_anew_is_refused_before_anything_is_spent(kind, paid):
    table = pa.table({"x": pa.nulls(2, kind), "cases": [1, 2]})
    with pytest.raises(tv.TableError, match="Convert it to a plain type"):
        privatize(table, "cases", keep="all", allow_duplicates=True, upper=9, epsilon=1, **paid)
