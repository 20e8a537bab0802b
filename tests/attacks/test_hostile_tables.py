"""A table of at most 10 MB stops nobody who inspects or publishes it, whatever it unpacks to.

Every case is handed to `inspect` and to `privatize`, which must end within 5 seconds of processor
time and 500 MB of memory: with an answer where the work is in proportion to the file, else with a
refusal that says how to go on. To publish millions of rows may take longer, in as little memory.
"""

import io
import os
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from tests.attacks import hostile
from tests.attacks.hostile import (
    HEADER,
    ROOM,
    fill,
    long_texts,
    pack_rows,
    write_arrow,
    write_statistics,
)

UNPACK = "unpacks to far more"


def write_wide(columns):
    head, row = ",".join(f"c{k}" for k in range(columns)), ",".join(["1"] * columns)
    return fill(f"{row}\n", f"{head}\n").encode()


def edit_workbook(part, change):
    """A workbook of one row with one of its parts changed."""

    def make():
        import xlsxwriter

        saved, made = io.BytesIO(), io.BytesIO()
        with xlsxwriter.Workbook(saved) as book:
            sheet = book.add_worksheet()
            sheet.write_row(0, 0, ["place", "cases"])
            sheet.write_row(1, 0, ["x", 1])
        with zipfile.ZipFile(saved) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                content = old.read(name)
                new.writestr(name, change(content) if name.endswith(part) else content)
        return made.getvalue()

    return make


def add_rows(rows):
    return edit_workbook("sheet1.xml", lambda x: x.replace(b"</sheetData>", rows + b"</sheetData>"))


def add_after(tag, content, part="sheet1.xml"):
    return edit_workbook(part, lambda x: x.replace(tag, tag + content, 1))


def expand_entities(sheet):
    laughs = b"".join(b'<!ENTITY a%d "%s">' % (k, b"&a%d;" % (k - 1) * 20) for k in range(1, 9))
    start = b'<!DOCTYPE worksheet [<!ENTITY a0 "aaaaaaaaaaaaaaaaaaaa">' + laughs + b"]>"
    return start + sheet[sheet.index(b"<worksheet") :].replace(b"<v>1<", b"<v>&a8;<")


def long_notes(path):
    """A Stata file of many rows that all refer to one long text."""

    rows = 200_000
    frame = pd.DataFrame({"place": ["x" * 3_000_000] * rows, "cases": np.zeros(rows, dtype="i1")})
    frame.to_stata(path, version=118, convert_strl=["place"], write_index=False)


def many_rows(path):
    """A file of 0.6 MB whose row groups all say that they have ten million rows."""

    zeros = np.zeros(10_000_000, dtype=np.int64)
    table = pa.table({"place": zeros, "cases": zeros})
    with pq.ParquetWriter(path, table.schema) as writer:
        for _ in range(6):
            writer.write_table(table)


def late_repeats(path):
    """Fifty million rows, the second half of them like the first."""

    rows, names = 5_000_000, ("place", "cases")
    schema = pa.schema([(name, pa.int64()) for name in names])
    encoding = {"use_dictionary": ["cases"], "column_encoding": {"place": "DELTA_BINARY_PACKED"}}
    with pq.ParquetWriter(path, schema, **encoding, compression="zstd") as writer:
        for start in range(0, 10 * rows, rows):
            place = np.arange(start, start + rows) % (5 * rows)
            writer.write_table(pa.table([place, np.zeros(rows, np.int64)], names))


def one_word_for_all(path):
    """Many rows that refer to one long word of a dictionary."""
    codes = pa.array(np.zeros(300_000, dtype=np.int32))
    place = pa.DictionaryArray.from_arrays(codes, pa.array(["x" * 5_000]))
    cases = np.zeros(300_000, dtype=np.int64)
    feather.write_feather(pa.table({"place": place, "cases": cases}), path)


def one_text_for_all(path):
    """Many rows that all view one text of 3 MB."""
    rows, length = 100_000, 3_000_000
    views = np.tile(np.array([length, 0x78787878, 0, 0], np.int32), rows)
    buffers = [None, pa.py_buffer(views), pa.py_buffer(b"x" * length)]
    place = pa.Array.from_buffers(pa.string_view(), rows, buffers)
    table = pa.table({"place": place, "cases": np.zeros(rows, dtype=np.int64)})
    feather.write_feather(table, path, compression="uncompressed")


