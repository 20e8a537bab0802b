"""Attacks on units, sums, structural zeros and accounts: facts of a receipt that came later."""

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tallyveil as tv
from tallyveil.check.ledger import check_ledger
from tallyveil.release.receipt import MOST_COMPOSED, Receipt
from tallyveil.tables.microdata import identify_persons
from tallyveil.tables.read import read_table
from tests.asking import privatize
from tests.attacks.forging import checks, read

FRAME = pd.DataFrame({"county": range(300), "cases": [i % 7 for i in range(300)]})
COMMON = {"count": "cases", "keep": "all", "upper": 9, "epsilon": 1}


def test_the_spellings_of_one_person_share_one_bound(tmp_path):
    who = ["7", "7.0", " 7", "007", "é", "e\u0301"]
    frame = pd.DataFrame({"who": who, "sex": "f"})
    assert identify_persons(read_table(frame), "who").tolist() == [0, 0, 0, 1, 2, 2]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    assert identify_persons(read_table(tmp_path / "rows.csv"), "who").tolist() == [0, 0, 0, 1, 2, 2]


@pytest.mark.parametrize("word", ["NaN", "NA", "null", "None", "<NA>", "n/a", " nan ", ".", "-"])
def test_strangers_without_a_name_do_not_share_one_bound(word, tmp_path):
    """With one bound for both, the row of one that stays depends on whether the other is there."""
    (tmp_path / "rows.csv").write_text(f"who,sex\na,f\n{word},f\n{word},m\n")
    with pytest.raises(tv.TableError, match="Row 2 has no value in 'who'"):
        identify_persons(read_table(tmp_path / "rows.csv"), "who")


def test_a_number_that_is_none_names_nobody_in_any_engine():
    numbers = {"who": [1.0, float("nan")], "sex": ["f", "m"]}
    for table in (pd.DataFrame(numbers), pl.DataFrame(numbers), pa.table(numbers)):
        with pytest.raises(tv.TableError, match="Row 2 has no value in 'who'"):
            identify_persons(read_table(table), "who")


def test_structural_zeros_cannot_rest_on_what_was_drawn(tmp_path):
    """True zeros published as they are, called structural by a rule about the count itself."""
    privatize(FRAME, method="geometric", out=tmp_path / "r", **COMMON)
    document = read(tmp_path / "r")
    empty = int((pd.read_csv(tmp_path / "r" / "data.csv").cases == 0).sum())
    for rule in ("cases == '0'", "county == 'x' and cases == '0'", "nowhere == '0'", "", "a or b"):
        document["structural_zeros"] = {"rules": [rule], "rows": empty}
        with pytest.raises(tv.PackageError):
            Receipt.from_dict(document)


def test_a_hierarchy_cannot_rest_on_what_was_drawn_nor_call_rows_exact(tmp_path):
    frame = FRAME.assign(state=FRAME.county % 5)
    privatize(frame, hierarchy="state", out=tmp_path / "r", **COMMON)
    document = read(tmp_path / "r")
    for name, value in (("columns", ["cases"]), ("exact", "state")):
        forged = json.loads(json.dumps(document))
        forged["hierarchy"][name] = value
        if name == "columns":
            forged["hierarchy"]["levels"][1]["name"] = "cases"
        else:
            forged["hierarchy"]["levels"].pop()
            words = "the exact total, which the publisher declared public"
            forged["hierarchy"]["outside_the_promise"] = words
        with pytest.raises(tv.PackageError, match=r"sorts rows|rows themselves"):
            Receipt.from_dict(forged)


@pytest.mark.parametrize("columns", ["county", "state,county"])
def test_rows_are_no_invariant(columns, paid):
    """The level of the rows was noisy and the sums above it, called exact, were not."""
    frame = FRAME.assign(state=FRAME.county % 5)
    with pytest.raises(tv.ArgumentError, match="'invariant' must name a level above the rows"):
        privatize(frame, hierarchy=columns, invariant="county", **COMMON, **paid)


def test_other_rows_of_a_table_of_counts_share_a_cell_and_the_folder_checks(tmp_path):
    asked = {"by": "county", "categories": list(range(250)), "other": "rest"}
    privatize(FRAME, count="cases", upper=9, epsilon=1, out=tmp_path / "r", **asked)
    assert checks(tmp_path / "r")


def test_terms_of_an_account_are_those_of_the_ledger(tmp_path):
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("cases", 20)
    book.open("visits", 20, "1e-6", accounting="zcdp")
    for name in ("cases", "visits"):
        privatize(FRAME, out=tmp_path / name, ledger=book, dataset=name, **COMMON)
        assert check_ledger(tmp_path / name, book, name).ok
        document = read(tmp_path / name)
        forged = {"accounting": "exact", "total_epsilon": "1/10", "total_delta": "1/1000000"}
        document["ledger"] |= forged
        text = Receipt.from_dict(document).to_json()
        (tmp_path / name / "receipt.json").write_text(text, encoding="utf-8")
        found = check_ledger(tmp_path / name, book, name)
        assert not found.ok
        assert "another accounting or total" in found.detail


def test_what_is_composed_was_fixed_before_the_first_draw(tmp_path):
    """How preserve shares its epsilon depends on a private bound: only the sum is composed."""
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("cases", 20, "1e-6", accounting="exact")
    book.plan("cases", [1, "1/2"])
    asked = {**COMMON, "upper": "auto", "upper_epsilon": 1, "epsilon": "1/2", "method": "preserve"}
    rel = tv.privatize(FRAME, out=tmp_path / "r", ledger=book, dataset="cases", **asked)
    debited = book.history("cases")[0].epsilons
    assert rel.receipt._charges == debited == (1, Fraction(1, 2))
    assert len(rel.receipt.stages) == 3
    assert checks(tmp_path / "r")


def test_composing_many_stages_takes_no_time(tmp_path):
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("cases", 20, "1e-6", accounting="zcdp")
    names = [f"n{i}" for i in range(MOST_COMPOSED + 1)]
    counts = pd.DataFrame({name: np.arange(3) for name in names})
    asked = {"upper": 2, "epsilon": "0.001", "method": "geometric"}
    rel = privatize(counts, count=names, out=tmp_path / "r", ledger=book, dataset="cases", **asked)
    assert rel.receipt.composed == rel.receipt.epsilon


def test_words_that_cannot_be_written_cost_nothing(paid):
    for zero in ("county = '\ud800'", ["county = 7", "county = '\ud800'"]):
        with pytest.raises(tv.UsageError, match="'zero' has a character that cannot be written"):
            privatize(FRAME, structural_zeros=zero, **COMMON, **paid)


@pytest.mark.parametrize("often", [700, 1000, 10**6])
def test_an_enormous_cost_is_stated_and_not_a_crash(often, tmp_path):
    asked = {**COMMON, "contributions": often, "out": tmp_path / "r"}
    rel = privatize(FRAME, method="geometric", **asked)
    assert "up to a factor of a very large number" in rel.receipt.promise
    assert checks(tmp_path / "r")
    with pytest.raises(tv.ArgumentError, match="'contributions' must be at most"):
        privatize(FRAME, **{**COMMON, "contributions": 10**6 + 1})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("unbiased", "no"),
        ("allow_totals", "no"),
        ("allow_duplicates", 0),
        ("hierarchy", 5),
        ("disjoint", 5),
        ("disjoint", [["cases", "county"], None]),
        ("level_weights", np.ones(2)),
    ],
)
def test_values_of_another_kind_are_refused_in_words(option, value):
    with pytest.raises(tv.TallyveilError):
        privatize(FRAME, **{**COMMON, option: value})
