"""Public categories decide the rows: nobody's presence adds one, nobody's absence removes one."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallyveil as tv
from tallyveil.errors import ArgumentError, TableError
from tallyveil.tables.categories import count_rows, parse_conditions, public_categories
from tallyveil.tables.source import read_table

PEOPLE = pd.DataFrame(
    {"region": ["n", "s", "n", "n"], "sex": ["f", "m", "m", "f"], "age": [70, 12, 65, 5],
     "seen": ["2026-01-01", "2026-02-01", None, "2026-03-01"]}
)  # fmt: skip


def counted(by, categories, *where):
    labels = public_categories(categories, by)
    return count_rows(read_table(PEOPLE), by, labels, parse_conditions(where)).tolist()


def test_counting():
    assert counted(["region"], ["s", "n", "w"]) == [1, 3, 0]
    both = {"region": ["n", "s"], "sex": ["f", "m"]}
    assert counted(["region", "sex"], both) == [2, 1, 0, 1]
    assert counted(["sex", "region"], [("f", "n"), ("m", "n"), ("m", "s")]) == [2, 1, 1]


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
        (["seen >= 2026-02-01"], [1, 1]),
        (["seen != 2026-02-01"], [3, 0]),
    ],
)
def test_conditions(conditions, expected):
    assert counted(["region"], ["n", "s"], *conditions) == expected


@pytest.mark.parametrize("text", ["age", "age >=", ">= 5", "age ~ 5", ""])
def test_conditions_that_are_none(text):
    with pytest.raises(ArgumentError, match="'where' must"):
        parse_conditions([text])


def test_lists_from_files(tmp_path):
    plain = tmp_path / "list.txt"
    plain.write_text("region\nn\n\ns\n")
    assert public_categories(plain, ["region"]) == (("n",), ("s",))
    table = tmp_path / "list.csv"
    table.write_text("sex,region,x\nf,n,1\nm,s,2\n")
    assert public_categories(str(table), ["region", "sex"]) == (("n", "f"), ("s", "m"))
    assert public_categories(str(table), ["sex"]) == (("f",), ("m",))
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
    with pytest.raises(TableError, match="no column 'county'"):
        counted(["county"], ["n"])
    with pytest.raises(TableError, match="names a column"):
        counted(["region"], ["n", "s"], "height > 5")


def test_an_aggregated_table_follows_the_public_list():
    table = pd.DataFrame({"region": ["n", "s"], "cases": [5, 7]})
    options = {"count": "cases", "upper": 20, "epsilon": 50, "by": "region"}
    out = tv.privatize(table, categories=["s", "w", "n"], **options).table
    assert out["region"].tolist() == ["s", "w", "n"]
    assert out["cases"].tolist() == [7, 0, 5]
    out = tv.privatize(table, categories=["s", "n"], **options).table
    assert out["cases"].tolist() == [7, 5]
    wide = table.assign(note="x")
    with pytest.raises(TableError, match="no row for some category"):
        tv.privatize(wide, categories=["s", "w", "n"], **options)
    narrow = tv.privatize(wide, categories=["s", "w", "n"], drop=["note"], **options).table
    assert narrow["cases"].tolist() == [7, 0, 5]
    with pytest.raises(TableError, match="Row 2 has a category"):
        tv.privatize(table, categories=["n"], **options)


def test_microdata_end_to_end():
    rel = tv.privatize(PEOPLE, by="region", categories=["s", "n", "w"], upper=9, epsilon=60)
    assert rel.table.to_dict("list") == {"region": ["s", "n", "w"], "count": [1, 3, 0]}
    assert rel.receipt.table.counted_by == ("region",)
    assert rel.receipt.unit[0] == "one row of the confidential table"


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=30))
def test_one_person_more_or_less_moves_one_cell_by_one(people):
    by, labels = ["x"], public_categories("a,b,c,d", ["x"])
    whole = count_rows(read_table(pd.DataFrame({"x": people})), by, labels, ())
    if len(people) > 1:
        less = count_rows(read_table(pd.DataFrame({"x": people[1:]})), by, labels, ())
        assert np.abs(whole - less).sum() == 1
    assert whole.sum() == len(people)
