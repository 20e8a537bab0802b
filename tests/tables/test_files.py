"""The files people have: they come in, are released in the one form, and check."""

import datetime
import gzip
import io
import sys

import numpy as np
import pandas as pd
import pyreadstat
import pytest
import xlsxwriter

import tallyveil as tv
from tallyveil.errors import ArgumentError, MissingExtraError, TableError, UsageError
from tests.asking import privatize

NAMES = [f"Bäder {i}" for i in range(40)]
COUNTS = [(i * 7) % 5 for i in range(40)]
ROWS = "".join(f"{name},{count}\n" for name, count in zip(NAMES, COUNTS, strict=True))
TEXT = "county,cases\n" + ROWS


def release(table, out=None, **options):
    return privatize(
        table, **{"count": "cases", "keep": "all", "upper": 9, "epsilon": 50, "out": out, **options}
    )


def published(release):
    return release.published["cases"].counts.tolist()


def check(folder):
    found = tv.check_package(folder)
    assert all(finding.ok for finding in found), [f for f in found if not f.ok]


def make_book(path, rows, cells=(), change=lambda sheet, book: None):
    """Write a workbook of one sheet; `cells` are written over its rows."""
    with xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd"}) as book:
        sheet = book.add_worksheet("Cases 2026")
        for at, row in enumerate(rows):
            for column, value in enumerate(row):
                sheet.write(at, column, value)
        for place, value in dict(cells).items():
            sheet.write(place, value)
        change(sheet, book)
    return path


@pytest.fixture
def book(tmp_path):
    rows = [["county", "code", "day", "flag", "rate", "cases"]]
    rows += [
        [name, f"{i:03d}", datetime.datetime(2026, 1, 1 + i % 28), i % 2 == 0, i / 4, count]
        for i, (name, count) in enumerate(zip(NAMES, COUNTS, strict=True))
    ]
    return make_book(tmp_path / "cases.xlsx", rows)


ASKED = {
    "title": (f"Cases of 2026\n\n{TEXT}", "skiprows=2"),
    "title of a spreadsheet": (f"Cases of 2026,\n,\n{TEXT}", "skiprows=2"),
    "comments": (f"# one\n# two\n{TEXT}", "comment='#'"),
    "footnote": (f"{TEXT}Source: somebody\n", "skipfooter=1"),
    "footnotes": (f"{TEXT}\nSource: somebody\nSee there\n", "skipfooter=3"),
}


@pytest.mark.parametrize("name", ASKED)
def test_lines_that_are_no_rows_are_asked_about(tmp_path, name):
    content, words = ASKED[name]
    path = tmp_path / "cases.csv"
    path.write_text(content)
    with pytest.raises(TableError, match=words) as refused:
        release(path)
    assert "somebody" not in str(refused.value)


