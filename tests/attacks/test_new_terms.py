"""Attacks on units, totals, structural zeros and accounts."""

import json

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
from tests.attacks.engines import ENGINES, hold
from tests.attacks.forging import checks, read

FRAME = pd.DataFrame({"county": range(300), "cases": [i % 7 for i in range(300)]})
COMMON = {"count": "cases", "keep": "all", "upper": 9, "epsilon": 1}
FRAMES = (pd.DataFrame, pl.DataFrame, pa.table)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_spellings_of_one_person_share_one_bound(engine, tmp_path):
    """With 7 and 7.0 as two persons, the rows of one person would count twice as often as stated.

    At such an epsilon every count is drawn as it is.
    """
    spelled = {"who": ["7", "7.0", " 7", "007", "\xe9", "e\u0301"], "sex": ["f"] * 6}
    plain = {"who": [7.0, 7.0, 8.0, 8.0], "sex": ["f"] * 4}
    if engine == "western csv":  # which cannot write the second accent
        spelled["who"][-1] = "\xe9"
    for columns, persons in ((spelled, 3), (plain, 2)):
        area = {"area": columns["who"]}  # one engine makes it the index
        source, more = hold(engine, columns | area, tmp_path / str(persons) / "table")
        options = {"by": "sex", "categories": ["f"], "id_column": "who", "contributions": 1}
        release = privatize(source, **options, upper=9, epsilon=60, **more)
        assert release.published["count"].counts.tolist() == [persons]


@pytest.mark.parametrize("word", ["NaN", "NA", "null", "None", "<NA>", "n/a", " nan ", ".", "-"])
def test_strangers_without_a_name_do_not_share_one_bound(word, tmp_path):
    """With one bound for both, the row of one that stays depends on whether the other is there."""
    (tmp_path / "rows.csv").write_text(f"who,sex\na,f\n{word},f\n{word},m\n")
    numbers = {"who": [1.0, float("nan")], "sex": ["f", "m"]}
    for table in (tmp_path / "rows.csv", *(make(numbers) for make in FRAMES)):
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
    changes = [
        {"columns": ["cases"]},
        {"columns": ["state", "county"], "invariant": "county"},
        {"invariant": "cases"},
    ]
    for change in changes:
        forged = json.loads(json.dumps(document))
        method = forged["columns"][0]["method"]
        method |= change
        forged["sums"]["levels"][1]["name"] = method["columns"][0]
        with pytest.raises(tv.PackageError, match=r"groups rows|sums that its method|wrong form"):
            Receipt.from_dict(forged)


@pytest.mark.parametrize("columns", ["county", "state,county"])
def test_rows_are_no_invariant(columns, paid):
    """The level of the rows was noisy and the sums above it, called exact, were not."""
    frame = FRAME.assign(state=FRAME.county % 5)
    with pytest.raises(tv.ArgumentError, match="'invariant' must name a level above the rows"):
        privatize(frame, hierarchy=columns, invariant="county", **COMMON, **paid)


def test_other_rows_of_a_table_of_counts_share_a_cell_and_the_folder_checks(tmp_path):
    options = {"by": "county", "categories": list(range(250)), "other": "rest"}
    privatize(FRAME, count="cases", upper=9, epsilon=1, out=tmp_path / "r", **options)
    assert checks(tmp_path / "r")


def test_terms_of_an_account_are_those_of_the_ledger(tmp_path):
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("cases", 20)
    book.open("visits", 20, "1e-6", accounting="zcdp")
    for name in ("cases", "visits"):
        privatize(FRAME, out=tmp_path / name, ledger=book, dataset=name, **COMMON)
        assert check_ledger(tmp_path / name, book, name).ok
        document = read(tmp_path / name)
        forged = {"accounting": "exact", "total_epsilon": "19", "total_delta": "1/1000000"}
        document["ledger"] |= forged
        text = Receipt.from_dict(document).to_json()
        (tmp_path / name / "receipt.json").write_text(text, encoding="utf-8")
        finding = check_ledger(tmp_path / name, book, name)
        assert not finding.ok
        assert "another accounting or total" in finding.detail
        document["ledger"]["total_epsilon"] = "1/10"
        with pytest.raises(tv.PackageError, match="more than all releases of its account"):
            Receipt.from_dict(document)


def test_composing_many_stages_takes_no_time(tmp_path):
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("cases", 20, "1e-6", accounting="zcdp")
    names = [f"n{i}" for i in range(MOST_COMPOSED + 1)]
    counts = pd.DataFrame({name: np.arange(3) for name in names})
    options = {"count": names, "upper": 2, "epsilon": "0.001", "method": "geometric"}
    release = privatize(counts, out=tmp_path / "r", ledger=book, dataset="cases", **options)
    receipt = release.receipt
    assert receipt.composed == receipt.epsilon


def test_words_that_cannot_be_written_cost_nothing(paid):
    for zero in ("county = '\ud800'", ["county = 7", "county = '\ud800'"]):
        with pytest.raises(tv.UsageError, match="'structural_zeros' has a character"):
            privatize(FRAME, structural_zeros=zero, **COMMON, **paid)


@pytest.mark.parametrize("contributions", [700, 10**6])
def test_an_enormous_cost_is_stated_and_not_a_crash(contributions, tmp_path):
    options = {**COMMON, "contributions": contributions, "out": tmp_path / "r"}
    release = privatize(FRAME, method="geometric", **options)
    assert "by up to a very large factor" in release.receipt.promise
    assert checks(tmp_path / "r")
    with pytest.raises(
        tv.ArgumentError, match="'contributions' must be a whole number from 1 to 1,000,000"
    ):
        privatize(FRAME, **{**COMMON, "contributions": 10**6 + 1})


@pytest.mark.parametrize(
    "options",
    [
        {"unbiased": "no"},
        {"allow_totals": "no"},
        {"allow_duplicates": 0},
        {"hierarchy": 5},
        {"margins": [["county"], 5]},
        {"disjoint": 5},
        {"disjoint": [["cases", "county"], None]},
        {"hierarchy": "county", "weights": np.ones(9)},
        {"out": 5},
        {"dataset": 5},
        {"dataset": "cases", "ledger": 5, "out": "release"},
    ],
    ids=str,
)
def test_values_of_another_type_are_refused(options, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(tv.ArgumentError):
        privatize(FRAME, **COMMON, **options)
    assert not any(tmp_path.iterdir())
