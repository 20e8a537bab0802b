"""Public categories decide the rows: nobody's presence adds one, nobody's absence removes one."""

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallyveil as tv
from tallyveil.errors import ArgumentError, TableError
from tallyveil.tables.conditions import parse_conditions
from tallyveil.tables.duplicates import Repeats
from tallyveil.tables.labels import normal_label
from tallyveil.tables.microdata import (
    Counting,
    place_categories,
    public_categories,
    sorted_order,
)
from tallyveil.tables.read import read_table
from tallyveil.tables.table import BATCH_ROWS
from tests.asking import privatize

PEOPLE = pd.DataFrame(
    {
        "region": ["n", "s", "n", "n"],
        "sex": ["f", "m", "m", "f"],
        "age": [70, 12, 65, 5],
        "seen": ["2026-01-01", "2026-02-01", None, "2026-03-01"],
    }
)


def count_rows(table, by, labels, where=()):
    return Counting(tuple(by), tuple(labels), tuple(where)).count(table)


def counted(by, categories, *where):
    labels = public_categories(categories, by)
    return count_rows(read_table(PEOPLE), by, labels, parse_conditions(where)).tolist()


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (["age >= 65"], [2, 0]),
        (["age > 65"], [1, 0]),
        (["age < 65"], [1, 1]),
        (["age <= 5"], [1, 0]),
        (["age == 70.0"], [1, 0]),
        (["age != 70"], [2, 1]),
        (["sex = 'f'"], [2, 0]),
        (["sex == f", "age > 60"], [1, 0]),
        (["sex == f and age > 60"], [1, 0]),
        (["age > 60 and sex != 'x and > y'"], [2, 0]),
        (["seen >= 2026-02-01"], [1, 1]),
        (["seen != 2026-02-01"], [3, 0]),
    ],
)
def test_conditions(conditions, expected):
    assert counted(["region"], ["n", "s"], *conditions) == expected


def test_lists_from_files(tmp_path):
    plain = tmp_path / "list.txt"
    plain.write_text("region\nn\n\ns\n")
    assert public_categories(plain, ["region"]) == (("n",), ("s",))
    table = tmp_path / "list.csv"
    table.write_text("\ufeffsex,region,x\nf,n,1\nm,s,2\n")
    assert public_categories(str(table), ["region", "sex"]) == (("n", "f"), ("s", "m"))
    assert public_categories(str(table), ["sex"]) == (("f",), ("m",))
    for file in (plain, str(plain)):
        assert public_categories({"region": file}, ["region"]) == (("n",), ("s",))
    assert public_categories("North", ["region"]) == (("North",),)
    with pytest.raises(ArgumentError, match="be a file that exists"):
        public_categories(tmp_path / "none.txt", ["region"])
    with pytest.raises(ArgumentError, match="name every category once"):
        public_categories("a,b,a", ["region"])
    with pytest.raises(ArgumentError, match="header naming"):
        public_categories(table, ["region", "age"])
    with pytest.raises(ArgumentError, match="exactly the columns"):
        public_categories({"region": ["n"]}, ["region", "sex"])


def test_a_category_outside_the_list_is_not_quoted():
    with pytest.raises(TableError, match="Row 2 has a category") as caught:
        counted(["region"], ["n"])
    assert "'s'" not in str(caught.value)
    with pytest.raises(TableError, match="No column named 'county'"):
        counted(["county"], ["n"])
    with pytest.raises(TableError, match="names a column"):
        counted(["region"], ["n", "s"], "height > 5")


def test_an_aggregated_table_follows_the_public_list():
    table = pd.DataFrame({"region": ["n", "s"], "cases": [5, 7]})
    options = {"count": "cases", "upper": 20, "epsilon": 50, "by": "region"}
    out = privatize(table, categories=["s", "w", "n"], **options).table
    assert out["region"].tolist() == ["s", "w", "n"]
    assert out["cases"].tolist() == [7, 0, 5]
    out = privatize(table, categories=["s", "n"], **options).table
    assert out["cases"].tolist() == [7, 5]
    wide = table.assign(note="x")
    with pytest.raises(TableError, match="no row for some category"):
        privatize(wide, categories=["s", "w", "n"], keep="all", **options)
    narrow = privatize(wide, categories=["s", "w", "n"], **options, keep=[]).table
    assert narrow["cases"].tolist() == [7, 0, 5]
    with pytest.raises(TableError, match="Row 2 has a category"):
        privatize(table, categories=["n"], **options)


