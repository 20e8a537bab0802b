"""Odd cells and names are published so that they are read back, or refused before the debit."""

import csv
import datetime as dt
import decimal
import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tallyveil.tables.trial import WHOLE_ROWS

import tallyveil as tv
from tallyveil.check.package import _agree
from tallyveil.tables.published import read_published
from tests.asking import privatize

pytestmark = pytest.mark.filterwarnings("ignore:Cells of .* begin with:UserWarning")

ROWS = 60
FORMATS = ["csv", "tsv", "csv.gz", "xlsx", "parquet", "arrow", "dta", "sav", "xpt"]
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
USUAL = {*FRAMES, "csv", "xlsx", "parquet", "dta"} - {"polars", "arrow"}
"""What the normal run tries; `make test-slow` tries everything with everything."""


def mark_rare(names):
    """The rare ones are for the long run."""
    return [one if one in USUAL else pytest.param(one, marks=pytest.mark.slow) for one in names]


TEXTS = {
    "return": "a\rb",
    "return and comma": "a\r,b",
    "return and quote": 'a"\rb',
    "only a return": "\r",
    "return and line feed": "a\r\nb",
    "line feed": "a\nb",
    "quote": 'a"b',
    "tab": "a\tb",
    "nul": "a\0b",
    "control": "a\x01b",
    "no character": "a\uffff",
    "byte-order mark": "\ufeffa",
    "blank first": " a",
    "blank last": "a ",
    "empty": "",
    "code": "007",
    "number": "1e5",
    "NA": "NA",
    "nan": "nan",
    "truth": "True",
    "formula": "=1+1",
    "escape of Excel": "_x0041_",
    "long": "x" * 40_000,
    "too long for csv": "x" * 140_000,
}
NAMES = {**TEXTS, "33 letters": "n" * 33, "star": "a*b", "reserved": "if", "umlaut": "größe"}
DAY, HOUR = dt.datetime(1850, 1, 2), dt.timedelta(hours=1)
TYPES = {
    "period": pd.DataFrame({"k": pd.period_range("2020-01", periods=ROWS, freq="M")}),
    "interval": pd.DataFrame({"k": pd.interval_range(0, ROWS)}),
    "category of mixed": pd.DataFrame({"k": pd.Categorical([1, "a"] * 30)}),
    "complex": pd.DataFrame({"k": np.arange(ROWS) * 1j}),
    "bytes": pd.DataFrame({"k": [b"a", b"\xff"] * 30}),
    "mixed": pd.DataFrame({"k": [1, "a", None, 2.5, True, b"x"] * 10}),
    "time zone": pd.DataFrame({"k": pd.date_range("2020", periods=ROWS, freq="h", tz="UTC")}),
    "infinite": pd.DataFrame({"k": [np.inf, -np.inf, np.nan] * 20}),
    "large": pd.DataFrame({"k": np.array([2**63 - 1, 2**53 + 1] * 30)}),
    "larger": pd.DataFrame({"k": np.array([2**64 - 1, 1] * 30, dtype=np.uint64)}),
    "decimal nan": pd.DataFrame({"k": [decimal.Decimal("NaN"), decimal.Decimal("1.1")] * 30}),
    "some missing": pd.DataFrame({"k": ["a", None] * 30}),
    "all missing": pd.DataFrame({"k": [None] * ROWS}),
    "old days": pl.DataFrame({"k": [DAY, None] * 30}),
    "duration": pl.DataFrame({"k": [HOUR, -HOUR] * 30}),
    "binary": pl.DataFrame({"k": [b"a", b"\xff"] * 30}),
    "time": pl.DataFrame({"k": [dt.time(1, 2, 3, 4), dt.time(0)] * 30}),
    "128 bits": pl.DataFrame({"k": pl.Series([2**100, 0] * 30, dtype=pl.Int128)}),
    "list": pa.table({"k": pa.array([["a"], None, []] * 20)}),
    "struct": pa.table({"k": pa.array([{"a": 1, "b": "x"}] * ROWS)}),
    "map": pa.table({"k": pa.array([[("a", 1)]] * ROWS, pa.map_(pa.string(), pa.int64()))}),
    "decimal256": pa.table(
        {"k": pa.array([decimal.Decimal("1.1"), None] * 30, pa.decimal256(50, 2))}
    ),
    "nanoseconds": pa.table({"k": pa.array([1, 2] * 30, pa.time64("ns"))}),
    "half": pa.table({"k": pa.array(np.array([0.1, 2] * 30, dtype=np.float16))}),
    "null": pa.table({"k": pa.nulls(ROWS)}),
    "view": pa.table({"k": pa.array(["a", "b" * 20] * 30, pa.string_view())}),
    "unknown zone": pa.table({"k": pa.array([0, 2] * 30, pa.timestamp("us", "Not/There"))}),
    "extension": pa.table(
        {
            "k": pa.ExtensionArray.from_storage(
                pa.uuid(), pa.array([b"0" * 16] * ROWS, pa.binary(16))
            )
        }
    ),
}


