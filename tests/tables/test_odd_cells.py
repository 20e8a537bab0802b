"""Odd cells and names are published so that they are read back, or refused before the debit."""

import csv
import datetime as dt
import decimal
import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallyveil as tv
from tests.asking import privatize

pytestmark = pytest.mark.filterwarnings("ignore:Cells of .* begin with:UserWarning")

ROWS = 60
FORMATS = ["csv", "parquet"]
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
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
    "too long": "x" * 140_000,
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
    "codes": pd.DataFrame({"k": ["101", "102"] * 30}),
    "filtered": pd.DataFrame({"k": range(80)})[lambda frame: frame["k"] >= 20],
    "booleans": pd.DataFrame({"k": [True, False] * 30}),
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
    "far future": pa.table({"k": pa.array([0, 2**60] * 30, pa.timestamp("s"))}),
    "extension": pa.table(
        {
            "k": pa.ExtensionArray.from_storage(
                pa.uuid(), pa.array([b"0" * 16] * ROWS, pa.binary(16))
            )
        }
    ),
}


REFUSED = {
    *("period", "interval", "category of mixed", "mixed", "complex", "bytes", "binary", "128 bits"),
    *("duration", "list", "struct", "map", "extension", "unknown zone"),
    "far future",
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
        release = privatize(table, **asked)
    except tv.TallyveilError as problem:
        refused = problem
    if refused is not None:
        assert isinstance(refused, (tv.TableError, tv.UsageError))
        assert len(tv.Ledger(asked["ledger"]).history("d")) == 0
        assert not asked["out"].exists()
        return False
    assert [finding for finding in tv.check_package(asked["out"]) if not finding.ok] == []
    assert len(tv.Ledger(asked["ledger"]).history("d")) == 1
    assert type(release.table) is type(table) or isinstance(release.table, pa.Table)
    return True


def read_rows(out):
    text = (out / "data.csv").read_bytes().decode()
    return list(csv.reader(io.StringIO(text, newline="")))


UNWRITABLE = ("nul", "too long")


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("label", TEXTS)
def test_labels_are_published_as_they_are_or_refused(options, kind, ending, label):
    text = TEXTS[label]
    checks = publish(make(kind, [text, "x"]), options, format=ending)
    assert checks == (label not in UNWRITABLE)
    if checks and ending == "csv":
        assert {row[0] for row in read_rows(options["out"])[1:]} == {text, "x"}
    elif checks:
        assert pq.read_table(options["out"] / "data.parquet")["k"][:2].to_pylist() == [text, "x"]


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_names_are_published_as_they_are_or_refused(options, kind, ending, name):
    checks = publish(make(kind, ["q", "x"], NAMES[name]), options, format=ending)
    assert checks == (name not in (*UNWRITABLE, "byte-order mark"))
    if checks and ending == "csv":
        assert read_rows(options["out"])[0] == [NAMES[name], "c"]


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("kind", TYPES)
def test_types_check_or_are_refused(options, kind, ending):
    assert publish(add_counts(TYPES[kind]), options, format=ending) == (kind not in REFUSED)


def test_types_that_one_kind_of_file_cannot_hold_are_refused_in_it(options):
    hundreds = pa.array([1, 2] * 30).cast(pa.decimal128(21, 0)).cast(pa.decimal128(5, -2), False)
    table = add_counts(pa.table({"k": hundreds}))
    assert not publish(table, options, format="parquet")
    assert publish(table, options, format="csv")


def test_a_frame_that_cannot_be_built_again_is_refused_before_the_debit(options, monkeypatch):
    monkeypatch.setattr(pd, "array", lambda values, **_: 1 / 0)
    assert not publish(make("pandas", ["a", "b"]).astype({"k": "string"}), options)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("label", ["plain", "a\rb", "a\nb", "a\r\nb"])
def test_ends_of_lines_in_the_labels_of_a_file_are_kept(options, tmp_path, end, label):
    rows = "".join(f'"{label}",x{at},{at % 5}{end}' for at in range(ROWS))
    (tmp_path / "t.csv").write_bytes(f"k,id,c{end}{rows}".encode())
    assert publish(tmp_path / "t.csv", options)
    content = (options["out"] / "data.csv").read_bytes()
    assert content.startswith(b"k,id,c\n")
    assert {row[0] for row in read_rows(options["out"])[1:]} == {label}


def test_lists_are_no_strata(options):
    table = pa.table({"k": pa.array([["a"], ["b"]] * 30), "c": [at % 5 for at in range(ROWS)]})
    assert not publish(table, options, strata=["k"], method="preserve", format="parquet")


@pytest.mark.parametrize("name", ["a,b", 'a"b', "a\rb", "a\nb", "\ufeffa"])
def test_names_of_arrays(options, name):
    checks = publish(np.arange(ROWS) % 5, {**options, "count": name, "keep": None})
    assert checks == (name != "\ufeffa")


@pytest.mark.parametrize("name", [None, float("nan"), 1, pd.Timestamp("2020-01-01"), ("a", "b")])
def test_names_that_are_no_text(options, name):
    assert publish(pd.DataFrame({name: ["q", "x"] * 30, "c": [1] * ROWS}), options)
    assert read_rows(options["out"])[0] == [str(name), "c"]


@pytest.mark.parametrize("rows", [ROWS, 100_000])
@pytest.mark.parametrize(("odd", "usual"), [("a\0secret", "b"), ("y" * 140_000, "b"), ("yyy", 1)])
def test_what_is_refused_names_the_column_and_quotes_no_cell(options, rows, odd, usual):
    table = pd.DataFrame({"k": [usual] * (rows - 1) + [odd], "c": 1, "other": "fine"})
    with pytest.raises(tv.TableError, match=r"[Tt]he column 'k'") as caught:
        privatize(table, **options)
    assert not any(word in str(caught.value) for word in ("secret", "yyy"))
    assert len(tv.Ledger(options["ledger"]).history("d")) == 0


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("groups", [[1, 2, 3], [1, None, 2], ["a", "b", None], ["a\rb", "b", "c"]])
def test_hierarchies_check_in_every_format(options, ending, groups):
    table = make("pandas", groups, "g").assign(i=range(ROWS))
    assert publish(table, options, hierarchy=["g"], method="auto", format=ending)


def test_codes_that_look_like_one_number_stay_apart(options, tmp_path):
    rows = "".join(f"{('1.5', '1.50', '2')[at % 3]},{at},{at % 5}\n" for at in range(ROWS))
    (tmp_path / "t.csv").write_text(f"g,i,c\n{rows}")
    assert publish(tmp_path / "t.csv", options, strata=["g"], method="preserve")
    assert {row[0] for row in read_rows(options["out"])[1:]} == {"1.5", "1.50", "2"}
