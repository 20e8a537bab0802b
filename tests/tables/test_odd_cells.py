"""Cells that some files cannot hold are published so that they are read back, or refused."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tallyveil as tv

KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
ROWS = 60


@pytest.fixture
def options(tmp_path):
    tv.Ledger.create(tmp_path / "budget.db").open("d", 5)
    account = {"ledger": tmp_path / "budget.db", "dataset": "d"}
    return {"count": "c", "keep": "all", "upper": 9, "epsilon": 1, "method": "geometric", **account}


def make(kind, label):
    columns = {
        "k": [label, "x"] * (ROWS // 2),
        "id": list(range(ROWS)),
        "c": [i % 5 for i in range(ROWS)],
    }
    return KINDS[kind](columns)


def count_debits(options):
    return len(tv.Ledger(options["ledger"]).history("d"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize("label", ["a\rb", 'a"\rb', "a\r\nb", "a\r,b"])
def test_carriage_returns_are_read_back_or_refused_before_the_debit(
    options, tmp_path, kind, ending, label
):
    out = tmp_path / "r"
    if (kind, ending, label) == ("pandas", "csv", "a\rb"):
        with pytest.raises(tv.TableError, match="carriage return"):
            tv.privatize(make(kind, label), **options, format=ending, out=out)
        assert count_debits(options) == 0
    else:
        tv.privatize(make(kind, label), **options, format=ending, out=out)
        assert [found for found in tv.check_package(out) if not found.ok] == []
        assert count_debits(options) == 1


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}])
def test_lists_and_structs_are_not_published_in_parquet(options, tmp_path, value):
    table = pa.table(
        {"k": [value] * ROWS, "id": list(range(ROWS)), "c": [i % 5 for i in range(ROWS)]}
    )
    with pytest.raises(tv.TableError, match=r"'k' has the type .* say .*format.* arrow"):
        tv.privatize(table, **options, out=tmp_path / "r", format="parquet")
    assert count_debits(options) == 0
    tv.privatize(table, **options, out=tmp_path / "r", format="arrow")
    assert all(found.ok for found in tv.check_package(tmp_path / "r"))
