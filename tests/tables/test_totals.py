"""Rows that repeat others are noticed by name and asked about."""

import pandas as pd
import pytest

import tallyveil as tv
from tallyveil.tables.read import read_table
from tallyveil.tables.subtotals import find_totals
from tests.asking import privatize

OPTIONS = {"count": "cases", "keep": "all", "upper": 9, "epsilon": 1}


def table(*areas, **columns):
    return pd.DataFrame({"area": areas, "cases": [1] * len(areas), **columns})


TOTALS = (
    "Total|TOTAL| total |Grand total|Subtotal|All|Sum|Gesamt|Insgesamt|Ensemble|Totale|"
    "Total, England|Kent total|Kent (Total)|All ages|Both sexes|Ogółem|合計"
)


@pytest.mark.parametrize("label", TOTALS.split("|"))
def test_totals_are_asked_about(label, tmp_path):
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("cases", 5)
    account = {"ledger": book, "dataset": "cases", "out": tmp_path / "out"}
    rows = table("Kent", "Surrey", label)
    with pytest.raises(tv.TableError, match="allow_totals=True") as problem:
        privatize(rows, **OPTIONS, **account)
    assert "contributions=2" in str(problem.value)
    assert book.history("cases") == []
    assert privatize(rows, **OPTIONS, contributions=2).receipt.epsilon == 2
    assert privatize(rows, **OPTIONS, allow_totals=True).receipt.epsilon == 1


@pytest.mark.parametrize(
    "labels",
    [
        ["Kent", "Surrey"],
        ["All Saints", "St Mary"],
        ["All others", "Kent"],
        ["Totnes", "Summerset", "Allerton"],
        ["Total"],
        ["W1", "W2", "W10", "W11"],
        ["1", "10", "100"],
        ["0-4", "5-9", "10-14"],
        ["North", "North East", "North West"],
        ["", "a/b", "a/c"],
        [f"c{at}" for at in range(120)],
    ],
)
def test_other_names_are_not(labels):
    assert find_totals(read_table(table(*labels)), ["area"]) == {"area": (None, 1)}


@pytest.mark.parametrize(
    ("labels", "levels"),
    [
        (["DE", "DE1", "DE11", "DE12", "FR", "FR1"], 3),
        (["01", "01001", "01003", "02", "02001"], 2),
        (["Kent", "Kent/Dover", "Kent/Thanet"], 2),
        (["A", "A > b", "A > b > c"], 3),
    ],
)
def test_parents_among_the_rows_are_asked_about(labels, levels):
    with pytest.raises(tv.TableError, match=f"contributions={levels}"):
        privatize(table(*labels), **OPTIONS)


def test_totals_of_two_columns_multiply():
    rows = table("Kent", "Kent", "Total", "Total", sex=["f", "All", "f", "All"])
    with pytest.raises(tv.TableError, match="contributions=4"):
        privatize(rows, **OPTIONS)
    assert privatize(rows, **OPTIONS, contributions=4).receipt.epsilon == 4


def test_microdata_are_counted_once_whatever_their_label():
    people = pd.DataFrame({"area": ["Kent", "Total"]})
    rel = privatize(people, by="area", categories=["Kent", "Total"], upper=9, epsilon=1)
    assert rel.receipt.epsilon == 1
