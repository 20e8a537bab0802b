"""What a table is written as depends on its rows alone: one form of CSV, one of Parquet."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallyveil.tables import write
from tallyveil.tables.read import read_table

NAMES = ["plain", "x,y", 'q"r', "e\nf", "Köln", None]
NUMBERS = [None, 1.5, -2, 1e6, 0.1, 1e-7]
TABLE = pa.table({"a": NAMES, 'b "c"': NUMBERS, "n": [0] * 6})
COUNTS = np.array([3, 0, 1, 2, 9, 5])
CSV = '''a,"b ""c""",n
plain,,3
"x,y",1.5,0
"q""r",-2,1
"e
f",1000000,2
Köln,0.1,9
,1e-7,5
'''


def release(table, form):
    opened = read_table(table)
    released = opened.build_released({"n": COUNTS}, opened.names)
    return replace(released, format=form).to_bytes()


def test_csv_is_utf_8_with_commas_line_feeds_and_quotes_where_needed():
    assert release(TABLE, "csv").decode() == CSV
    one = read_table(pa.table({"a": ["", "x", None]}))
    assert one.build_released({}, ["a"]).to_bytes() == b'a\n""\nx\n""\n'


@pytest.mark.parametrize("form", write.FORMATS)
def test_neither_batches_nor_libraries_nor_metadata_change_a_byte(form):
    expected = release(TABLE, form)
    noted = TABLE.replace_schema_metadata({"note": "secret"})
    pieces = [noted.slice(0, 1), noted.slice(1, 0), noted.slice(1, 4), noted.slice(5)]
    coded = TABLE.set_column(0, "a", TABLE["a"].dictionary_encode())
    compact = TABLE.set_column(2, "n", TABLE["n"].cast(pa.uint8()))
    frame = pd.DataFrame({"a": NAMES, 'b "c"': NUMBERS, "n": [0] * 6})
    for same in (pa.concat_tables(pieces), coded, compact, frame):
        assert release(same, form) == expected


def test_parquet_has_fixed_row_groups_and_no_metadata(monkeypatch):
    monkeypatch.setattr(write, "GROUP_ROWS", 4)
    content = release(TABLE.replace_schema_metadata({"note": "secret"}), "parquet")
    file = pq.ParquetFile(pa.BufferReader(content))
    meta = file.metadata
    assert [meta.row_group(at).num_rows for at in range(meta.num_row_groups)] == [4, 2]
    assert (meta.metadata, file.schema_arrow.metadata) == (None, None)
    for group in range(2):
        for at in range(3):
            chunk = meta.row_group(group).column(at)
            assert (chunk.compression, chunk.has_dictionary_page) == ("SNAPPY", False)
            assert not chunk.is_stats_set
            assert {*chunk.encodings} <= {"PLAIN", "RLE"}
    assert file.read()["n"].to_pylist() == COUNTS.tolist()
    assert file.read().drop(["n"]).equals(TABLE.drop(["n"]))
    assert str(file.schema_arrow.field("n").type) == "int64"


@pytest.mark.parametrize(("columns", "rows"), [(1, 2**20), (8, 2**20), (9, 2**19), (17, 2**18)])
def test_rows_of_a_group_follow_from_the_number_of_columns(columns, rows):
    assert write.choose_group_rows(columns) == rows