def long_lists(path):
    """A million lists of twenty zeros."""

    rows = 1_000_000
    zeros = pa.array(np.zeros(20 * rows, dtype=np.int8))
    place = pa.ListArray.from_arrays(pa.array(np.arange(0, 20 * rows + 1, 20, np.int32)), zeros)
    pq.write_table(pa.table({"place": place, "cases": np.zeros(rows, np.int64)}), path)


def long_label(path):
    """A million short labels and one of 5 MB."""

    place = [os.urandom(2_000_000).hex(), *map(str, range(1_000_000))]
    pq.write_table(pa.table({"place": place, "cases": np.zeros(len(place), np.int64)}), path)


def text(content):
    return lambda: content().encode()


TABLES = {
    "as many columns as there may be.csv": lambda: write_wide(2**14),
    "more columns than there may be.csv": lambda: write_wide(99_999),
    "rows of two.csv": text(lambda: fill("1,1\n", HEADER)),
    "one quoted cell.csv": text(lambda: fill("1,1\n", HEADER + '"1",1\n')),
    "different cells.csv": text(lambda: HEADER + "".join(f'"{k}",{k}\n' for k in range(620_000))),
    "a title.csv": text(lambda: fill("1,1\n", f"A title\n\n{HEADER}")),
    "a footnote.csv": text(lambda: fill("1,1\n", HEADER, "a note\n")),
    "a cell that never ends.csv": text(lambda: fill("x,", 'a,b\n"')),
    "sixteen bits.csv": lambda: (HEADER + "1,1\n" * (ROOM // 8)).encode("utf-16"),
    "one long label.csv": text(lambda: fill("y,1\n", HEADER + "x" * 131_000 + ",1\n")),
    "one long number.csv": text(lambda: fill("-1,1\n", HEADER + "-" + "1" * 131_000 + ",1\n")),
    "one long count.csv": text(lambda: fill("x,1.0\n", HEADER + "x," + "0" * 131_000 + "\n")),
    "one long label.parquet": long_label,
    "one word for all.feather": one_word_for_all,
    "one text for all.feather": one_text_for_all,
    "long lists.parquet": long_lists,
    "zeros.csv": lambda: bytes(ROOM),
    "packed rows.csv.zst": pack_rows("zstd", 8_000_000),
    "many packed rows.csv.zst": pack_rows("zstd", 60_000_000),
    "packed rows and a quote.csv.zst": pack_rows("zstd", 4_000_000, b'"1",1\n'),
    "many packed rows and a quote.csv.gz": pack_rows("gzip", 50_000_000, b'"1",1\n'),
    "packed noise.csv.zst": lambda: b"\x28\xb5\x2f\xfd" + os.urandom(10**6),
    "packed noise.csv.gz": lambda: b"\x1f\x8b\x08" + os.urandom(10**6),
    "a million rows.xlsx": add_rows(b"<row><c><v>1</v></c><c><v>1</v></c></row>" * 1_000_000),
    "a far corner.xlsx": add_rows(b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'),
    "a far column.xlsx": add_rows(
        b"".join(b'<row r="%d"><c r="XFD%d"><v>1</v></c></row>' % (k, k) for k in range(3, 90_000))
    ),
    "everything merged.xlsx": add_after(
        b"</sheetData>", b'<mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells>'
    ),
    "many merged.xlsx": add_after(
        b"</sheetData>",
        b"<mergeCells>"
        + b"".join(b'<mergeCell ref="A%d:B%d"/>' % (k, k) for k in range(5, 300_000))
        + b"</mergeCells>",
    ),
    "many links.xlsx": add_after(
        b"</sheetData>", b"<hyperlinks>" + b'<hyperlink ref="A1"/>' * 900_000 + b"</hyperlinks>"
    ),
    "one formula for all.xlsx": add_rows(
        b'<row r="3"><c r="A3"><f t="shared" si="0">'
        + b"A1+" * 100_000
        + b"A1</f></c></row>"
        + b"".join(
            b'<row r="%d"><c r="A%d"><f t="shared" si="0"/></c></row>' % (k, k)
            for k in range(4, 20_000)
        )
    ),
    "many styles.xlsx": add_after(
        b"</cellStyleXfs>", b"<cellXfs>" + b"<xf/>" * 900_000 + b"</cellXfs>", "styles.xml"
    ),
    "many names.xlsx": add_after(
        b"</sheets>",
        b"<definedNames>" + b'<definedName name="a">1</definedName>' * 500_000 + b"</definedNames>",
        "workbook.xml",
    ),
    "deep tags.xlsx": add_rows(b"<a>" * 900_000 + b"</a>" * 900_000),
    "entities.xlsx": edit_workbook("sheet1.xml", expand_entities),
    "noise.xlsx": lambda: b"PK\x03\x04" + os.urandom(10**6),
    "rows.sav": write_statistics("sav", 600_000),
    "packed rows.zsav": write_statistics("sav", 5_000_000, compress=True),
    "rows.dta": write_statistics("dta", 1_200_000),
    "long notes.dta": long_notes,
    "noise.sas7bdat": lambda: os.urandom(10**6),
    "rows.feather": write_arrow("feather", 50_000_000),
    "coded rows.parquet": write_arrow("parquet", 60_000_000, coded=True),
    "rows.parquet": write_arrow("parquet", 50_000_000),
    "many rows.parquet": many_rows,
    "late repeats.parquet": late_repeats,
    "long texts.parquet": long_texts,
}
QUICK = (
    *("as many columns as there may be.csv", "one quoted cell.csv", "many packed rows.csv.zst"),
    *("packed rows and a quote.csv.zst", "a far corner.xlsx", "everything merged.xlsx"),
    *("one formula for all.xlsx", "many names.xlsx", "packed rows.zsav", "rows.feather"),
    *("one long number.csv", "one text for all.feather"),
)  # the dearest of every kind, in every run
OUT_OF_PROPORTION = (
    *("packed rows.csv.zst", "many packed rows.csv.zst"),
    "many packed rows and a quote.csv.gz",
    *("a million rows.xlsx", "many styles.xlsx", "many names.xlsx", "packed rows.zsav"),
    *("long notes.dta", "rows.feather", "coded rows.parquet", "many rows.parquet"),
    "long texts.parquet",
)
TEXTS_FOR_ALL = ("one word for all.feather", "one text for all.feather")
"""To inspect them, no row is read."""

MANY_ROWS, MOST_FOR_MANY_ROWS = ("rows.parquet", "late repeats.parquet"), 700
"""Six bytes for each of fifty million rows, beside what the program takes."""

HONEST_WORK = (
    *MANY_ROWS,
    *("one quoted cell.csv", "different cells.csv", "sixteen bits.csv", "rows.sav", "rows.dta"),
)
"""Publishing takes as long as that many rows do: in proportion to the file, in little memory."""

PROTECTED = ["--count", "cases", "--keep", "all", "--upper", "9", "--epsilon", "1"]
OPTIONS = [*PROTECTED, "--out", "release"]
CASES = [(command, name) for name in TABLES for command in ("inspect", "privatize")]


def write_case(name, folder):
    path, make = folder / name, TABLES[name]
    if make.__code__.co_argcount:
        make(path)
    else:
        path.write_bytes(make())
    assert path.stat().st_size <= hostile.LARGEST_FILE
    return path


@pytest.mark.parametrize(("command", "name"), hostile.mark(CASES, QUICK))
def test_a_hostile_table_costs_little(command, name, tmp_path, monkeypatch):
    path = write_case(name, tmp_path)
    monkeypatch.chdir(tmp_path)
    if command == "inspect":
        shown = hostile.require_cheap("inspect", path)
    elif name in HONEST_WORK:
        code, _, megabytes, shown = hostile.run_measured("privatize", path, *OPTIONS)
        most = MOST_FOR_MANY_ROWS if name in MANY_ROWS else hostile.MOST_MEGABYTES
        assert (code in (0, 1), megabytes < most) == (True, True), (megabytes, shown)
    else:
        shown = hostile.require_cheap("privatize", path, *OPTIONS)
    refused = (*OUT_OF_PROPORTION, *(TEXTS_FOR_ALL if command == "privatize" else ()))
    assert (UNPACK in shown) == (name in refused), shown


def test_tables_wait_for_no_pipe(tmp_path):
    for ending in ("csv", "xlsx", "parquet"):
        os.mkfifo(tmp_path / f"t.{ending}")
        hostile.require_cheap_refusal("inspect", tmp_path / f"t.{ending}")
    hostile.require_cheap_refusal("privatize", tmp_path / "t.csv", *OPTIONS)
