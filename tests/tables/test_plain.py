"""Plain text files read block by block: word for word what the careful reader gives."""

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.check.package import check_package
from tallyveil.release import plan
from tallyveil.release.transaction import publish_table
from tallyveil.request.options import ReleaseOptions
from tallyveil.tables import plain
from tallyveil.tables.counts import read_counts
from tallyveil.tables.delimited import DelimitedTable, read_delimited
from tallyveil.tables.form import Form
from tallyveil.tables.formulas import find_formulas
from tallyveil.tables.hashes import hash_text
from tallyveil.tables.plain import PlainFile
from tallyveil.tables.source import read_table
from tallyveil.tables.splice import format_numbers
from tallyveil.tables.text_column import TextColumn

ROWS = 3_000
OPTIONS = {"count": "cases", "upper": 20, "epsilon": 1, "keep": "all"}
LINES = [f"Köln {i},{i * 7 % 1000},{i / 8},{i * i % 23},x{i:04}" for i in range(ROWS)]
HEADER = "area,code,rate,cases,mark"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Files of any size are read in blocks of a few rows, and rows in them are many."""
    monkeypatch.setattr(plain, "SMALLEST", 1)
    monkeypatch.setattr(plain, "BLOCK", 1 << 14)
    monkeypatch.setattr("tallyveil.tables.categories.BATCH_ROWS", 100)
    monkeypatch.setattr("tallyveil.tables.totals.BATCH_ROWS", 100)


def write(path, lines=LINES, *, end="\n", header=HEADER, encoding="utf-8", last=True):
    text = end.join([header, *lines]) + (end if last else "")
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    "written", [("\n", "utf-8", True), ("\r\n", "latin-1", True), ("\n", "cp1252", False)]
)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"drop": ["mark", "code"], "keep": ["area", "rate"]},
        {"drop": "area", "keep": ["code", "rate", "mark"]},
        {"unbiased": True, "method": "geometric"},
        {"order": "sorted"},
    ],
    ids=str,
)
def test_a_file_gives_the_bytes_of_the_careful_reader(tmp_path, monkeypatch, written, options):
    end, encoding, last = written
    path = write(tmp_path / "cases.csv", end=end, encoding=encoding, last=last)
    monkeypatch.setattr("tallyveil.release.layout.Entropy", lambda: tv.SeededNotPrivate(1))
    made = []
    for kind in (PlainFile, DelimitedTable):
        assert isinstance(read_table(path, Form(encoding=encoding)), kind)
        asked = ReleaseOptions(
            entropy=tv.SeededNotPrivate(5), encoding=encoding, **{**OPTIONS, **options}
        )
        (release,) = publish_table(path, asked, command="")
        types = [release.data.type_of(name) for name in release.data.names]
        made.append((release.data.to_bytes(), types, release.data.names))
        monkeypatch.setattr(plain, "SMALLEST", 1 << 40)
    assert made[0] == made[1]


def read_or_words(read, path):
    """A table in memory, or the words of the error."""
    try:
        return read(path)
    except tv.errors.TableError as problem:
        return str(problem)


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [*lines[:50], '"a, b",1,2,3,4', *lines[50:]],
        lambda lines: [*lines[:50], "a,1,2,3", *lines[50:]],
        lambda lines: [*lines[:50], "a,1,2,3,4,5", *lines[50:]],
        lambda lines: [*lines[:50], "", *lines[50:]],
        lambda lines: [*lines[:50], "a,1,2,3,4\r", *lines[50:]],
        lambda lines: [*lines[:50], "a,1,2,3,4\r5", *lines[50:]],
        lambda lines: [*lines[:50], "a\0,1,2,3,4", *lines[50:]],
        lambda lines: [*lines[:50], "a" * 140_000 + ",1,2,3,4", *lines[50:]],
        lambda lines: [*lines[:50], "a,1,2", "3,4,5,6", "7,8,9", *lines[50:]],
    ],
)
@pytest.mark.parametrize("where", [0, -1])
def test_what_is_not_plain_goes_to_the_careful_reader(tmp_path, change, where):
    lines = change(LINES) if where == 0 else change(LINES[::-1])[::-1]
    path = write(tmp_path / "cases.csv", lines)
    assert read_or_words(read_table, path) == read_or_words(read_delimited, path)


@pytest.mark.parametrize(
    "header",
    [
        *('"area"",code",rate,cases,mark,b', '"a,b",code,rate,cases,mark', '"a""b",c,rate,cases,m'),
        *('"area" ,code,rate,cases,mark', '",code,rate,cases,mark', '"ar"ea",code,rate,cases,mark'),
        *('a"rea,code,rate,cases,mark', "area,area,rate,cases,mark", '"area",area,rate,cases,mark'),
    ],
)
def test_odd_headers_go_to_the_careful_reader(tmp_path, header):
    path = write(tmp_path / "cases.csv", header=header)
    found = read_or_words(read_table, path)
    assert not isinstance(found, PlainFile)
    assert found == read_or_words(read_delimited, path)


@pytest.mark.parametrize(
    "header",
    [
        '"area","code","rate","cases","mark"',
        '"",code,rate,"cases",mark',
        '"",code,"rate, or","cases",mark',
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_names_with_quotation_marks_around_them_are_plain(tmp_path, monkeypatch, header, end):
    """As pyarrow and R write them; the bytes that are published are those of the careful reader."""
    path = write(tmp_path / "cases.csv", header=header, end=end)
    monkeypatch.setattr("tallyveil.release.layout.Entropy", lambda: tv.SeededNotPrivate(1))
    made = []
    for kind in (PlainFile if ", " not in header else DelimitedTable, DelimitedTable):
        table = read_table(path)
        assert isinstance(table, kind)
        assert table.names[3] == "cases"
        asked = ReleaseOptions(entropy=tv.SeededNotPrivate(5), **OPTIONS)
        (release,) = publish_table(path, asked, command="")
        made.append((release.data.to_bytes(), release.data.names))
        monkeypatch.setattr(plain, "SMALLEST", 1 << 40)
    assert made[0] == made[1]
    assert made[0][0].startswith(header.replace('"', "").encode()) == (", " not in header)


def test_a_header_of_one_empty_name_goes_to_the_careful_reader(tmp_path):
    path = write(tmp_path / "cases.csv", ["1", "2"], header='""')
    assert isinstance(read_table(path), DelimitedTable)


def test_other_encodings_and_bad_bytes_go_to_the_careful_reader(tmp_path):
    path = write(tmp_path / "cases.csv", encoding="utf-16")
    assert isinstance(read_table(path, Form(encoding="utf-16")), DelimitedTable)
    path.write_bytes(b"area,cases\n" + b"a,1\n" * 9000 + b"\xff,2\n")
    with pytest.raises(tv.errors.TableError, match="cannot be read as utf-8"):
        read_table(path)


@pytest.mark.parametrize("after", ["", "\n\n", "\r\n"])
def test_line_ends_after_the_last_row_do_not_matter(tmp_path, after):
    path = tmp_path / "cases.csv"
    path.write_bytes(("area,cases\n" + "a,1\n" * 9000 + after).encode())
    table = read_table(path)
    assert (type(table), table.rows) == (PlainFile, 9000)


CELLS = ["0", "7", "007", "12345678", "123456789", "9" * 30, " 5", "6 ", "3.0", "4.", "00000000000"]


def test_counts_are_those_of_the_careful_reader(tmp_path):
    path = write(tmp_path / "cases.csv", [f"a,{CELLS[i % len(CELLS)]}" for i in range(ROWS)],
                 header="area,cases")  # fmt: skip
    fast, careful = read_table(path), read_delimited(path)
    assert isinstance(fast, PlainFile)
    for upper in (5, 10**6, 2**40):
        made, expected = (read_counts(table, "cases", upper) for table in (fast, careful))
        assert np.array_equal(made.values, expected.values)
        assert made.above == expected.above


@pytest.mark.parametrize("cell", ["", "NA", "-1", "1.5", "x", "1e3", "1_0", "+1", "٣", "0x1"])
@pytest.mark.parametrize("row", [0, 1700, ROWS - 1])
def test_a_bad_count_is_refused_in_the_same_words(tmp_path, cell, row):
    lines = [f"a,{CELLS[i % len(CELLS)]}" for i in range(ROWS)]
    lines[row] = f"a,{cell}"
    path = write(tmp_path / "cases.csv", lines, header="area,cases")
    said = set()
    for table in (read_table(path), read_delimited(path)):
        with pytest.raises(tv.errors.TableError) as found:
            read_counts(table, "cases", 9)
        said.add(str(found.value))
    assert len(said) == 1


@pytest.mark.parametrize(
    "cells",
    [
        ["1", "-2", "+3", "0"], ["1", "2.5"], ["1e5", "3"], ["01", "1"], ["1", "x"], ["", ""],
        ["", "4"], ["nan", "1"], ["inf"], ["1.5", "007"], ["1", " 2"], ["12345678901234567890"],
        ["-", "1"], ["0", "0.0"], ["00"], ["1,5".replace(",", ".")], ["٣"], ["True"],
    ],
)  # fmt: skip
def test_types_are_those_of_the_careful_reader(tmp_path, cells):
    lines = [f"a,{cells[0]}"] * ROWS + [f"a,{cell}" for cell in cells]
    path = write(tmp_path / "cases.csv", lines, header="area,cases")
    assert read_table(path).type_of("cases") == read_delimited(path).type_of("cases")


def test_the_folder_checks_and_the_release_refers_to_it(tmp_path):
    path = write(tmp_path / "cases.csv")
    release = tv.privatize(path, **OPTIONS, out=tmp_path / "out")
    assert all(found.ok for found in check_package(tmp_path / "out"))
    assert release.data.identity.path == tmp_path / "out" / "data.csv"
    kept = [line.split(",") for line in (tmp_path / "out" / "data.csv").read_text().splitlines()]
    assert [(a, b, c, e) for a, b, c, _, e in kept[1:]] == [
        (a, b, c, e) for a, b, c, _, e in (line.split(",") for line in LINES)
    ]


def test_repeated_rows_and_totals_are_found(tmp_path):
    lines = [*LINES, LINES[17]]
    with pytest.raises(tv.errors.TableError, match=f"Row {ROWS + 1} repeats"):
        tv.privatize(write(tmp_path / "cases.csv", lines), **OPTIONS)
    lines = [*LINES, "Total,1,2,3,4"]
    with pytest.raises(tv.errors.TableError, match="a row called 'Total'"):
        tv.privatize(write(tmp_path / "cases.csv", lines), **OPTIONS)


def test_people_are_counted_in_batches(tmp_path):
    path = write(tmp_path / "people.csv", [f"{'nsew'[i % 4]},{i % 90}" for i in range(ROWS)],
                 header="region,age")  # fmt: skip
    asked = {"by": "region", "categories": "n,s,e,w", "where": "age >= 18", "upper": 5000}
    found = tv.privatize(path, epsilon=50, **asked).published["count"].counts
    expected = [sum(i % 90 >= 18 for i in range(k, ROWS, 4)) for k in range(4)]
    assert found.tolist() == expected


def test_numbers_are_written_as_python_writes_them():
    values = np.array([0, 5, 10, 99, 100, -1, -10, 2**31, 10**9, 2**62, -(2**62), 10**18])
    text, lengths = format_numbers(values)
    rows = [row[row > 0].tobytes().decode() for row in text]
    assert rows == list(map(str, values.tolist()))
    assert lengths.tolist() == list(map(len, rows))


@pytest.mark.parametrize("cell", ["=1+1", "@x", "+x", "-x1", "\tx"])
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_cells_that_a_spreadsheet_runs_are_found_among_others(tmp_path, cell, encoding):
    lines = [*LINES[:-1], f"{cell},1,-0.5,3,+7"]
    path = write(tmp_path / "cases.csv", lines, encoding=encoding)
    table = read_table(path, Form(encoding=encoding))
    assert isinstance(table, PlainFile)
    assert find_formulas(table, table.names) == ["area"]
    assert find_formulas(read_table(write(path)), table.names) == []


@pytest.mark.parametrize("name", HEADER.split(","))
def test_labels_are_encoded_block_by_block_as_the_careful_reader_does(tmp_path, monkeypatch, name):
    path = write(tmp_path / "cases.csv")
    careful = read_delimited(path).codes(name)
    monkeypatch.setattr(PlainFile, "load", None)  # the table is never read as a whole
    found = read_table(path).codes(name)
    assert found.labels == careful.labels
    assert np.array_equal(found.codes, careful.codes)


def _double(content):
    return content + content.partition(b"\n")[2]


def _swap_counts(content):
    return content.replace(b",1,x", b",2,x", 1)


@pytest.mark.parametrize(
    "spoil", [_double, _swap_counts, None], ids=["longer", "same size", "gone"]
)
@pytest.mark.parametrize(
    "when", ["planning", "reserving room", "debiting the ledger", "drawing", "packing"]
)
def test_a_file_that_changes_between_passes_is_refused(tmp_path, monkeypatch, spoil, when):
    """Whenever it changes nothing is published; noticed before the debit, it costs nothing."""
    path, out = write(tmp_path / "cases.csv"), tmp_path / "out"
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("cases", 1)

    def change(step):
        if step == when:
            path.write_bytes(spoil(path.read_bytes())) if spoil else path.unlink()

    def read_and_change(*given):
        found = real(*given)
        change("planning")
        return found

    real = plan.read_columns
    monkeypatch.setattr(plan, "read_columns", read_and_change)
    options = ReleaseOptions(**OPTIONS, out=out, ledger=book, dataset="cases")
    assert isinstance(read_table(path), PlainFile)
    with pytest.raises(tv.TableError, match="changed while it was read") as noticed:
        publish_table(path, options, command="", say=change)
    assert not out.exists()
    assert list(tmp_path.glob(".out*")) == []
    early = when in ("planning", "reserving room")
    assert len(book.history("cases")) == (0 if early else 1)
    assert ("The budget was spent before that" in str(noticed.value)) != early


def test_a_header_alone_goes_to_the_careful_reader(tmp_path):
    table = read_table(write(tmp_path / "cases.csv", lines=[]))
    assert isinstance(table, DelimitedTable)
    assert table.rows == 0
    assert len(table.codes("area").codes) == len(table.counts("cases")) == 0


def test_long_pieces_among_short_ones_are_told_apart_byte_by_byte():
    edge = [b"7" * size for size in (0, 1, 7, 8, 9, 63, 64, 65, 1023, 1024, 1025, 4000)]
    pieces = [*edge, *(piece + b"x" for piece in edge), *(b"x" + piece for piece in edge), *edge]
    column = TextColumn.of(pieces)
    codes, rows = column.number()
    assert [pieces[row] for row in rows[codes]] == pieces
    assert rows.tolist() == [pieces.index(pieces[row]) for row in rows]
    assert len(rows) == len(set(pieces)) == len(set(hash_text(column).tolist()))
    assert column.is_digits.tolist() == [not piece or piece.isdigit() for piece in pieces]
