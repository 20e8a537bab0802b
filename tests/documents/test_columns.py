"""Nothing goes out unasked: every other column is spoken of, or the table is refused."""

import pandas as pd
import pytest

import tallyveil as tv
from tests.asking import privatize

FRAME = pd.DataFrame(
    {
        "county": [f"c{i}" for i in range(60)],
        "cases": [i % 5 for i in range(60)],
        "deaths": [i % 3 for i in range(60)],
        "note": "x",
    }
)
OPTIONS = {"count": "cases", "upper": 9, "epsilon": 1}


def published(**options):
    return list(privatize(FRAME, **OPTIONS, **options).table.columns)


def test_columns_that_nobody_spoke_of_are_refused_and_named(tmp_path):
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("cases", 5)
    account = {"ledger": book, "dataset": "cases", "out": tmp_path / "out"}
    for options, left in (
        ({}, ["county", "deaths", "note"]),
        ({"by": "county"}, ["deaths", "note"]),
    ):
        with pytest.raises(tv.TableError, match="Name the public columns") as problem:
            privatize(FRAME, **OPTIONS, **options, **account)
        for name in left:
            assert f"'{name}'" in str(problem.value)
    assert book.history("cases") == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "columns"),
    [
        ({"keep": "all"}, ["county", "cases", "deaths", "note"]),
        ({"keep": ["county", "note"]}, ["county", "cases", "note"]),
        ({"by": "county", "keep": []}, ["county", "cases"]),
        ({"hierarchy": "county", "keep": [], "by": "county"}, ["county", "cases"]),
    ],
)
def test_what_was_said_to_be_public_goes_out(options, columns):
    assert published(**options) == columns


def test_a_labelled_index_is_spoken_of_too():
    frame = FRAME.set_index("county")[["cases"]]
    with pytest.raises(tv.TableError, match="'county'"):
        privatize(frame, **OPTIONS)
    assert privatize(frame, **OPTIONS, keep="county").table.index.name == "county"


def test_the_page_lists_every_column_as_the_publishers_word():
    wide = pd.DataFrame({f"public {i}": range(60) for i in range(30)} | {"cases": [1] * 60})
    rel = privatize(wide, **OPTIONS, keep="all")
    page = rel.files["METHODOLOGY.html"].decode()
    assert "The publisher declared public 0, " in page
    assert all(f"public {i}" in page for i in range(30))


@pytest.mark.parametrize("ignored", [{"allow_duplicates": True}, {"allow_totals": True}])
def test_options_that_microdata_have_no_use_for_are_refused(ignored):
    people = pd.DataFrame({"sex": ["f", "m", "f"]})
    with pytest.raises(tv.UsageError, match="leave"):
        privatize(people, by="sex", categories=["f", "m"], upper=5, epsilon=1, **ignored)


def test_a_kept_measurement_is_not_taken_for_a_category():
    frame = FRAME.assign(population=[1000 + i % 7 for i in range(60)])
    assert list(privatize(frame, **OPTIONS, keep="population").table) == ["cases", "population"]
    with pytest.raises(tv.TableError, match="repeats the category"):
        privatize(frame.assign(county="c"), **OPTIONS, keep=["county", "population"])


def test_an_index_that_is_not_named_is_refused():
    frame = FRAME.set_index("county")[["cases", "note"]]
    with pytest.raises(tv.TableError, match="index 'county'"):
        privatize(frame, **OPTIONS, keep="note")
