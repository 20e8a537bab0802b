"""The files people have: they come in, leave in the same format, and check."""

import csv
import datetime
import gzip
import io
import sys
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest
from tallyveil.tables.packed import pack, unpack

import tallyveil as tv
from tallyveil.errors import ArgumentError, MissingExtraError, TableError, UsageError
from tallyveil.tables.excel import read_released_excel
from tallyveil.tables.form import Form
from tallyveil.tables.read import read_table
from tallyveil.tables.statistics import StatisticsTable
from tallyveil.tables.text import Room
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


def make_book(rows, path, **changes):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Cases 2026"
    for row in rows:
        sheet.append(row)
    for cell, value in changes.items():
        sheet[cell] = value
    book.save(path)
    return path


@pytest.fixture
def book(tmp_path):
    rows = [["county", "code", "day", "flag", "rate", "cases"]]
    rows += [
        [name, f"{i:03d}", datetime.datetime(2026, 1, 1 + i % 28), i % 2 == 0, i / 4, count]
        for i, (name, count) in enumerate(zip(NAMES, COUNTS, strict=True))
    ]
    return make_book(rows, tmp_path / "cases.xlsx")


TEXTS = {
    "csv": ("cases.csv", TEXT.encode(), {}),
    "byte-order mark": ("cases.csv", b"\xef\xbb\xbf" + TEXT.encode(), {}),
    "utf-16": ("cases.csv", TEXT.encode("utf-16"), {}),
    "utf-16 big end first": ("cases.csv", b"\xfe\xff" + TEXT.encode("utf-16-be"), {}),
    "utf-16 tabs": ("cases.txt", TEXT.replace(",", "\t").encode("utf-16"), {"delimiter": "tab"}),
    "latin-1": ("cases.csv", TEXT.encode("latin-1"), {"encoding": "latin-1"}),
    "gzip": ("cases.csv.gz", gzip.compress(TEXT.encode()), {}),
    "zstd": ("cases.csv.zst", pack(TEXT.encode(), ".zst"), {}),
    "gzip utf-16": ("cases.tsv.gz", gzip.compress(TEXT.replace(",", "\t").encode("utf-16")), {}),
    "title": ("cases.csv", f"Cases of 2026\n\n{TEXT}".encode(), {"skiprows": 2}),
    "comment": ("cases.csv", f"# made by x\n{TEXT}# end\n".encode(), {"comment": "#"}),
    "footnote": ("cases.csv", f'{TEXT}"Source: a, b"\n\n'.encode(), {"skipfooter": 1}),
    "windows": ("cases.csv", TEXT.replace("\n", "\r\n").encode("utf-8-sig"), {}),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_file_leaves_as_it_came(tmp_path, name):
    file, content, options = TEXTS[name]
    path = tmp_path / file
    path.write_bytes(content)
    made = release(path, tmp_path / "out", **options)
    assert published(made) == COUNTS
    assert made.table.column("county").to_pylist() == NAMES
    data = tmp_path / "out" / f"data.{file.partition('.')[2].replace('txt', 'tsv')}"
    assert data.exists()
    plain = content if name not in ("title", "comment", "footnote") else TEXT.encode()
    if "gz" not in file and "zst" not in file and "big" not in name:
        assert data.read_bytes() == plain
    elif "zst" in file:
        assert unpack(data.read_bytes(), ".zst") == TEXT.encode()
    elif "gz" in file:
        assert gzip.decompress(data.read_bytes()) == gzip.decompress(content)
    check(tmp_path / "out")


ASKED = {
    "title": (f"Cases of 2026\n\n{TEXT}", "skip_rows=2"),
    "title of a spreadsheet": (f"Cases of 2026,\n,\n{TEXT}", "skip_rows=2"),
    "comments": (f"# one\n# two\n{TEXT}", "comment='#'"),
    "footnote": (f"{TEXT}Source: somebody\n", "skip_footer=1"),
    "footnotes": (f"{TEXT}\nSource: somebody\nSee there\n", "skip_footer=3"),
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
    "cut.csv.zst": (pack(TEXT.encode(), ".zst")[:-20], "damaged or cut short"),
    "text.csv.gz": (TEXT.encode(), "damaged or cut short"),
    "wide.csv": (TEXT.encode("utf-16-le"), "encoding='utf-16-le'"),
    "marked.csv": (b"\xef\xbb\xbf" + TEXT.encode(), "Leave 'encoding' out"),
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


def test_a_workbook_leaves_as_values_only(book, tmp_path):
    made = release(book, tmp_path / "out")
    assert published(made) == COUNTS
    path = tmp_path / "out" / "data.xlsx"
    sheet = openpyxl.load_workbook(path).active
    rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
    assert rows == [
        [cell.value for cell in row] for row in openpyxl.load_workbook(book).active.iter_rows()
    ]
    with zipfile.ZipFile(path) as parts:
        text = b"".join(parts.read(name) for name in parts.namelist())
        assert all(part.date_time == (1980, 1, 1, 0, 0, 0) for part in parts.infolist())
    assert b"Cases 2026" not in text
    assert b"creator" not in text
    check(tmp_path / "out")
    again = tmp_path / "again.xlsx"
    again.write_bytes(release(book).data.to_bytes())
    assert again.read_bytes() == path.read_bytes()


def test_nothing_but_cells_of_published_columns_goes_along(tmp_path):
    book = openpyxl.Workbook()
    book.properties.creator = book.properties.lastModifiedBy = "SECRET author"
    sheet = book.active
    sheet.append(["county", "note", "cases"])
    for name, count in zip(NAMES, COUNTS, strict=True):
        sheet.append([name, "SECRET note", count])
    sheet["A2"].comment = openpyxl.comments.Comment("SECRET comment", "SECRET")
    sheet["A2"].hyperlink = "file:///SECRET"
    sheet["A2"].number_format = '"SECRET"@'
    hidden = book.create_sheet("SECRET sheet")
    hidden.sheet_state = "hidden"
    hidden["A1"] = "SECRET cell"
    book.defined_names["SECRET"] = openpyxl.workbook.defined_name.DefinedName(
        "SECRET", attr_text="Sheet!$A$1"
    )
    path = tmp_path / "cases.xlsx"
    book.save(path)
    with pytest.raises(TableError, match=r"several sheets: 'Sheet', 'SECRET sheet' \(hidden\)"):
        release(path)
    made = release(path, tmp_path / "out", sheet_name="Sheet", keep="county")
    assert published(made) == COUNTS
    for file in (tmp_path / "out").iterdir():
        content = file.read_bytes()
        if file.suffix == ".xlsx":
            with zipfile.ZipFile(file) as parts:
                content = b"".join(parts.read(name) for name in parts.namelist())
        assert b"SECRET" not in content
    check(tmp_path / "out")
    with pytest.raises(TableError, match="There is no sheet 'Cases'"):
        release(path, sheet_name="Cases")


GOOD = [["county", "cases"], *([n, c] for n, c in zip(NAMES, COUNTS, strict=True))]
SHEETS = {
    "formula": (GOOD, {"B5": "=SUM(B2:B4)"}, "Row 4 of column 'cases' holds a formula"),
    "error": (GOOD, {"B5": "#N/A"}, "Row 4 of column 'cases' holds an Excel error"),
    "date": (GOOD, {"B5": datetime.datetime(2026, 3, 1)}, "Row 4 of .* has a date"),
    "text": (GOOD, {"B5": "many"}, "Row 4 of .* has text"),
    "true": (GOOD, {"B5": True}, "Row 4 of .* has something other than a number"),
    "fraction": (GOOD, {"B5": 2.5}, "Row 4 of .* has a fraction"),
    "negative": (GOOD, {"B5": -3}, "Row 4 of .* has a negative number"),
    "title": ([["Cases by county"], [], *GOOD], {}, "skip_rows=2"),
    "footnotes": ([*GOOD, [], ["Source: x"]], {}, "skip_footer=2"),
    "no name": (GOOD, {"C5": 7}, "Column C of the sheet has no name"),
    "repeated": ([["cases", "cases"], *GOOD[1:]], {}, "more than once"),
    "header only": (GOOD[:1], {}, "no rows"),
    "empty": ([], {}, "empty"),
}


@pytest.mark.parametrize("name", SHEETS)
def test_a_sheet_that_is_not_plainly_a_table_is_asked_about(tmp_path, name):
    rows, changes, words = SHEETS[name]
    with pytest.raises(TableError, match=words):
        release(make_book(rows, tmp_path / "cases.xlsx", **changes))


def test_merged_and_hidden_cells_are_asked_about(tmp_path):
    path = make_book(GOOD, tmp_path / "cases.xlsx")
    for change, words in (
        (lambda sheet: sheet.merge_cells("A3:A4"), "A3:A4 of the sheet are merged"),
        (lambda sheet: setattr(sheet.row_dimensions[7], "hidden", True), "Row 7 .* hidden"),
        (lambda sheet: setattr(sheet.column_dimensions["B"], "hidden", True), "Column B"),
    ):
        book = openpyxl.load_workbook(path)
        change(book.active)
        book.save(tmp_path / "changed.xlsx")
        with pytest.raises(TableError, match=words):
            release(tmp_path / "changed.xlsx")


def test_a_formula_in_a_column_that_is_left_out_does_not_matter(tmp_path):
    rows = [["county", "rate", "cases"], *([n, "=C2/9", c] for n, c in GOOD[1:])]
    path = make_book(rows, tmp_path / "cases.xlsx")
    assert published(release(path, keep="county", drop="rate")) == COUNTS
    with pytest.raises(TableError, match="'rate' holds a formula"):
        release(path)


def test_titles_comments_and_text_counts_of_a_sheet(tmp_path):
    rows = [["Cases"], [], *GOOD, ["* provisional"], ["Source: x"]]
    path = make_book(rows, tmp_path / "cases.xlsx", B4=str(COUNTS[0]))
    book = openpyxl.load_workbook(path)
    book.active.merge_cells("A1:B1")
    book.save(path)
    made = release(path, skiprows=1, comment="*", skipfooter=1)
    assert published(made) == COUNTS


def test_text_that_looks_like_a_formula_stays_text(tmp_path):
    path = tmp_path / "cases.csv"
    path.write_text('county,cases\n=1+1,3\n"@x",4\n-5,0\n')
    with pytest.warns(UserWarning, match="runs as a formula"):
        data = release(path, format="xlsx").data.to_bytes()
    sheet = openpyxl.load_workbook(io.BytesIO(data)).active
    assert [(cell.value, cell.data_type) for cell in sheet["A"]][1:3] == [
        ("=1+1", "s"),
        ("@x", "s"),
    ]


@pytest.mark.parametrize(
    "wanted", ["csv", "xlsx", "parquet", "arrow", "dta", "sav", "xpt", "csv.zst", "tsv.gz"]
)
@pytest.mark.parametrize("came", ["csv", "xlsx", "parquet", "pandas"])
def test_every_format_becomes_every_other(tmp_path, came, wanted):
    columns = {"county": NAMES, "code": [f"{i:02d}" for i in range(40)], "cases": COUNTS}
    frame = pd.DataFrame({**columns, "rate": [i / 4 for i in range(40)]})
    path = tmp_path / f"cases.{came}"
    if came == "csv":
        frame.to_csv(path, index=False)
    elif came == "xlsx":
        make_book([list(frame), *frame.to_numpy().tolist()], path)
    elif came == "parquet":
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
    made = release(frame if came == "pandas" else path, tmp_path / "out", format=wanted)
    check(tmp_path / "out")
    again = read_table(tmp_path / "out" / f"data.{wanted}")
    assert again.names == ("county", "code", "cases", "rate")
    assert list(again.labels("code"))[:2] == ["00", "01"]
    assert [float(label) for label in again.labels("rate")][:3] == [0, 0.25, 0.5]
    assert again.counts("cases").tolist() == COUNTS
    assert made.receipt.table.file == f"data.{wanted}"
    total = tv.estimate_total(tmp_path / "out", by="code")
    assert len(total) == 40


def test_an_unknown_format_and_unused_options_are_refused(tmp_path, book):
    path = tmp_path / "cases.csv"
    path.write_text(TEXT)
    with pytest.raises(ArgumentError, match="'format' must be one of: csv, tsv, xlsx"):
        release(path, format="docx")
    with pytest.raises(UsageError, match="'sheet' is not for"):
        release(path, sheet_name="a")
    with pytest.raises(UsageError, match="'encoding' is not for an Excel workbook"):
        release(book, encoding="latin-1")
    with pytest.raises(UsageError, match="'skip_rows' is not for a table in memory"):
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
}


@pytest.mark.parametrize("cell", NUMBERS)
def test_numbers_are_read_as_declared_and_refused_otherwise(tmp_path, cell):
    options, value = NUMBERS[cell]
    path = tmp_path / "cases.csv"
    path.write_text(f'county,cases\na,"{cell}"\nb,3\n')
    made = release(path, upper=9999, **options)
    assert published(made) == [value, 3]
    with pytest.raises(TableError, match=r"Row 1 of .* has"):
        release(path, upper=9999)


@pytest.mark.parametrize("cell", ["1,5", "1,2345", ",123", "1,,234", "12,34", "1,234,5"])
def test_a_separator_in_a_wrong_place_is_no_thousand(tmp_path, cell):
    path = tmp_path / "cases.csv"
    path.write_text(f'county,cases\na,"{cell}"\nb,3\n')
    with pytest.raises(TableError, match=r"Row 1 of .* has text"):
        release(path, thousands=",")


@pytest.mark.parametrize("format", [None, "xlsx"])
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
    unprotected = made.receipt.to_dict()["dp_flavor"]["unprotected_quantities"]
    assert unprotected.endswith("which rows had no count")
    assert (
        "3 rows of the confidential table had a code in place of a count"
        in (tmp_path / "out" / "METHODOLOGY.html").read_text()
    )
    check(tmp_path / "out")
    with pytest.raises(TableError, match=r"Row 4 of .* has text"):
        release(path, **{**options, "na_values": ["NA", ""]})


def test_missing_codes_of_other_engines_and_of_microdata(tmp_path):
    frame = pd.DataFrame({"county": ["a", "b", "c"], "cases": [1.0, np.nan, 3.0]})
    with pytest.warns(UserWarning, match="1 row has a code for a missing count"):
        made = release(frame, na_values="")
    assert made.table["county"].tolist() == ["a", "c"]
    with pytest.raises(TableError, match="nothing is left"):
        release(frame, na_values=["", "1.0", "3.0"])
    with pytest.raises(UsageError, match="'missing' is for columns of counts"):
        release(frame, count=None, keep=None, by="county", categories=["a"], na_values="*")


def test_missing_libraries_are_named(book, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"openpyxl.*extra 'excel'"):
        release(book)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "cases.csv.zst").write_bytes(pack_before)
    with pytest.raises(MissingExtraError, match="pyarrow"):
        release(tmp_path / "cases.csv.zst")


