"""Text files are read block by block, whatever they look like; what is unclear is refused."""

import csv
import gzip
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tallyveil.plans import prepare

import tallyveil as tv
from tallyveil.check.package import check_package
from tallyveil.release.options import ReleaseOptions
from tallyveil.release.transaction import publish_table
from tallyveil.tables import text
from tallyveil.tables.counts import LARGEST, convert_text, read_counts
from tallyveil.tables.form import Form
from tallyveil.tables.labels import find_formulas
from tallyveil.tables.read import read_table

ROWS = 3_000
OPTIONS = {"count": "cases", "upper": 20, "epsilon": 1, "keep": "all"}
LINES = [f"Köln {i},{i * 7 % 1000},{i / 8},{i * i % 23},x{i:04}" for i in range(ROWS)]
HEADER = "area,code,rate,cases,mark"
CELLS = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=12)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Files of any size are read in blocks of a few rows, again in every pass."""
    monkeypatch.setattr(text, "HELD", -1)
    monkeypatch.setattr(text, "BLOCK", 1 << 14)


def write(path, lines=LINES, *, end="\n", header=HEADER, encoding="utf-8", last=True):
    content = end.join([header, *lines]) + (end if last else "")
    path.write_bytes(content.encode(encoding))
    return path


def quote_all(line, mark=","):
    return mark.join(f'"{cell}"' for cell in line.split(","))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_cells_survive_reading_and_writing(tmp_path_factory, cells, delimiter, end):
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([("a", "b", "n"), *((*pair, "0") for pair in cells)])
    path = tmp_path_factory.mktemp("cells") / "t.csv"
    path.write_bytes(buffer.getvalue().encode())
    table = read_table(path, Form(delimiter=delimiter))
    assert table.labels("a") == [pair[0] for pair in cells]
    written = table.build_released({}, table.names).to_bytes().decode()
    assert list(csv.reader(io.StringIO(written, newline=""))) == [
        ["a", "b", "n"],
        *([*pair, "0"] for pair in cells),
    ]


PACKED = {
    "quoted": (lambda lines: [quote_all(line) for line in lines], {}),
    "one quoted cell": (lambda lines: [*lines[:-1], quote_all(lines[-1])], {}),
    "semicolons": (lambda lines: [line.replace(",", ";") for line in lines], {"delimiter": ";"}),
    "titles and notes": (
        lambda lines: ["A title", "", *lines, "# a comment", "", "A note", "and more"],
        {"skip_rows": 2, "skip_footer": 2, "comment": "#"},
    ),
}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16", "utf-8-sig"])
@pytest.mark.parametrize("how", ["plain", *PACKED])
def test_every_kind_of_text_gives_the_same_release(tmp_path, end, encoding, how):
    change, form = PACKED.get(how, (lambda lines: lines, {}))
    path = tmp_path / "t.csv"
    path.write_bytes((end.join(change([HEADER, *LINES])) + end).encode(encoding))
    form = {**form, **({"encoding": "latin-1"} if encoding == "latin-1" else {})}
    asked = ReleaseOptions(entropy=tv.SeededNotPrivate(5), **OPTIONS, **form)
    (release,) = publish_table(path, asked, command="")
    plain = ReleaseOptions(entropy=tv.SeededNotPrivate(5), **OPTIONS)
    (expected,) = publish_table(write(tmp_path / "plain.csv"), plain, command="")
    assert release.data.to_bytes() == expected.data.to_bytes()
    assert release.data.type_of("code") == "integer"


@pytest.mark.parametrize("packing", ["gz", "zst"])
def test_packed_text_is_read_as_it_is_and_bounded(tmp_path, packing):
    import pyarrow as pa

    path = tmp_path / f"t.csv.{packing}"
    content = write(tmp_path / "t.csv").read_bytes()
    with pa.CompressedOutputStream(str(path), {"gz": "gzip", "zst": "zstd"}[packing]) as stream:
        stream.write(content)
    assert read_table(path).labels("area") == read_table(tmp_path / "t.csv").labels("area")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(tv.TableError, match="damaged or cut short"):
        read_table(path)
    with pytest.raises(tv.TableError, match="far more"):
        bomb = tmp_path / "b.csv.gz"
        bomb.write_bytes(gzip.compress(b"a,n\n" + b"x,1\n" * 20_000_000, 1))
        read_table(bomb)


SECRET = "a_secret_cell"
MALFORMED = {
    f"{SECRET},1,2,3": "Row 51 has 4 cells where the header has 5",
    f"{SECRET},1,2,3,4,5": "Row 51 has 6 cells",
    "": "Row 51 is an empty line",
    f"{SECRET},1,2,3,4\r": "mixes line endings",
    f"{SECRET}\r,1,2,3,4": "mixes line endings",
    f"{SECRET}\0,1,2,3,4": "zero byte",
    f'{SECRET}"x,1,2,3,4': "a quotation mark",
    f'"{SECRET}"x,1,2,3,4': "stands inside a cell",
    f'"{SECRET},1,2,3,4': "a quotation mark",
    f"{SECRET}\udcff,1,2,3,4": "cannot be read as utf-8",
}


@pytest.mark.parametrize("line", MALFORMED)
def test_malformed_text_is_refused_and_quotes_no_cell(tmp_path, line):
    lines = [*LINES[:50], line, *LINES[50:]]
    path = tmp_path / "t.csv"
    path.write_bytes("\n".join([HEADER, *lines, ""]).encode(errors="surrogateescape"))
    with pytest.raises(tv.TableError, match=MALFORMED[line]) as caught:
        read_table(path)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"   \n", "empty"),
        (b"a,a\n1,2\n", "more than once"),
        (b'"a"x,n\n1,2\n', "stands inside a cell"),
        (b"a;n\nx,y;2\n", "cells where the header has 1"),
        (b"Cases\na,n,m\nx,1,2\n", "skip.rows 1"),
        (b"a,n\nx,1\ny,2\nSource: us\n", "skip.footer 1"),
        (b"# by us\na,n\nx,1\n", "comment '#'"),
    ],
)
def test_files_that_are_no_table_are_asked_about(tmp_path, content, words):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(tv.TableError, match=words):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("after", ["", "\n\n", "\r\n"])
def test_line_ends_after_the_last_row_do_not_matter(tmp_path, after):
    (tmp_path / "t.csv").write_bytes(("area,cases\n" + "a,1\n" * 9000 + after).encode())
    assert read_table(tmp_path / "t.csv").rows == 9000
    (tmp_path / "t.csv").write_bytes(b"area,cases\n")
    assert read_table(tmp_path / "t.csv").rows == 0


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "-2", ""], "integer"), (["1", "2.5"], "number"), (["1e3", "2"], "number"),
        (["007", "10"], "string"), (["0.5", "01.5"], "string"), (["nan", "1"], "string"),
        (["", ""], "string"), (["x", "1"], "string"), (["1", " 2"], "string"),
    ],
)  # fmt: skip
def test_types_are_those_of_all_rows(tmp_path, cells, kind):
    lines = [f"a,{cells[0]}"] * ROWS + [f"a,{cell}" for cell in cells]
    table = read_table(write(tmp_path / "t.csv", lines, header="area,n"))
    assert table.type_of("n") == kind
    assert table.labels("n")[-len(cells) :] == cells


COUNTS = ["0", "7", "007", "12345678", "123456789", "9" * 30, " 5", "6 ", "3.0", "4.", "0000000000"]


def test_counts_are_read_however_they_are_written(tmp_path):
    lines = [f"a,{COUNTS[i % len(COUNTS)]}" for i in range(ROWS)]
    table = read_table(write(tmp_path / "t.csv", lines, header="area,cases"))
    values = [min(int(float(cell)), LARGEST) for cell in COUNTS]
    read = read_counts(table, "cases", 10**6)
    expected = [min(values[i % len(values)], 10**6) for i in range(ROWS)]
    assert read.values.tolist() == expected


@pytest.mark.parametrize("cell", ["", "NA", "-1", "1.5", "x", "1e3", "1_0", "+1", "٣", "0x1"])
@pytest.mark.parametrize("row", [0, 1700, ROWS - 1])
def test_a_bad_count_is_refused_by_its_row(tmp_path, cell, row):
    lines = [f"a,{i % 9}" for i in range(ROWS)]
    lines[row] = f"a,{cell}"
    table = read_table(write(tmp_path / "t.csv", lines, header="area,cases"))
    with pytest.raises(tv.TableError, match=f"Row {row + 1} holds") as caught:
        read_counts(table, "cases", 9)
    assert len(cell) < 3 or cell not in str(caught.value)


def test_huge_counts_are_cut_and_never_overflow():
    assert convert_text(["9" * 40, "1.000"], "n").tolist() == [LARGEST, 1]


def test_repeated_rows_and_totals_are_found(tmp_path):
    lines = [*LINES, LINES[17]]
    with pytest.raises(tv.TableError, match=f"Row {ROWS + 1} repeats"):
        tv.privatize(write(tmp_path / "cases.csv", lines), **OPTIONS)
    lines = [*LINES, "Total,1,2,3,4"]
    with pytest.raises(tv.TableError, match="a row called 'Total'"):
        tv.privatize(write(tmp_path / "cases.csv", lines), **OPTIONS)


def test_people_are_counted_in_batches(tmp_path):
    lines = [f"{'nsew'[i % 4]},{i % 90}" for i in range(ROWS)]
    path = write(tmp_path / "people.csv", lines, header="region,age")
    asked = {"by": "region", "categories": "n,s,e,w", "where": "age >= 18", "upper": 5000}
    counts = tv.privatize(path, epsilon=50, **asked).published["count"].counts
    expected = [sum(i % 90 >= 18 for i in range(k, ROWS, 4)) for k in range(4)]
    assert counts.tolist() == expected


@pytest.mark.parametrize("cell", ["=1+1", "@x", "+x", "-x1", "\tx"])
def test_cells_that_a_spreadsheet_runs_are_found_among_others(tmp_path, cell):
    lines = [*LINES[:-1], f"{cell},1,-0.5,3,+7"]
    table = read_table(write(tmp_path / "cases.csv", lines))
    assert find_formulas(table, table.names) == ["area"]
    table = read_table(write(tmp_path / "cases.csv"))
    assert find_formulas(table, table.names) == []


def test_labels_are_encoded_block_by_block(tmp_path):
    codes = read_table(write(tmp_path / "cases.csv")).codes("code")
    assert codes.spread() == [line.split(",")[1] for line in LINES]
    assert len(set(codes.labels)) == len(codes.labels) == 1000


def test_the_folder_checks_and_the_release_refers_to_it(tmp_path):
    path = write(tmp_path / "cases.csv")
    release = tv.privatize(path, **OPTIONS, out=tmp_path / "out")
    assert all(finding.ok for finding in check_package(tmp_path / "out"))
    assert release.data.rows_in.identity.path == tmp_path / "out" / "data.csv"
    kept = [line.split(",") for line in (tmp_path / "out" / "data.csv").read_text().splitlines()]
    assert [(a, b, c, e) for a, b, c, _, e in kept[1:]] == [
        (a, b, c, e) for a, b, c, _, e in (line.split(",") for line in LINES)
    ]


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
        columns = real(*given)
        change("planning")
        return columns

    real = prepare.read_columns
    monkeypatch.setattr(prepare, "read_columns", read_and_change)
    options = ReleaseOptions(**OPTIONS, out=out, ledger=book, dataset="cases")
    with pytest.raises(tv.TableError, match="changed while it was read") as noticed:
        publish_table(path, options, command="", say=change)
    assert not out.exists()
    assert list(tmp_path.glob(".out*")) == []
    early = when in ("planning", "reserving room")
    assert len(book.history("cases")) == (0 if early else 1)
    assert ("The budget was spent before that" in str(noticed.value)) != early


def test_a_million_rows_cost_no_more_when_one_cell_is_quoted(tmp_path):
    """Memory beside the rows' counts stays that of a few blocks."""
    import tracemalloc

    lines = [f"area {i},{i % 9}" for i in range(200_000)]
    peaks = []
    for quoted in (False, True):
        lines[77] = '"area 77",5' if quoted else "area 77,5"
        table = read_table(write(tmp_path / "t.csv", lines, header="area,cases"))
        tracemalloc.start()
        assert int(np.count_nonzero(read_counts(table, "cases", 9).values == 5)) > 20_000
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0] + 1_000_000
