"""What a publisher is warned of, in Python as on the command line."""

import warnings

import pandas as pd
import pytest

import tallyveil as tv

FRAME = pd.DataFrame({"county": list("dbca"), "cases": [1, 3, 3, 9]})
OPTIONS = {"count": "cases", "keep": "all", "upper": 9, "epsilon": 1}


@pytest.mark.parametrize("call", [tv.privatize, tv.privatize_levels])
def test_rows_in_the_order_of_their_counts_are_warned_of(call, tmp_path):
    levels = {"levels": [2, 1], "epsilon": None} if call is tv.privatize_levels else {}
    with pytest.warns(UserWarning, match="in the order of 'cases'") as found:
        call(FRAME, **{**OPTIONS, **levels})
    assert found[0].filename == __file__


@pytest.mark.filterwarnings("error")
def test_a_warning_that_is_an_error_comes_before_the_debit(tmp_path):
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("cases", 5)
    account = {"ledger": book, "dataset": "cases", "out": tmp_path / "out"}
    with pytest.raises(UserWarning, match="in the order"):
        tv.privatize(FRAME, **OPTIONS, **account)
    assert book.history("cases") == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("frame", "options"),
    [
        (FRAME, {"order": "sorted"}),
        (FRAME.assign(county=list("abcd")), {}),
        (FRAME.assign(cases=[1, 3, 2, 9]), {}),
        (FRAME.assign(cases=2), {}),
    ],
    ids=["sorted", "a public order", "no order", "all the same"],
)
def test_other_orders_are_not(frame, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tv.privatize(frame, **OPTIONS, **options)