pack_before = pack(TEXT.encode(), ".zst")


def test_somebody_elses_files_are_bounded(tmp_path):
    bomb = gzip.compress(b"0" * 50_000_000)
    with pytest.raises(TableError, match="far more"):
        unpack(bomb, ".gz", Room(1000))
    with pytest.raises(TableError, match="far more"):
        unpack(pack(b"0" * 50_000_000, ".zst"), ".zst", Room(1000))
    made = release(make_book(GOOD, tmp_path / "c.xlsx")).data.to_bytes()
    assert read_released_excel(made, 40).rows == 40
    for name, part in (
        ("xl/vbaProject.bin", b"x"),
        ("xl/worksheets/sheet2.xml", b"<x/>"),
        ("xl/comments1.xml", b"<x/>"),
    ):
        content = io.BytesIO(made)
        with zipfile.ZipFile(content, "a") as parts:
            parts.writestr(name, part)
        with pytest.raises(TableError, match="parts that a release never has"):
            read_released_excel(content.getvalue(), 40)


def test_a_released_workbook_holds_values_and_says_nothing_of_itself(tmp_path):
    made = release(make_book(GOOD, tmp_path / "c.xlsx")).data.to_bytes()
    for change in (lambda book: setattr(book.active["A3"], "value", "=1+1"), lambda book: None):
        book = openpyxl.load_workbook(io.BytesIO(made))
        change(book)
        buffer = io.BytesIO()
        book.save(buffer)
        with pytest.raises(TableError, match=r"holds a formula|says more of itself|never has"):
            read_released_excel(buffer.getvalue(), 40)
    parts = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(made)) as old, zipfile.ZipFile(parts, "w") as new:
        for part in old.infolist():
            text = old.read(part)
            cell = b"<f>1+1</f><v>2</v>"
            changed = text.replace(b"<v>3</v>", cell) if "sheet1" in part.filename else text
            new.writestr(zipfile.ZipInfo(part.filename, part.date_time), changed)
    with pytest.raises(TableError, match="holds a formula"):
        read_released_excel(parts.getvalue(), 40)


