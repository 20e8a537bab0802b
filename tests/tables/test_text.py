"""Text files are read block by block, whatever they look like; what is unclear is refused."""

import csv
import gzip
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallyveil as tv
from tallyveil.tables import published, text
from tallyveil.tables.counts import LARGEST, read_counts
from tallyveil.tables.read import read_table
from tallyveil.tables.source import Source
from tallyveil.tables.text import Room

ROWS = 3_000
LINES = [f"Köln {i},{i * 7 % 1000},{i / 8},{i * i % 23},x{i:04}" for i in range(ROWS)]
HEADER = "area,code,rate,cases,mark"
CELLS = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=12)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Files of any size are read in blocks of a few rows, again in every pass."""
    monkeypatch.setattr(text, "HELD", -1)
    monkeypatch.setattr(text, "BLOCK", 1 << 14)


def write(path, lines=LINES, header=HEADER):
    path.write_text("\n".join([header, *lines, ""]))
    return path


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
    table = read_table(path, Source(delimiter=delimiter))
    assert table.labels("a") == [pair[0] for pair in cells]
    written = table.build_released({}, table.names).to_bytes().decode()
    assert list(csv.reader(io.StringIO(written, newline=""))) == [
        ["a", "b", "n"],
        *([*pair, "0"] for pair in cells),
    ]


@pytest.mark.parametrize("size", [50 * 2**20, 10**9])
def test_an_honest_packed_table_has_room(size):
    """A long one may unpack to 30 times its size in rows of 3 bytes, a small one to many rows."""
    assert Room.of(size).size > 30 * size
    assert Room.of(size).lines > 10 * size
    assert Room.of(10 * 2**20).size > 20 * 10 * 2**20
    assert Room.of(10 * 2**20).lines > 10_000_000


def test_a_packed_file_of_somebody_else_has_room_for_as_many_rows_as_it_has_bytes(
    tmp_path, monkeypatch
):
    path = tmp_path / "data.csv.gz"
    rows = map(str, np.random.default_rng(1).integers(0, 1000, 5_000))
    path.write_bytes(gzip.compress("\n".join(["cases", *rows]).encode()))
    monkeypatch.setattr(published, "ROWS_READ", 100)
    with pytest.raises(tv.TableError, match="far more"):  # less than 4 bytes for each row
        published.require_likely_rows(path)
    monkeypatch.setattr(published, "SMALL", 0)
    published.require_likely_rows(path)
    path.write_bytes(gzip.compress(b"cases\n" + b"1\n" * 50_000))
    with pytest.raises(tv.TableError, match="far more"):
        published.require_likely_rows(path)


SECRET = "a_secret_cell"
MALFORMED = {
    f"{SECRET},1,2,3": "Row 51 has 4 cells where the header has 5",
    f"{SECRET},1,2,3,4,5": "Row 51 has 6 cells",
    "": "Row 51 is an empty line",
    f"{SECRET},1,2,3,4\r": "mixes line endings",
    f"{SECRET}\r,1,2,3,4": "mixes line endings",
    f"{SECRET}\0,1,2,3,4": "zero byte",
    f'{SECRET}"x,1,2,3,4': "a quotation mark",
    f'"{SECRET}"x,1,2,3,4': "is inside a cell",
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


HEADERS = {
    "   ": "empty",
    "a,a": "Two columns are called",
    '"a"x,n': "is inside a cell",
    "a;n": "cells where the header has 1",
}


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_that_names_no_columns_is_refused(tmp_path, header):
    lines = [] if header.isspace() else ["x,2"]
    with pytest.raises(tv.TableError, match=HEADERS[header]):
        read_table(write(tmp_path / "t.csv", lines, header))


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
    next(iter(table.batches())).type_of("n")  # a batch tells nothing of the whole column
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
    with pytest.raises(tv.TableError, match=f"Row {row + 1} of") as caught:
        read_counts(table, "cases", 9)
    assert len(cell) < 3 or cell not in str(caught.value)