def test_microdata_end_to_end():
    options = {"upper": 9, "epsilon": 60}
    rel = privatize(PEOPLE, by="region", categories=["s", "n", "w"], **options)
    assert rel.table.to_dict("list") == {"region": ["s", "n", "w"], "count": [1, 3, 0]}
    assert rel.receipt.table.counted_by == ("region",)
    assert rel.receipt.unit.name == "one person, with at most one record in the confidential table"
    listed = [("f", "n"), ("m", "n"), ("m", "s")]
    rel = privatize(PEOPLE, by=["sex", "region"], categories=listed, **options)
    assert rel.table["count"].tolist() == [2, 1, 1]


def test_rows_of_several_batches_are_counted_and_numbered():
    rows = BATCH_ROWS + 2
    table = read_table(pd.DataFrame({"x": ["a", "b"] * (rows // 2)}))
    counts = count_rows(table, ["x"], [("b",), ("c",), ("a",)], ())
    assert counts.tolist() == [rows // 2, 0, rows // 2]
    late = read_table(pd.DataFrame({"x": ["a"] * (rows - 1) + ["secret"]}))
    with pytest.raises(TableError, match=f"Row {rows} has a category") as caught:
        count_rows(late, ["x"], [("a",)], ())
    assert "secret" not in str(caught.value)
    assert count_rows(late, ["x"], [("a",)], parse_conditions(["x != secret"])) == [rows - 1]


LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
LABELS = {  # what a column holds, what it is compared as
    "integers": ([3, 10, -4], ["3", "10", "-4"]),
    "numbers": ([0.0, -0.0, 1.5], ["0", "-0", "1.5"]),
    "large": ([2**53 + 1, 2**53, 7], ["9007199254740993", "9007199254740992", "7"]),
    "truth": ([True, False], ["true", "false"]),
    "dates": ([date(2026, 1, 2), None], ["2026-01-02", ""]),
    "text": (["b", "", "B", "é"], ["b", "", "B", "é"]),
    "no value": (["b", None, ""], ["b", "", ""]),
    "text of numbers": (["10", "9", "1e1", " 9"], ["10", "9", "1e1", " 9"]),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", LABELS)
def test_labels_compare_as_their_text(library, name):
    held, labels = LABELS[name]
    table = read_table(LIBRARIES[library]({"x": [*held, held[0]]}))
    labels = [*labels, labels[0]]
    assert list(table.labels("x")) == labels
    codes = table.codes("x")
    assert sorted(codes.labels) == sorted(set(labels))
    assert [codes.labels[code] for code in codes.codes] == labels
    assert sorted_order(table, ["x"]).tolist() == sort_plainly([labels])


def require_distinct(table, names):
    repeats = Repeats(table, names)
    for batch in table.scan(list(names)):
        repeats.add(batch)
    repeats.require_none()


def sort_plainly(columns, first=None):
    """Sort row by row: a column whose labels are all finite numbers by size, others as text."""

    def key(labels):
        try:
            numbers = [float(label) for label in labels]
        except ValueError:
            return labels
        return numbers if np.isfinite(numbers).all() else labels

    rows = list(zip(*map(key, columns), strict=True))
    return sorted(range(len(rows)) if first is None else first, key=rows.__getitem__)


WORDS = st.sampled_from(["1", "1.0", "02", "10", "9", "nan", "inf", "b", "B", "é", "", " 1"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=12), st.randoms())
def test_codes_give_what_rows_give(rows, random):
    columns = [list(column) for column in zip(*rows, strict=True)]
    frame = pd.DataFrame(dict(zip("xy", columns, strict=True)))
    ties = list(range(len(rows)))
    random.shuffle(ties)
    for source in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        table = read_table(source)
        assert sorted_order(table, "xy").tolist() == sort_plainly(columns)
        shuffled = sorted_order(table, "xy", np.array(ties))
        assert shuffled.tolist() == sort_plainly(columns, ties)
        normal = [tuple(map(normal_label, row)) for row in rows]
        listed = list(dict.fromkeys(normal))
        counted = count_rows(table, "xy", listed, ())
        assert counted.tolist() == [normal.count(label) for label in listed]
        repeat = next((at for at, row in enumerate(rows) if row in rows[:at]), None)
        twelve = pd.DataFrame({f"c{at}": columns[at % 2] for at in range(12)})
        if repeat is None:
            require_distinct(table, "xy")
            require_distinct(read_table(twelve), list(twelve))
        else:
            with pytest.raises(TableError, match=f"Row {repeat + 1} repeats"):
                require_distinct(table, "xy")
            with pytest.raises(TableError, match=r"\(c0, c1, c2, c3, ...\)"):
                require_distinct(read_table(twelve), list(twelve))
        if len(listed) == len(rows):
            found = place_categories(table, "xy", listed[::-1])
            assert found.tolist() == [listed[::-1].index(row) for row in normal]
        else:
            with pytest.raises(TableError, match="repeats"):
                place_categories(table, "xy", listed)


@pytest.mark.parametrize(
    "text",
    [
        "age >> 3",
        "age => 3",
        "age <> 3",
        "age >= 18 or sex == m",
        "age >= 18 and",
        "and age >= 18",
        "not age >= 18",
        "age",
        "age >=",
        "age == 'a' b",
        ">= 5",
        "age ~ 5",
        "",
        5,
    ],
)
def test_a_condition_that_is_not_understood_is_refused(text):
    with pytest.raises(tv.ArgumentError, match="'where' must be"):
        parse_conditions([text])


@pytest.mark.parametrize("text", ["age == x", "age > x", "sex > 3", "sex <= 3"])
def test_numbers_are_not_compared_with_text(text):
    people = pd.DataFrame({"age": [1, 20, 30], "sex": ["m", "f", "m"]})
    with pytest.raises(TableError, match="compares"):
        privatize(people, by="sex", categories=["f", "m"], where=text, upper=9, epsilon=1)


SPELLINGS = {
    "integers": pd.DataFrame({"code": [1, 2, 2]}),
    "with a missing one": pd.DataFrame({"code": [1.0, 2.0, 2.0, None], "in": [1, 1, 1, 0]}),
    "nullable": pd.DataFrame({"code": pd.array([1, 2, 2], dtype="Int64")}),
    "text": pd.DataFrame({"code": ["1", "2", " 2"]}),
    "objects": pd.DataFrame({"code": pd.Series([1, 2.0, "2"], dtype=object)}),
    "polars": pl.DataFrame({"code": [1.0, 2.0, 2.0]}),
    "arrow": pa.table({"code": pa.array([1, 2, 2], pa.uint8())}),
    "dictionary": pa.table({"code": pa.array(["1", "2", "2"]).dictionary_encode()}),
}


@pytest.mark.parametrize("name", SPELLINGS)
@pytest.mark.parametrize("listed", [[2, 1], ["2", "1"], [2.0, 1.0], "2,1"])
def test_one_code_in_every_spelling_is_one_category(name, listed):
    table = SPELLINGS[name]
    where = "in == 1" if "in" in getattr(table, "columns", ()) else ()
    options = {"categories": listed, "upper": 9, "epsilon": 60, "where": where}
    rel = privatize(table, by="code", **options)
    assert rel.published["count"].counts.tolist() == [2, 1]
    given = [2, 1] if listed == "2,1" else listed
    assert list(rel.table["code"].to_numpy()) == given


@pytest.mark.parametrize("flags", [[True, False, False], ["true", "FALSE", "False"]])
@pytest.mark.parametrize("library", LIBRARIES)
def test_true_and_false_keep_their_labels(flags, library):
    table = LIBRARIES[library]({"ill": flags})
    for listed in ([False, True], ["False", "True"], "False,True"):
        rel = privatize(table, by="ill", categories=listed, upper=9, epsilon=60)
        assert [str(value) for value in rel.table["ill"].to_numpy()] == ["False", "True"]
        assert rel.published["count"].counts.tolist() == [2, 1]


def test_codes_with_zeros_and_ones_stay_apart():
    people = pd.DataFrame({"x": ["007", "7", "True", "1"]})
    listed = ["7", "007", "1", "true"]
    rel = privatize(people, by="x", categories=listed, upper=9, epsilon=60)
    assert rel.table["count"].tolist() == [1, 1, 1, 1]
    with pytest.raises(ArgumentError, match="name every category once"):
        privatize(people, by="x", categories=["1", "1.0"], upper=9, epsilon=60)


def test_rows_are_not_counted_into_a_column_that_is_there():
    people = pd.DataFrame({"count": ["a"]})
    with pytest.raises(ArgumentError, match="not name a column 'count'"):
        privatize(people, by="count", categories=["a", "b"], upper=9, epsilon=1)


def test_everything_else_has_a_cell_of_its_own(build):
    columns = {"area": ["n", "x", "y", "n", "s"], "sex": ["f", "f", "m", "m", "q"]}
    table, more = build(columns)
    options = {"upper": 9, "epsilon": 60, "other": "elsewhere", **more}
    rel = privatize(table, by="area", categories=["s", "n"], **options)
    assert rel.published["count"].counts.tolist() == [1, 2, 2]
    assert list(rel.table["area"].to_numpy()) == ["s", "n", "elsewhere"]
    assert "counted as “elsewhere”" in rel.files["METHODOLOGY.html"].decode()
    listed = {"area": ["n", "s"], "sex": ["f", "m"]}
    both = privatize(table, by=["area", "sex"], categories=listed, **options)
    assert both.published["count"].counts.tolist() == [1, 1, 0, 0, 3]


def test_rows_of_a_table_of_counts_share_the_other_cell():
    table = pd.DataFrame({"area": ["n", "x", "y", "s"], "cases": [5, 3, 4, 1]})
    options = {"count": "cases", "by": "area", "categories": ["s", "n"], "epsilon": 60}
    rel = privatize(table, upper=20, other="elsewhere", **options)
    assert rel.table["cases"].tolist() == [1, 5, 7]
    assert privatize(table, upper=6, other="n", **options).table["cases"].tolist() == [1, 6]
    with pytest.raises(tv.UsageError, match="cannot share a cell"):
        privatize(table.assign(note="x"), upper=9, other="e", keep="note", **options)
    with pytest.raises(tv.UsageError, match="goes with 'categories'"):
        privatize(table, "cases", by="area", upper=9, epsilon=1, other="e")


@pytest.mark.parametrize("kind", ["csv", "pandas", "polars", "arrow"])
def test_nobody_at_all_is_a_table_of_zeros(tmp_path, kind):
    (tmp_path / "none.csv").write_text("area,age,who\n")
    table = {
        "csv": tmp_path / "none.csv",
        "pandas": pd.DataFrame({"area": [], "age": [], "who": []}),
        "polars": pl.DataFrame(schema={"area": pl.String, "age": pl.Int64, "who": pl.String}),
        "arrow": pa.table({"area": pa.array([], pa.string()), "age": pa.array([], pa.int8())}),
    }[kind]
    options = {"categories": ["n", "s"], "upper": 9, "epsilon": 60, "by": "area"}
    rel = privatize(table, where="age > 3", **options, out=tmp_path / "out")
    assert rel.published["count"].counts.tolist() == [0, 0]
    assert all(finding.ok for finding in tv.check_package(tmp_path / "out"))
    if kind != "arrow":
        bound = {"id_column": "who", "contributions": 2}
        assert privatize(table, **bound, **options).published["count"].counts.tolist() == [0, 0]
    counts = privatize(table, "age", keep=[], **options)
    assert counts.published["age"].counts.tolist() == [0, 0]
    with pytest.raises(TableError, match="no rows"):
        privatize(table, "age", keep="all", upper=9, epsilon=1)


def test_one_odd_value_among_numbers_is_no_reason_to_refuse():
    """It does not meet the condition, as a missing one does not; nobody learns that it is there."""
    people = pd.DataFrame({"age": ["1", "20", "unknown", None], "sex": ["m", "f", "m", "f"]})
    options = {"by": "sex", "categories": ["f", "m"], "upper": 9, "epsilon": 60}
    assert privatize(people, where="age >= 18", **options).table["count"].tolist() == [1, 0]