@pytest.fixture
def options(tmp_path):
    tv.Ledger.create(tmp_path / "budget.db").open("d", 5)
    account = {"ledger": tmp_path / "budget.db", "dataset": "d", "out": tmp_path / "r"}
    asked = {"count": "c", "keep": "all", "upper": 9, "epsilon": 1, "allow_duplicates": True}
    return {**asked, "method": "geometric", **account}


def make(kind, labels, name="k", rows=ROWS):
    cells = [labels[at % len(labels)] for at in range(rows)]
    return FRAMES[kind]({name: cells, "c": [at % 5 for at in range(rows)]})


def add_counts(table):
    counts = [at % 5 for at in range(ROWS)]
    if isinstance(table, pd.DataFrame):
        return table.assign(c=counts)
    if isinstance(table, pl.DataFrame):
        return table.with_columns(pl.Series("c", counts))
    return table.append_column("c", pa.array(counts))


def publish(table, options, **more):
    """Publish; True if that checks, False if it was refused, and nothing in between."""
    asked = {**options, **more}
    refused = None
    try:
        privatize(table, **asked)
    except tv.TallyveilError as problem:
        refused = problem
    if refused is not None:
        assert isinstance(refused, (tv.TableError, tv.UsageError))
        assert len(tv.Ledger(asked["ledger"]).history("d")) == 0
        assert not asked["out"].exists()
        return False
    assert [found for found in tv.check_package(asked["out"]) if not found.ok] == []
    assert len(tv.Ledger(asked["ledger"]).history("d")) == 1
    return True


def read_text(out, ending="csv"):
    text = (out / f"data.{ending}").read_bytes().decode()
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=",\t"[ending == "tsv"]))


@pytest.mark.parametrize("kind", mark_rare(FRAMES))
@pytest.mark.parametrize("ending", mark_rare(FORMATS))
@pytest.mark.parametrize("label", TEXTS)
def test_labels_check_or_are_refused(options, kind, ending, label):
    publish(make(kind, [TEXTS[label], "x"]), options, format=ending)


@pytest.mark.parametrize("kind", mark_rare(FRAMES))
@pytest.mark.parametrize("ending", mark_rare(FORMATS))
@pytest.mark.parametrize("name", NAMES)
def test_names_check_or_are_refused(options, kind, ending, name):
    publish(make(kind, ["q", "x"], NAMES[name]), options, format=ending)


@pytest.mark.parametrize("ending", [None, *mark_rare(FORMATS)])
@pytest.mark.parametrize("kind", TYPES)
def test_types_check_or_are_refused(options, kind, ending):
    publish(add_counts(TYPES[kind]), options, format=ending)


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize("label", [one for one in TEXTS if "return" in one or one == "line feed"])
def test_ends_of_lines_in_labels_are_published_as_they_are(options, kind, ending, label):
    assert publish(make(kind, [TEXTS[label], "x"], TEXTS[label]), options, format=ending)
    rows = read_text(options["out"], ending)
    assert rows[0][0] == TEXTS[label]
    assert {row[0] for row in rows[1:]} == {TEXTS[label], "x"}


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("label", ["plain", "a\rb", "a\nb", "a\r\nb"])
def test_files_keep_their_ends_of_lines(options, tmp_path, end, label):
    rows = "".join(f'"{label}",x{at},{at % 5}{end}' for at in range(ROWS))
    (tmp_path / "t.csv").write_bytes(f"k,id,c{end}{rows}".encode())
    assert publish(tmp_path / "t.csv", options)
    content = (options["out"] / "data.csv").read_bytes()
    assert content.startswith(f"k,id,c{end}".encode())
    assert content.endswith(end.encode())
    assert {row[0] for row in read_text(options["out"])[1:]} == {label}


@pytest.mark.parametrize("value", [["a", "b"], {"a": 1}])
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_lists_and_structs_are_published(options, ending, value):
    table = pa.table({"k": pa.array([value] * ROWS), "c": [at % 5 for at in range(ROWS)]})
    assert publish(table, options, format=ending)


def test_lists_are_no_strata(options):
    table = pa.table({"k": pa.array([["a"], ["b"]] * 30), "c": [at % 5 for at in range(ROWS)]})
    more = {"strata": ["k"], "method": "preserve", "format": "parquet"}
    assert not publish(table, options, **more)


@pytest.mark.parametrize("ending", ["csv", "xlsx", "dta", "sav", "xpt", "parquet"])
def test_names_that_are_added_are_tried_before_the_debit(options, ending):
    count = "n" * 28  # Stata and SAS have names of 32 letters
    table = make("pandas", ["q"]).rename(columns={"c": count})
    checks = publish(table, {**options, "count": count}, format=ending, unbiased=True)
    assert checks == (ending not in ("dta", "xpt"))


