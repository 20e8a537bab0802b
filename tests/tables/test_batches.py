"""Batches are the rows of the table, in order, however large and however often they are read."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tallyveil.errors import ArgumentError, TableError
from tallyveil.tables.read import read_table
from tallyveil.tables.table import BATCH_ROWS

ROWS = 11
COLUMNS = {
    "area": [f"a{row}" for row in range(ROWS)],
    "sex": ["f", "m", ""] * 3 + ["f", "f"],
    "cases": [row * row for row in range(ROWS)],
}


@pytest.mark.parametrize("size", [1, 2, 3, ROWS - 1, ROWS, ROWS + 1, BATCH_ROWS])
def test_batches_are_the_rows_in_order(build, size):
    table = read_table(build(COLUMNS))
    for _ in range(2):
        batches = list(table.batches(size))
        whole, rest = divmod(ROWS, size)
        assert [batch.rows for batch in batches] == [size] * whole + [rest] * (rest > 0)
        for name in (*table.index_names, *table.names):
            assert [label for b in batches for label in b.labels(name)] == list(table.labels(name))
        counts = np.concatenate([batch.counts("cases") for batch in batches])
        assert counts.tolist() == COLUMNS["cases"]
        for batch in batches:
            assert type(batch) is type(table)
            assert (batch.kind, batch.extension) == (table.kind, table.extension)
            assert (batch.names, batch.index_names) == (table.names, table.index_names)


@pytest.mark.parametrize(
    "source",
    [[3, 1, 2], (3, 1, 2), np.array([3, 1, 2]), pd.Series([3, 1, 2]), pl.Series([3, 1, 2])],
    ids=lambda source: f"{type(source).__module__}.{type(source).__name__}",
)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_batches_of_an_array(source, size):
    table = read_table(source)
    for _ in range(2):
        batches = list(table.batches(size))
        assert [count for b in batches for count in b.counts("count").tolist()] == [3, 1, 2]
        assert all(type(batch.native()) is type(source) for batch in batches)


def test_two_readers_do_not_disturb_each_other(build):
    table = read_table(build(COLUMNS))
    pairs = zip(table.batches(4), table.batches(4), strict=True)
    for one, other in pairs:
        assert one.counts("cases").tolist() == other.counts("cases").tolist()


def test_batches_share_memory_with_the_table():
    array = np.arange(10)
    assert np.shares_memory(next(read_table(array).batches(4)).values, array)
    frame = pd.DataFrame({"cases": array})
    batch = next(read_table(frame).batches(4))
    assert np.shares_memory(batch.native()["cases"].to_numpy(), frame["cases"].to_numpy())
    table = pa.table({"cases": array})
    batch = next(read_table(table).batches(4)).native()
    buffers = [t.column("cases").chunk(0).buffers()[1].address for t in (batch, table)]
    assert buffers[0] == buffers[1]


def test_a_table_without_rows_has_no_batches():
    assert list(read_table(pd.DataFrame({"cases": []})).batches()) == []


def test_a_batch_has_at_least_one_row():
    with pytest.raises(ArgumentError, match="'size' must be at least 1"):
        read_table([1, 2]).batches(0)


def test_counts_of_a_new_name_become_the_last_column(build):
    table = read_table(build({"area": ["a", "b", "c"], "cases": [3, 1, 2]}))
    new = {"cases": np.array([7, 8, 9]), "cases_more": np.array([-1, 0, 5])}
    released = table.build_released(new, table.names, np.array([2, 0, 1]))
    assert released.names == (*table.names, "cases_more")
    assert list(released.labels("area")) == ["c", "a", "b"]
    assert released.counts("cases").tolist() == [9, 7, 8]
    assert list(released.labels("cases_more")) == ["5", "-1", "0"]
    assert released.type_of("cases_more") == "integer"


def test_an_array_has_no_room_for_a_new_column():
    table = read_table([1, 2, 3])
    with pytest.raises(TableError, match="one column"):
        table.build_released({table.name: np.zeros(3, int), "more": np.zeros(3, int)}, ())
