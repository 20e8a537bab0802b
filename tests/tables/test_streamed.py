"""Tables that stay in their files: the same release as from memory, batch by batch."""

import os
import subprocess
import sys
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from tallyveil.tables.arrow_file import ArrowFile, open_arrow
from tallyveil.tables.streamed import StreamedTable

import tallyveil as tv
from tallyveil.check.package import check_package
from tallyveil.release.transaction import publish_table
from tallyveil.tables import arrow_file, distinct
from tallyveil.tables.read import read_table
from tallyveil.tables.subtotals import find_totals
from tallyveil.tables.table import BATCH_ROWS
from tests.asking import make_options, privatize

ROWS = 2 * BATCH_ROWS + 1234
OPTIONS = {"count": "cases", "upper": 20, "epsilon": 1, "keep": "all"}


def make_table(rows=ROWS):
    at = np.arange(rows)
    days = [date(2026, 1, 1) + timedelta(days=i % 300) for i in range(rows)]
    return pa.table(
        {
            "area": [f"area {i}" for i in range(rows)],
            "code": at * 7919 % 1_000_003,
            "rate": pa.array(at / 7, pa.float32()),
            "day": pa.array(days, mask=at % 11 == 0),
            "flag": pa.array(at % 3 == 0),
            "cases": at * at % 23,
        }
    )


def write(table, folder, ending, pieces=77_777):
    path = folder / f"cases.{ending}"
    if ending == "parquet":
        pq.write_table(table, path, row_group_size=pieces)
    else:
        feather.write_feather(table, path, chunksize=pieces, compression="uncompressed")
    return path


@pytest.fixture(params=["parquet", "arrow"])
def path(request, tmp_path):
    return write(make_table(), tmp_path, request.param)


def seeded(seed=5):
    return tv.SeededNotPrivate(seed)


def in_memory(path):
    """The same file as a table in memory."""
    return ArrowFile.load(open_arrow(path, "parquet" if path.suffix == ".parquet" else "arrow"))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "geometric"},
        {"drop": "rate", "keep": ["area", "code", "day", "flag"]},
        {"unbiased": True, "method": "geometric"},
        {"epsilons": "2,1", "epsilon": None},
    ],
    ids=str,
)
def test_a_file_gives_the_bytes_of_a_table_in_memory(path, options, monkeypatch):
    made = []
    for load in (False, True):
        if load:
            monkeypatch.setattr("tallyveil.tables.source._read_file", lambda *_: in_memory(path))
        asked = make_options(entropy=seeded(), **{**OPTIONS, **options})
        made.append([release.data.to_bytes() for release in publish_table(path, asked, command="")])
    assert made[0] == made[1]