WRONG = {
    "cases.xls": (b"\xd0\xcf\x11\xe0" + bytes(99), "Save it as .xlsx"),
    "cases.xlsx": (b"\xd0\xcf\x11\xe0" + bytes(99), "old Excel workbook, or one with a password"),
    "broken.xlsx": (b"PK\x03\x04" + bytes(99), "cannot be read as an Excel workbook"),
    "book.csv": (b"PK\x03\x04" + bytes(99), "give it the ending .xlsx"),
    "packed.csv": (gzip.compress(TEXT.encode()), "give it the ending .csv.gz"),
    "text.parquet": (TEXT.encode(), "It seems to be text: name it .csv"),
    "cut.csv.gz": (gzip.compress(TEXT.encode())[:-20], "damaged or cut short"),
    "text.csv.zst": (TEXT.encode(), "damaged or cut short"),
    "text.csv.gz": (TEXT.encode(), "damaged or cut short"),
    "wide.csv": (TEXT.encode("utf-16-le"), "encoding='utf-16-le'"),
    "marked.csv": (b"\xef\xbb\xbf" + TEXT.encode(), "Leave 'source.encoding' out"),
    "packed.parquet.gz": (b"x", "unpack 'packed.parquet.gz' first"),
    "empty.csv.gz": (gzip.compress(b""), "empty"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_of_another_kind_is_refused_with_what_would_work(tmp_path, name):
    content, words = WRONG[name]
    path = tmp_path / name
    path.write_bytes(content)
    options = {"encoding": "latin-1"} if name == "marked.csv" else {}
    with pytest.raises(TableError, match=words):
        release(path, **options)


GOOD = [["county", "cases"], *([n, c] for n, c in zip(NAMES, COUNTS, strict=True))]
SHEETS = {
    "formula": (GOOD, {"B5": "=SUM(B2:B4)"}, "Row 4 of column 'cases' holds a formula"),
    "date": (GOOD, {"B5": datetime.datetime(2026, 3, 1)}, "Row 4 of .* has a date"),
    "text": (GOOD, {"B5": "many"}, "Row 4 of .* has text"),
    "true": (GOOD, {"B5": True}, "Row 4 of .* has something other than a number"),
    "fraction": (GOOD, {"B5": 2.5}, "Row 4 of .* has a fraction"),
    "negative": (GOOD, {"B5": -3}, "Row 4 of .* has a negative number"),
    "title": ([["Cases by county"], [], *GOOD], {}, "skiprows=2"),
    "footnotes": ([*GOOD, [], ["Source: x"]], {}, "skipfooter=2"),
    "no name": (GOOD, {"C5": 7}, "Column C of the sheet has no name"),
    "repeated": ([["cases", "cases"], *GOOD[1:]], {}, "Two columns are called"),
    "header only": (GOOD[:1], {}, "no rows"),
    "empty": ([], {}, "empty"),
}


@pytest.mark.parametrize("name", SHEETS)
def test_a_sheet_that_is_not_plainly_a_table_is_asked_about(tmp_path, name):
    rows, changes, words = SHEETS[name]
    with pytest.raises(TableError, match=words):
        release(make_book(tmp_path / "cases.xlsx", rows, changes))


HIDE = {"hidden": True}
HIDDEN = {
    "A3:A4 of the sheet are merged": lambda sheet, _: sheet.merge_range("A3:A4", "x"),
    "Row 7 of the sheet is hidden": lambda sheet, _: sheet.set_row(6, None, None, HIDE),
    "Column B of the sheet is hidden": lambda sheet, _: sheet.set_column("B:B", None, None, HIDE),
    "cases' holds an Excel error": lambda s, _: s.write_formula("B5", "=NA()", None, "#N/A"),
    "sheets: 'Cases 2026', 'Notes' .hidden.": lambda _, book: book.add_worksheet("Notes").hide(),
}


@pytest.mark.parametrize("words", HIDDEN)
def test_what_a_sheet_hides_is_asked_about(tmp_path, words):
    path = make_book(tmp_path / "cases.xlsx", GOOD, change=HIDDEN[words])
    with pytest.raises(TableError, match=words):
        release(path)
    with pytest.raises(TableError, match="There is no sheet 'Cases'"):
        release(path, sheet_name="Cases")


def test_a_sheet_is_read_as_it_is_shown(book, tmp_path):
    made = release(book, tmp_path / "out")
    assert published(made) == COUNTS
    assert (tmp_path / "out" / "data.csv").read_text().splitlines()[:3] == [
        "county,code,day,flag,rate,cases",
        "Bäder 0,000,2026-01-01,true,0,0",
        "Bäder 1,001,2026-01-02,false,0.25,2",
    ]
    assert made.table["code"].to_pylist()[7] == "007"
    check(tmp_path / "out")


def test_nothing_but_cells_of_kept_columns_goes_along(tmp_path):
    def hide(sheet, book):
        book.set_properties({"author": "SECRET author", "comments": "SECRET"})
        book.define_name("SECRET", "='Cases 2026'!$A$1")
        sheet.write_comment("A2", "SECRET comment")
        sheet.write_url("E1", "https://SECRET.example", string="SECRET link")

    rows = [[county, "SECRET note", cases] for county, cases in GOOD[1:]]
    path = make_book(tmp_path / "cases.xlsx", [["county", "note", "cases"], *rows], change=hide)
    made = release(path, tmp_path / "out", keep="county")
    assert published(made) == COUNTS
    assert not [file for file in (tmp_path / "out").iterdir() if b"SECRET" in file.read_bytes()]
    check(tmp_path / "out")


def test_a_formula_in_a_column_that_is_not_kept_does_not_matter(tmp_path):
    rows = [["county", "rate", "cases"], *([n, "=C2/9", c] for n, c in GOOD[1:])]
    path = make_book(tmp_path / "cases.xlsx", rows)
    assert published(release(path, keep="county")) == COUNTS
    with pytest.raises(TableError, match="'rate' holds a formula"):
        release(path)


def test_titles_comments_and_text_counts_of_a_sheet(tmp_path):
    rows = [["Cases"], [], *GOOD, ["* provisional"], ["Source: x"]]
    cells = {"B4": str(COUNTS[0])}
    title = lambda sheet, _: sheet.merge_range("A1:B1", "Cases")  # noqa: E731
    path = make_book(tmp_path / "cases.xlsx", rows, cells, title)
    assert published(release(path, skiprows=1, comment="*", skipfooter=1)) == COUNTS


def test_an_unknown_format_and_unused_options_are_refused(tmp_path, book):
    path = tmp_path / "cases.csv"
    path.write_text(TEXT)
    with pytest.raises(ArgumentError, match="'format' must be one of: csv, parquet"):
        release(path, format="docx")
    with pytest.raises(UsageError, match=r"'source.sheet_name' is not for"):
        release(path, sheet_name="a")
    with pytest.raises(UsageError, match=r"'source.encoding' is not for an Excel workbook"):
        release(book, encoding="latin-1")
    with pytest.raises(UsageError, match=r"'source.skiprows' is not for a table in memory"):
        release(pd.DataFrame({"cases": COUNTS}), skiprows=1)
    with pytest.raises(UsageError, match="An array holds numbers"):
        privatize(COUNTS, upper=9, epsilon=1, thousands=",")
    for wrong in ({"skiprows": -1}, {"decimal": ";"}, {"thousands": "x"}, {"comment": " "}):
        with pytest.raises(ArgumentError, match=f"'{next(iter(wrong))}' must"):
            release(path, **wrong)


NUMBERS = {
    "1,234": ({"thousands": ","}, 1234),
    "1.234": ({"thousands": ".", "decimal": ","}, 1234),
    "1 234": ({"thousands": " "}, 1234),
    "1\u202f234": ({"thousands": " "}, 1234),
    "1'234": ({"thousands": "'"}, 1234),
    "12,0": ({"decimal": ","}, 12),
    "1.234,00": ({"thousands": ".", "decimal": ","}, 1234),
    "2.000": ({"thousands": ".", "decimal": ","}, 2000),
    " 3.000": ({"thousands": ","}, 3),
}


@pytest.mark.parametrize("cell", NUMBERS)
def test_numbers_are_read_as_declared_and_refused_otherwise(tmp_path, cell):
    options, value = NUMBERS[cell]
    path = tmp_path / "cases.csv"
    path.write_text(f'county,cases\na,"{cell}"\nb,3\n')
    made = release(path, upper=9999, **options)
    assert published(made) == [value, 3]
    with pytest.raises(TableError, match=r"Row 1 of .* has .*source.thousands"):
        release(path, upper=9999)


@pytest.mark.parametrize("cell", ["2.", "2.0", "2.00", "2.0000"])
def test_zeros_behind_a_point_that_are_no_thousands_are_dropped(tmp_path, cell):
    (tmp_path / "cases.csv").write_text(f"county,cases\na,{cell}\nb,3\n")
    assert published(release(tmp_path / "cases.csv", upper=9999)) == [2, 3]


@pytest.mark.parametrize("cell", ["1,5", "1,2345", ",123", "1,,234", "12,34", "1,234,5"])
def test_a_separator_in_a_wrong_place_is_no_thousand(tmp_path, cell):
    path = tmp_path / "cases.csv"
    path.write_text(f'county,cases\na,"{cell}"\nb,3\n')
    with pytest.raises(TableError, match=r"Row 1 of .* has text"):
        release(path, thousands=",")


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_declared_codes_leave_their_rows_out_and_say_so(tmp_path, format):
    path = tmp_path / "cases.csv"
    lines = [f"{n},{c},{c + 1}" for n, c in zip(NAMES, COUNTS, strict=True)]
    lines[3], lines[9], lines[20] = "d,*,3", "j,2,NA", "u,,"
    path.write_text("county,cases,tests\n" + "\n".join(lines) + "\n")
    options = {"count": ["cases", "tests"], "na_values": ["*", "NA", ""], "format": format}
    with pytest.warns(UserWarning, match="3 rows have a code for a missing count"):
        made = release(path, tmp_path / "out", **options)
    stays = [i for i in range(40) if i not in (3, 9, 20)]
    assert published(made) == [COUNTS[i] for i in stays]
    assert made.data.rows == 37
    table = made.receipt.to_dict()["table"]
    assert (table["missing"], table["missing_rows"]) == (["*", "NA", ""], 3)
    unprotected = made.receipt.to_dict()["statement"]["dp_flavor"]["unprotected_quantities"]
    assert unprotected.endswith("which rows had no count")
    page = (tmp_path / "out" / "METHODOLOGY.html").read_text()
    assert "3 rows of the confidential table had a code instead of a count" in page
    check(tmp_path / "out")
    with pytest.raises(TableError, match=r"Row 4 of .* has text"):
        release(path, **{**options, "na_values": ["NA", ""]})


def test_missing_codes_of_other_engines_and_of_microdata(tmp_path):
    frame = pd.DataFrame({"county": ["a", "b", "c"], "cases": [1.0, np.nan, 3.0]})
    with pytest.warns(UserWarning, match="1 row has a code for a missing count"):
        made = release(frame, na_values="")
    assert made.table["county"].tolist() == ["a", "c"]
    with pytest.raises(TableError, match="nothing is left"):
        release(frame, na_values=["", "1.0", "3"])
    with pytest.raises(UsageError, match=r"'source.na_values' is for tables of counts"):
        release(frame, count=None, keep=None, by="county", categories=["a"], na_values="*")


@pytest.mark.parametrize("content", [TEXT.encode(), gzip.compress(TEXT.encode())])
def test_standard_input_is_a_file_too(monkeypatch, tmp_path, content):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert published(release("-", tmp_path / "out")) == COUNTS
    check(tmp_path / "out")


@pytest.mark.parametrize(("ending", "write"), [("dta", "dta"), ("sav", "sav"), ("xpt", "xport")])
def test_files_of_statistics_programs_leave_without_their_labels(tmp_path, ending, write):
    columns = {
        "county": NAMES,
        "code": [f"{i:03d}" for i in range(40)],
        "day": [datetime.date(2026, 1, 1 + i % 28) for i in range(40)],
        "rate": [None if i == 3 else i / 4 for i in range(40)],
        "cases": COUNTS,
    }
    path = tmp_path / f"cases.{ending}"
    labels = {"column_labels": ["SECRET"] * 5, "file_label": "SECRET"}
    getattr(pyreadstat, f"write_{write}")(pd.DataFrame(columns), path, **labels)
    made = release(path, tmp_path / "out")
    assert published(made) == COUNTS
    assert b"SECRET" in path.read_bytes()
    assert not [file for file in (tmp_path / "out").iterdir() if b"SECRET" in file.read_bytes()]
    assert made.table["day"].to_pylist() == columns["day"]
    assert made.table["rate"].to_pylist() == columns["rate"]
    assert made.table["code"].to_pylist() == columns["code"]
    check(tmp_path / "out")
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(TableError, match="damaged or cut short"):
        release(path)


@pytest.mark.parametrize(
    ("module", "ending", "words"),
    [
        ("python_calamine", "xlsx", r"python-calamine.*pip install .*\[excel\]"),
        ("pyreadstat", "dta", r"pyreadstat.*pip install .*\[statistics\]"),
    ],
)
def test_missing_libraries_are_named(tmp_path, monkeypatch, module, ending, words):
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / f"cases.{ending}").write_bytes(b"PK")
    with pytest.raises(MissingExtraError, match=words):
        release(tmp_path / f"cases.{ending}")
