"""Text tables: what is not a count comes out word for word."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tallyveil.tables.delimited import infer_type, read_delimited

from tallyveil.errors import TableError
from tallyveil.tables.counts import LARGEST, convert_text

CELLS = st.text(st.characters(blacklist_characters="\r\n\0", blacklist_categories=("Cs",)))


@settings(deadline=None)
@given(
    st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_cells_survive_reading_and_writing(cells, delimiter, end):
    import csv
    import io

    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator=end)
    writer.writerows([("a", "b", "n"), *((*pair, "0") for pair in cells)])
    raw = buffer.getvalue().encode()
    table = read_delimited(raw, delimiter)
    assert table.labels("a") == tuple(pair[0] for pair in cells)
    assert table.build_released({}, table.names).to_bytes() == raw


def test_line_breaks_inside_quotes_are_not_line_endings():
    raw = b'a,n\r\n"two\nlines",1\r\n'
    table = read_delimited(raw)
    assert table.labels("a") == ("two\nlines",)
    assert table.to_bytes() == raw


def test_only_the_last_line_may_end_otherwise():
    table = read_delimited(b"a,n\r\nx,1\r\ny,2\n")
    assert table.to_bytes() == b"a,n\r\nx,1\r\ny,2\r\n"
    with pytest.raises(TableError, match="mixes line endings"):
        read_delimited(b"a,n\r\nx,1\ny,2\r\n")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-2", ""], "integer"),
        (["1", "2.5"], "number"),
        (["1e3", "2"], "number"),
        (["007", "10"], "string"),
        (["0.5", "01.5"], "string"),
        (["nan", "1"], "string"),
        (["", ""], "string"),
        (["x", "1"], "string"),
    ],
)
def test_types(values, kind):
    assert infer_type(values) == kind


@pytest.mark.parametrize(
    "value", ["1_000", "1,000", "٣", "²", "+-1", "0x10", "1e3", "1.5.0", "--1"]
)
def test_only_plain_digits_are_counts(value):
    with pytest.raises(TableError) as caught:
        convert_text(["1", value], "n")
    assert "Row 2" in str(caught.value)
    assert value not in str(caught.value)


def test_huge_counts_are_cut_and_never_overflow():
    assert convert_text(["9" * 40, "1.000"], "n").tolist() == [LARGEST, 1]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b'a,n\n"open,1\n', "not well-formed"),
        (b"a,n\n\n1,2\n", "Row 1 has 0 cells"),
        (b"a,n\nx\xff,1\n", "cannot be read as utf-8"),
        (b"   \n", "empty"),
    ],
)
def test_malformed_text(raw, words):
    with pytest.raises(TableError, match=words):
        read_delimited(raw)


def test_other_encodings_come_back_as_they_were():
    raw = "ort,n\nKöln,1\n".encode("latin-1")
    table = read_delimited(raw, encoding="latin-1")
    assert table.labels("ort") == ("Köln",)
    assert table.to_bytes() == raw


def test_a_copy_holds_nothing_that_was_looked_up_meanwhile():
    """Or a pickle would tell how the table was read: a long one is never looked into so."""
    table = read_delimited(b"area,cases\nn,1\n")
    before = pickle.dumps(table)
    assert table.labels("area") == ("n",)
    assert pickle.dumps(table) == before