def test_the_folder_is_written_from_the_file_and_checks(path, tmp_path):
    assert isinstance(read_table(path), ArrowFile)
    release = privatize(path, **OPTIONS, out=tmp_path / "out")
    assert all(found.ok for found in check_package(tmp_path / "out"))
    published = read_table(tmp_path / "out" / release.receipt.table.file)
    assert release.data.identity == published.identity  # nothing refers to the confidential file
    assert release.table.drop(["cases"]).equals(make_table().drop(["cases"]))
    assert release.table["cases"].to_numpy().tolist() == release.published["cases"].counts.tolist()


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_numbers_and_text_need_no_pandas(tmp_path, ending):
    """pyarrow's own conversions would import it, which takes longer than the table."""
    path = write(make_table().select(["area", "code", "rate", "cases"]), tmp_path, ending)
    program = (
        "import sys; from tallyveil.release.plan import open_table, plan_release\n"
        "from tallyveil.request.options import ReleaseOptions\n"
        f"plan_release(open_table({str(path)!r}, ReleaseOptions(**{OPTIONS!r}))).count_bytes()\n"
        "assert 'pandas' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_release_without_a_folder_reads_the_file_once_more(path):
    release = privatize(path, **OPTIONS)
    assert isinstance(release.data, StreamedTable)
    assert release.table.num_rows == ROWS


def test_rows_arrive_in_any_pieces_and_leave_in_the_same(tmp_path):
    contents = set()
    for at, pieces in enumerate((10_000, 77_777, ROWS)):
        folder = tmp_path / str(at)
        folder.mkdir()
        for ending in ("parquet", "arrow"):
            table = read_table(write(make_table(), folder, ending, pieces))
            released = table.build_released({"cases": np.zeros(ROWS, np.uint8)}, table.names)
            contents.add((ending, released.to_bytes()))
    assert len(contents) == 2


@pytest.mark.parametrize("how", ["appended", "replaced", "same size", "gone"])
@pytest.mark.parametrize("when", ["reserving room", "packing"])
def test_a_file_that_changes_is_noticed(path, tmp_path, how, when):
    out, book = tmp_path / "out", tv.Ledger.create(tmp_path / "budget.db")
    book.open("cases", 1)

    def change(step):
        if step != when:
            return
        content = path.read_bytes()
        if how == "gone":
            path.unlink()
        elif how == "replaced":
            (path.parent / "other").write_bytes(content)
            os.replace(path.parent / "other", path)
        else:
            path.write_bytes(content + b"x" if how == "appended" else content[::-1])

    options = make_options(**OPTIONS, out=out, ledger=book, dataset="cases")
    with pytest.raises(tv.errors.TableError, match="changed while it was read") as noticed:
        publish_table(path, options, command="", say=change)
    assert not out.exists()
    assert list(tmp_path.glob(".out*")) == []
    debits = len(book.history("cases"))
    assert debits == (0 if when == "reserving room" else 1)
    assert ("The budget was spent before that" in str(noticed.value)) == bool(debits)


def test_rows_that_pack_well_are_published_whatever_room_a_stranger_has(tmp_path, monkeypatch):
    """What a small file may hold bounds tables that come in, never the one that was just paid."""
    path = write(make_table(), tmp_path, "parquet")
    monkeypatch.setattr(arrow_file, "SMALL", path.stat().st_size - 1)
    monkeypatch.setattr(arrow_file, "MOST_ROWS", 10)
    options = {**OPTIONS, "keep": []}
    rel = privatize(path, **options, out=tmp_path / "out")
    data = tmp_path / "out" / "data.parquet"
    assert data.stat().st_size < arrow_file.SMALL
    assert rel.table.num_rows == ROWS
    with pytest.raises(tv.errors.TableError, match="unpacks to far more"):
        read_table(data)


def test_categories_and_odd_types_are_read_into_memory(tmp_path):
    table = make_table()
    coded = table.set_column(0, "area", table["area"].dictionary_encode())
    assert not isinstance(read_table(write(coded, tmp_path, "parquet")), ArrowFile)


@pytest.mark.parametrize("held", [1 << 24, 100])
@pytest.mark.parametrize("row", [1, 70_000, ROWS - 1])
def test_the_first_repeated_category_is_named(tmp_path, monkeypatch, held, row):
    monkeypatch.setattr(distinct, "MOST_HELD", held)
    codes = np.arange(ROWS)
    codes[row], codes[ROWS - 1] = codes[row - 1], codes[row - 1]
    table = make_table().select(["cases"]).append_column("code", pa.array(codes))
    path = write(table, tmp_path, "parquet")
    with pytest.raises(tv.errors.TableError, match=f"Row {row + 1} repeats"):
        privatize(path, **OPTIONS)


@pytest.mark.parametrize("held", [1 << 24, 5000])
@pytest.mark.parametrize("share", [2, ROWS // 3, ROWS])
def test_the_first_of_many_repeats_is_found(tmp_path, monkeypatch, held, share):
    """As many rows as `share` repeat others, in any order: one loop over the rows says which."""
    monkeypatch.setattr(distinct, "MOST_HELD", held)
    generator = np.random.default_rng(share)
    codes = np.arange(ROWS)
    codes[generator.integers(0, ROWS, share)] = generator.integers(0, ROWS, share)
    seen = set()
    first = next(row for row, code in enumerate(codes) if code in seen or seen.add(code))
    table = make_table().select(["cases"]).append_column("code", pa.array(codes))
    assert distinct.find_repeat(read_table(write(table, tmp_path, "parquet")), ["code"]) == first


@pytest.mark.parametrize("held", [1 << 24, 100])
def test_equal_hashes_of_different_labels_are_no_repetition(path, monkeypatch, held):
    monkeypatch.setattr(distinct, "MOST_HELD", held)
    real = distinct.Table.hash_labels
    monkeypatch.setattr(
        "tallyveil.tables.arrow.ArrowTable.hash_labels",
        lambda self, names: np.arange(self.rows, dtype=np.uint64) % np.uint64(50_000),
    )
    table = read_table(path)
    assert distinct.find_repeat(table, ["area"]) is None
    assert real is not None


def test_no_value_is_the_empty_label(tmp_path):
    names = [f"area {i}" for i in range(ROWS)]
    names[3], names[99_999] = "", None
    table = pa.table({"area": names, "cases": np.zeros(ROWS, int)})
    with pytest.raises(tv.errors.TableError, match="Row 100000 repeats"):
        privatize(write(table, tmp_path, "parquet"), **OPTIONS)


@pytest.mark.parametrize(
    "label", ["Total", " total", "GRAND TOTAL: x", "all ages", "north total)", "ÖSSZESEN", "合計"]
)
@pytest.mark.parametrize("row", [0, ROWS - 1])
def test_totals_are_found_wherever_they_stand(tmp_path, label, row):
    names = [f"small total area {i}" for i in range(ROWS)]
    names[row] = label
    path = write(pa.table({"area": names, "cases": np.zeros(ROWS, int)}), tmp_path, "parquet")
    assert find_totals(read_table(path), ["area"])["area"][0] == label.strip()


def test_nested_labels_are_found(tmp_path):
    names = [
        f"{i // 100:04}" if i % 100 == 0 else f"{i // 100:04}{i % 100:02}" for i in range(ROWS)
    ]
    path = write(pa.table({"area": names, "cases": np.zeros(ROWS, int)}), tmp_path, "parquet")
    assert find_totals(read_table(path), ["area"]) == {"area": (None, 2)}


def test_memory_does_not_grow_with_wide_rows(tmp_path):
    """A table that takes 264 MB in memory is released with less than that beside the imports."""
    script = """
import resource, sys, numpy as np, pyarrow as pa, pyarrow.parquet as pq
import tallyveil as tv
pq.write_table(pa.table({"a": [1]}), sys.argv[2] + "x")
tv.privatize([3, 1, 2] * 40, upper=5, epsilon=1).files
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
tv.privatize(sys.argv[1], "cases", upper=20, epsilon=1, keep="all", out=sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    rows = 1_500_000
    path = tmp_path / "wide.parquet"
    writer = None
    for start in range(0, rows, 100_000):
        at = np.arange(start, start + 100_000)
        wide = {f"column {k}": at * (k + 3) % 1_000_003 for k in range(20)}
        piece = pa.table({"id": at, **wide, "cases": at % 17})
        writer = writer or pq.ParquetWriter(path, piece.schema)
        writer.write_table(piece)
    writer.close()
    words = [sys.executable, "-c", script, str(path), str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert int(done.stdout) * 1024 < 220_000_000


def test_only_columns_that_repeat_are_written_as_codes(tmp_path):
    rows = BATCH_ROWS + 1
    number = np.arange(rows)
    columns = {
        "id": number * 7,
        "name": [f"area {at}" for at in number],
        "region": [f"region {at % 50}" for at in number],
        "cases": number % 9,
    }
    path, out = tmp_path / "cases.parquet", tmp_path / "release"
    pq.write_table(pa.table(columns), path)
    asked = make_options(count="cases", upper=9, epsilon=1, keep="all", out=out)
    publish_table(path, asked, command="test")
    written = pq.ParquetFile(out / "data.parquet")
    group = written.metadata.row_group(0)
    coded = {
        group.column(at).path_in_schema
        for at in range(group.num_columns)
        if group.column(at).has_dictionary_page
    }
    assert coded == {"region", "cases"}
    assert written.read().drop(["cases"]).equals(pa.table(columns).drop(["cases"]))
