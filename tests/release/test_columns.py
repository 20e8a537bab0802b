"""Only the columns that `keep` names are released, and the table is refused without it."""

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


@pytest.mark.parametrize(
    ("options", "columns"),
    [({}, "county, deaths, note"), ({"by": "county"}, "deaths, note")],
)
def test_columns_that_no_option_names_are_refused_and_listed(paid, options, columns):
    rule = rf"Name the public columns to release with 'keep' \({columns}\)"
    with pytest.raises(tv.TableError, match=rule):
        privatize(FRAME, **OPTIONS, **options, **paid)


@pytest.mark.parametrize(
    ("options", "columns"),
    [
        ({"keep": "all"}, ["county", "cases", "deaths", "note"]),
        ({"keep": ["county", "note"]}, ["county", "cases", "note"]),
        ({"by": "county", "keep": []}, ["county", "cases"]),
        ({"hierarchy": "county", "keep": []}, ["county", "cases"]),
    ],
)
def test_named_columns_are_released(options, columns):
    assert list(privatize(FRAME, **OPTIONS, **options).table.columns) == columns


def test_a_labelled_index_must_be_named_too():
    frame = FRAME.set_index("county")[["cases", "note"]]
    with pytest.raises(tv.TableError, match=r"\(county, note\)"):
        privatize(frame, **OPTIONS)
    with pytest.raises(tv.TableError, match="index 'county'"):
        privatize(frame, **OPTIONS, keep="note")
    assert privatize(frame, **OPTIONS, keep="county").table.index.name == "county"


def test_the_page_lists_every_public_column():
    wide = pd.DataFrame({f"public {i}": range(60) for i in range(30)} | {"cases": [1] * 60})
    page = privatize(wide, **OPTIONS, keep="all").files["METHODOLOGY.html"].decode()
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
