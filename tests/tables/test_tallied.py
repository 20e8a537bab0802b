"""Rows of long tables are tallied batch by batch, with what the whole table gives."""

import tracemalloc
import weakref
from dataclasses import astuple, replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from tallyveil.tables.streamed import FileTable

import tallyveil as tv
from tallyveil.release import groups as totals
from tallyveil.tables import arrow_file, plain, tallied
from tallyveil.tables.conditions import parse_conditions
from tallyveil.tables.read import read_table
from tests.asking import privatize

ROWS = 5000
RELEASES = {
    "preserve": {"upper": 9},
    "geometric": {"upper": 9, "method": "geometric"},
    "fair": {"upper": 9, "method": "fair"},
    "wide": {"upper": 10**5, "method": "geometric", "epsilon": 0.01},
    "open": {},
    "unbiased": {"upper": 9, "unbiased": True},
    "hierarchy": {"upper": 9, "hierarchy": ["region"]},
    "zeros": {"upper": 9, "structural_zeros": "region == r3"},
}
ASKED = [
    {},
    {"by": "region"},
    {"by": ["region", "half"]},
    {"by": "code"},
    {"where": "half == a"},
    {"by": "half", "where": ["id < 1200", "region != r7"]},
    {"by": "region", "where": "code >= 3"},
]
REFUSED = [
    {"where": "id == north"},
    {"where": "region > 3"},
    {"by": "half", "where": "id > 10000000"},
    {"by": "cases"},
    {"where": "cases == 3"},
]


def make_table(rows=ROWS):
    """Regions in blocks, last first; codes without a value here and there."""
    random = np.random.default_rng(5)
    regions = np.sort(random.integers(0, 9, rows))[::-1]
    empty = np.arange(rows) % 997 == 0
    return pa.table(
        {
            "id": np.arange(rows),
            "region": [f"r{number}" for number in regions],
            "half": np.array(["a", "b"])[random.integers(0, 2, rows)],
            "code": pa.array(random.integers(0, 6, rows).astype(float), mask=empty),
            "cases": np.where(regions == 3, 0, random.integers(0, 10, rows)),
        }
    )


def write_table(table, path):
    if path.suffix == ".csv":
        pa.csv.write_csv(table, path, pa.csv.WriteOptions(quoting_style="none"))
    elif path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        pa.feather.write_feather(table, path, chunksize=700)


@pytest.fixture
def short_batches(monkeypatch):
    """All files are long ones."""
    monkeypatch.setattr(arrow_file, "BATCH_ROWS", 600)
    monkeypatch.setattr(arrow_file.ArrowFile.batches, "__defaults__", (600,))
    monkeypatch.setattr(plain, "SMALLEST", 0)
    monkeypatch.setattr(plain, "BLOCK", 4000)


@pytest.fixture(params=["csv", "parquet", "arrow"])
def path(request, tmp_path):
    path = tmp_path / f"cases.{request.param}"
    write_table(make_table(), path)
    return path


def ask(folder, options):
    try:
        found = tv.estimate_total(folder, **options)
    except tv.TallyveilError as problem:
        return str(problem)
    return found if isinstance(found, dict) else {"": found}


@pytest.mark.parametrize("kind", RELEASES)
def test_totals_are_those_of_the_whole_table(path, short_batches, monkeypatch, kind):
    options = {"count": "cases", "keep": "all", "epsilon": 1, **RELEASES[kind]}
    folder = path.parent / "release"
    privatize(path, **options, out=folder)
    opened = totals._open(folder, None)[0]
    assert isinstance(opened, FileTable)
    assert len(list(opened.batches())) > 5
    long = [ask(folder, asked) for asked in ASKED + REFUSED]
    monkeypatch.setattr(totals, "FileTable", ())
    whole = [ask(folder, asked) for asked in ASKED + REFUSED]
    for one, other in zip(long, whole, strict=True):
        if isinstance(one, str):
            assert one == other
            continue
        assert list(one) == list(other)
        for group, total in one.items():
            exact = replace(total, low=other[group].low, high=other[group].high)
            assert astuple(exact) == pytest.approx(astuple(other[group]), rel=1e-9, nan_ok=True)
            # an end that is whole but for the last digits of a sum is rounded either way
            assert list_ends(total) == pytest.approx(list_ends(other[group]), abs=1)


def list_ends(total):
    return total.low, total.high


def test_what_a_column_holds_is_known_after_all_batches(path, short_batches):
    """Regions are text in the first batches, and numbers alone in the last."""
    numbers = [f"r{at}" if at < ROWS // 2 else str(at % 4) for at in range(ROWS)]
    write_table(make_table().set_column(1, "region", pa.array(numbers)), path)
    where = parse_conditions(["region == r7"])
    table = read_table(path)
    found = tallied.tally_groups(
        table, ["region"], where, ["cases"], lambda rows: rows.counts("cases")
    )
    assert list(found) == [("r7",)]
    assert found["r7",].times.tolist() == [1]


def test_pairs_are_joined_as_they_come(path, short_batches, monkeypatch):
    table = read_table(path)

    def count():
        return tallied.tally_groups(table, ["id"], (), ["cases"], lambda rows: rows.counts("cases"))

    before = count()
    monkeypatch.setattr(tallied, "FEW_PAIRS", 100)
    after = count()
    assert list(before) == list(after) == [(str(at),) for at in range(ROWS)]
    cases = make_table()["cases"].to_pylist()
    for found in (before, after):
        assert [group.counts.tolist() for group in found.values()] == [[one] for one in cases]
        assert all(group.times.tolist() == [1] for group in found.values())


def test_a_row_without_a_count_is_numbered_in_the_table(path, short_batches):
    table = make_table()
    cases = table["cases"].to_pylist()
    cases[3210] = -1
    write_table(table.set_column(4, "cases", pa.array(cases)), path)
    with pytest.raises(tv.TableError, match="Row 3211 holds"):
        tallied.tally_groups(
            read_table(path), ["half"], (), ["cases"], lambda rows: rows.counts("cases")
        )


def test_batches_are_not_held(path, short_batches):
    table, alive, most = read_table(path), weakref.WeakSet(), 0

    def read(batch):
        nonlocal most
        alive.add(batch)
        most = max(most, len(alive))
        return batch.counts("cases")

    tallied.tally_groups(table, ["region", "half"], (), ["cases"], read)
    assert most <= 2


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_rows_are_not_held(tmp_path, monkeypatch, ending):
    """A million rows of two columns are 16 MB as numbers alone."""
    monkeypatch.setattr(plain, "BLOCK", 1 << 18)
    rows = 10**6
    table = pa.table({"region": np.arange(rows) // 7 % 50, "cases": np.arange(rows) % 10})
    path = tmp_path / f"long.{ending}"
    if ending == "arrow":
        pa.feather.write_feather(table, path, chunksize=65_536)
    else:
        write_table(table, path)
    opened = read_table(path)
    assert isinstance(opened, FileTable)
    tracemalloc.start()
    found = tallied.tally_groups(
        opened, ["region"], (), ["cases"], lambda batch: batch.counts("cases")
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(int(group.times.sum()) for group in found.values()) == rows
    assert len(found) == 50
    assert peak < 16_000_000