def test_a_form_says_what_is_wrong():
    with pytest.raises(UsageError, match="must differ"):
        Form(thousands=",", decimal=",")
    assert Form(delimiter="tab").delimiter == "\t"


def test_a_file_of_categories_from_a_spreadsheet(tmp_path):
    people = tmp_path / "people.csv"
    people.write_text("sex,age\nf,1\nm,2\nf,2\n")
    listed = tmp_path / "list.csv"
    listed.write_bytes(b"\xef\xbb\xbfsex,age\nf,1\nf,2\nm,1\nm,2\n")
    made = privatize(people, by=["sex", "age"], categories=str(listed), upper=9, epsilon=50)
    assert made.table.column("count").to_pylist() == [1, 1, 0, 1]
    reader = csv.reader(io.StringIO(made.files["data.csv"].decode()))
    assert next(reader) == ["sex", "age", "count"]


@pytest.mark.parametrize("content", [TEXT.encode(), gzip.compress(TEXT.encode())])
def test_standard_input_is_a_file_too(monkeypatch, tmp_path, content):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert published(release("-", tmp_path / "out")) == COUNTS
    check(tmp_path / "out")


STATISTICS = {"dta": "write_dta", "sav": "write_sav", "xpt": "write_xport"}


@pytest.mark.parametrize("ending", STATISTICS)
def test_files_of_statistics_programs_leave_as_they_came_without_labels(tmp_path, ending):
    frame = pd.DataFrame(
        {
            "county": NAMES,
            "code": [f"{i:03d}" for i in range(40)],
            "day": [datetime.date(2026, 1, 1 + i % 28) for i in range(40)],
            "rate": [None if i == 3 else i / 4 for i in range(40)],
            "cases": COUNTS,
        }
    )
    path = tmp_path / f"cases.{ending}"
    labels = {"column_labels": ["SECRET"] * 5, "file_label": "SECRET"}
    getattr(pyreadstat, STATISTICS[ending])(frame, path, **labels)
    made = release(path, tmp_path / "out")
    assert published(made) == COUNTS
    data = tmp_path / "out" / f"data.{ending}"
    assert b"SECRET" in path.read_bytes()
    assert b"SECRET" not in data.read_bytes()
    again = read_table(data)
    assert again.cells("day") == tuple(frame["day"])
    assert again.cells("rate")[2:5] == (0.5, None, 1.0)
    assert again.labels("code")[7] == "007"
    check(tmp_path / "out")
    assert release(path).data.to_bytes() == data.read_bytes()
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(TableError, match="damaged or cut short"):
        release(path)


def test_what_statistics_programs_cannot_do_is_said(tmp_path, monkeypatch):
    table = StatisticsTable(("county", "cases"), (tuple(NAMES), tuple(COUNTS)), "sas7bdat")
    monkeypatch.setattr("tallyveil.tables.statistics.read_statistics", lambda *_: table)
    path = tmp_path / "cases.sas7bdat"
    path.write_bytes(b"x")
    with pytest.raises(TableError, match="say 'format', such as xpt"):
        release(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert published(release(path, tmp_path / "out", format="xpt")) == COUNTS
    odd = tmp_path / "odd.csv"
    odd.write_text("a name with spaces,cases\nx,1\ny,2\n")
    with pytest.raises(TableError, match="Say another 'format'"):
        release(odd, tmp_path / "odd", format="dta")
    assert not (tmp_path / "odd").exists()
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(MissingExtraError, match=r"pyreadstat.*extra 'statistics'"):
        release(path, format="csv")
