"""What a publisher is warned of, in Python as on the command line."""

import warnings

import pandas as pd
import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.check.package import check_package
from tallyveil.cli import app
from tests.asking import privatize

FRAME = pd.DataFrame({"county": list("dbca"), "cases": [1, 3, 3, 9]})
OPTIONS = {"count": "cases", "keep": "all", "upper": 9, "epsilon": 1}


@pytest.mark.parametrize("call", [tv.privatize, tv.privatize_levels])
def test_rows_in_the_order_of_their_counts_are_warned_of(call, tmp_path):
    options = dict(OPTIONS)
    if call is tv.privatize_levels:
        options["epsilons"] = [2, options.pop("epsilon")]
    with pytest.warns(UserWarning, match="in the order of 'cases'") as findings:
        call(FRAME, **options)
    assert findings[0].filename == __file__


@pytest.mark.filterwarnings("error")
def test_a_warning_that_is_an_error_comes_before_the_debit(tmp_path):
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("cases", 5)
    account = {"ledger": book, "dataset": "cases", "out": tmp_path / "out"}
    with pytest.raises(UserWarning, match="in the order"):
        privatize(FRAME, **OPTIONS, **account)
    assert book.history("cases") == []
    assert not (tmp_path / "out").exists()


MIXED = FRAME.assign(cases=[1, 3, 2, 9])


@pytest.mark.parametrize(
    ("frame", "options", "words"),
    [
        (MIXED.assign(deaths=[1, 0, 2, 1]), {}, "Published unchanged.*'deaths'"),
        (MIXED.assign(county=["=1+1", "b", "c", "d"]), {}, "Cells of 'county' begin with ="),
        (MIXED.assign(county=["-x", "b", "c", "d"]), {}, "Cells of 'county' begin with ="),
        (MIXED, {"epsilon": 9}, "Epsilon 9 protects little"),
        (MIXED, {"delta": "0.2", "method": "geometric"}, "Delta 0.2 protects little"),
    ],
    ids=["whole numbers", "formula", "sign", "epsilon", "delta"],
)
def test_what_else_a_publisher_is_warned_of(frame, options, words):
    with pytest.warns(UserWarning, match=words):
        privatize(frame, **{**OPTIONS, **options})


def test_exact_counts_of_single_rows_are_said_on_the_page_and_checked(tmp_path):
    frame, folder = MIXED.assign(state=["n", "n", "n", "DC"]), tmp_path / "out"
    hierarchy = {"keep": None, "hierarchy": ["state", "county"], "invariant": "state"}
    words = (
        "exact sums by 'state' publish the exact count of 1 row that is the only one of its group"
    )
    with pytest.warns(UserWarning, match=words):
        release = privatize(frame, **{**OPTIONS, **hierarchy}, out=folder)
    text = "and with them the exact count of 1 row that is the only one of its group"
    assert text in (folder / "METHODOLOGY.html").read_text()
    assert release.table["cases"].iloc[-1] == 9
    assert all(finding.ok for finding in check_package(folder))


@pytest.mark.parametrize(
    ("frame", "options"),
    [
        (MIXED.assign(year=2026), {"keep": ["county", "year"]}),
        (MIXED.assign(county=["-1", "+2.5", "3", "4"]), {}),
        (FRAME.assign(county=list("abcd")), {}),
        (FRAME.assign(cases=[1, 3, 2, 9]), {}),
        (FRAME.assign(cases=2), {}),
    ],
    ids=["named", "signs of numbers", "a public order", "no order", "all the same"],
)
def test_other_tables_are_not(frame, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        privatize(frame, **{**OPTIONS, **options})


@pytest.mark.parametrize(
    ("options", "words"),
    [("", "above 1,000,000,000, the largest that is published,"), ("--upper 9", "above --upper")],
)
def test_at_a_screen_what_is_cut_names_its_bound(options, words, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("id,n\na,10000000000\nb,1\nc,2\nd,5\n")
    keys = f"privatize {table} --count n --keep id --epsilon 1 {options} --out {tmp_path / 'r'}"
    text = " ".join(CliRunner().invoke(app.app, keys.split()).stderr.split())
    assert words in text
    assert ("--upper" in text) == bool(options)


@pytest.mark.parametrize(
    ("label", "keep", "note"),
    [
        ("Total", "id", "A label of 'place' looks like that of a total"),
        ("", "place", "The last row has no label"),
    ],
)
def test_a_total_that_its_label_does_not_show_is_named(label, keep, note):
    places = [f"p{row}" for row in range(9)]
    table = {"id": range(10), "place": [*places, label], "cases": [1] * 9 + [9]}
    with pytest.warns(UserWarning, match=note):
        privatize(pd.DataFrame(table), count="cases", keep=keep, upper=9, epsilon=1)