@pytest.mark.parametrize("name", ["a,b", 'a"b', "a\rb", "a\nb", "\ufeffa"])
def test_names_of_arrays(options, name):
    checks = publish(np.arange(ROWS) % 5, {**options, "count": name, "keep": None})
    assert checks == (name != "\ufeffa")


@pytest.mark.parametrize("name", [None, float("nan"), 1, pd.Timestamp("2020-01-01"), ("a", "b")])
def test_names_that_are_no_text(options, name):
    assert publish(pd.DataFrame({name: ["q", "x"] * 30, "c": [1] * ROWS}), options)
    assert read_text(options["out"])[0] == [str(name), "c"]


@pytest.mark.parametrize("rows", [ROWS, WHOLE_ROWS + 500])
@pytest.mark.parametrize(
    ("odd", "ending"),
    [("a\0secret", "sav"), (2**60 + 1, "xlsx"), (float("inf"), "xlsx"), ("y" * 140_000, "csv")],
)
def test_what_is_refused_names_the_column_and_quotes_no_cell(options, rows, odd, ending):
    usual = "plain" if isinstance(odd, str) else 1
    labels = [usual] * (rows - 1) + [odd]
    table = make("pandas", labels, rows=rows).assign(other="fine")
    with pytest.raises(tv.TableError, match="the column 'k'") as caught:
        privatize(table, **options, format=ending)
    assert not any(word in str(caught.value) for word in ("secret", str(odd), "yyy"))
    assert len(tv.Ledger(options["ledger"]).history("d")) == 0


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("ending", ["csv", "xlsx", "dta", "parquet"])
def test_odd_labels_late_in_a_long_table(options, kind, ending):
    rows = WHOLE_ROWS + 500
    labels = [f"id {at}" for at in range(rows - 3)] + ["a\rb", 'a"b', "a,b "]
    assert publish(make(kind, labels, rows=rows), options, format=ending)


@pytest.mark.parametrize("ending", ["csv", "xlsx", "dta", "sav", "xpt", "parquet"])
@pytest.mark.parametrize("groups", [[1, 2, 3], [1, None, 2], ["a", "b", None], ["a\rb", "b", "c"]])
def test_hierarchies_check_in_every_format(options, ending, groups):
    table = make("pandas", groups, "g").assign(i=range(ROWS))
    checks = publish(table, options, hierarchy=["g"], method="auto", format=ending)
    assert checks == (ending != "xlsx" or groups[0] != "a\rb")


@pytest.mark.parametrize("how", ["hierarchy", "strata"])
@pytest.mark.parametrize(
    ("groups", "ending"),
    [(["a", "a ", "b"], "sav"), ([0.0, -0.0, 1.0], "xlsx"), ([2**60, 2**60 + 1, 3], "dta")],
)
def test_groups_that_become_one_are_refused(options, how, groups, ending):
    table = make("pandas", groups, "g").assign(i=range(ROWS))
    method = "auto" if how == "hierarchy" else "preserve"
    assert not publish(table, options, **{how: ["g"]}, method=method, format=ending)


def test_texts_that_become_one_number_are_refused(options, tmp_path):
    rows = "".join(f"{('1.5', '1.50', '2')[at % 3]},{at},{at % 5}\n" for at in range(ROWS))
    (tmp_path / "t.csv").write_text(f"g,i,c\n{rows}")
    more = {"strata": ["g"], "method": "preserve"}
    assert not publish(tmp_path / "t.csv", options, **more, format="xlsx")
    assert publish(tmp_path / "t.csv", options, **more)


def test_sheets_with_empty_cells_are_read_again(options):
    assert publish(make("pandas", ["a", None]), options, format="xlsx")
    read = read_published(options["out"] / "data.xlsx", None, "utf-8")
    assert list(read.labels("k")) == ["a", ""] * 30


@pytest.mark.parametrize(
    ("before", "after", "is_whole", "same"),
    [
        ("a ", "a", False, True),
        ("a", "b", False, False),
        ("abc", "ab", False, False),
        ("", "nan", False, True),
        ("", "a", False, False),
        ("1", "1.0", True, True),
        ("9007199254740993", "9007199254740992.0", True, False),
        ("0.1", "0.10000000149011612", False, True),
        ("inf", "", False, False),
        ("1e300", "inf", False, False),
        ("True", "1", False, True),
        ("True", "0", False, False),
        ("2020-01-01 00:00:00", "2020-01-01T00:00:00.000000001", False, True),
    ],
)
def test_what_labels_say(before, after, is_whole, same):
    assert _agree(before, after, is_whole) == same
