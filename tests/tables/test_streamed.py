"""Long files are read batch by batch, however they are written: the same release, little memory."""

import subprocess
import sys
import time
import tracemalloc
from dataclasses import astuple, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallyveil as tv
from tallyveil.release import groups, plan
from tallyveil.release.transaction import publish_table
from tallyveil.tables import columnar, duplicates, text
from tallyveil.tables import table as tables
from tallyveil.tables.counts import read_counts
from tallyveil.tables.labels import find_formulas
from tallyveil.tables.read import read_table
from tallyveil.tables.source import Source
from tallyveil.tables.subtotals import find_totals
from tests.asking import make_options, privatize
from tests.tables import ways

ROWS = 3_000
OPTIONS = {"count": "cases", "upper": 20, "epsilon": 1, "keep": "all"}
HEADER = "area,code,cases,sort"
LINES = [f"Köln {i},{i * 7919 % 1009},{i * i % 23},x{i:04}" for i in range(ROWS)]
FILES = ("plain", "parquet", "feather")


@pytest.fixture(autouse=True)
def short_batches(monkeypatch):
    """Every file is read in batches of a few hundred rows, again in every pass."""
    set_batches(monkeypatch, 500, 1 << 13)


def set_batches(monkeypatch, rows, size):
    monkeypatch.setattr(text, "HELD", -1)
    monkeypatch.setattr(text, "BLOCK", size)
    monkeypatch.setattr(columnar, "BATCH_ROWS", rows)
    monkeypatch.setattr(tables, "BATCH_ROWS", rows)


def write(way, folder, lines=LINES, header=HEADER, name="cases"):
    return ways.write(way, folder, [header, *lines], name)


def open_way(way, folder, lines=LINES, header=HEADER):
    path, source = write(way, folder, lines, header)
    return read_table(path, Source(**source))


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    path, _ = write("plain", tmp_path_factory.mktemp("plain"))
    return privatize(path, entropy=tv.SeededNotPrivate(5), **OPTIONS).data.to_bytes()


@pytest.mark.parametrize("way", ways.WAYS)
def test_every_way_of_writing_gives_the_same_release(tmp_path, expected, way):
    path, source = write(way, tmp_path)
    assert len(list(read_table(path, make_options(**source).source).batches())) > 5
    asked = {**OPTIONS, **source, "entropy": tv.SeededNotPrivate(5), "out": tmp_path / "out"}
    release = privatize(path, **asked, format="csv")
    assert release.data.to_bytes() == expected
    assert (tmp_path / "out" / "data.csv").read_bytes() == expected
    assert str(path) not in repr(vars(release.data))  # nothing refers to the confidential file
    assert release.data.type_of("code") == "integer"
    assert release.table["code"][1].as_py() == 7919 % 1009
    assert release.table["cases"].to_pylist() == release.published["cases"].counts.tolist()


@pytest.mark.parametrize("way", FILES)
@pytest.mark.parametrize(
    "options",
    [
        {"method": "geometric", "unbiased": True},
        {"keep": ["area", "sort"]},
        {"epsilons": ["2", "1"]},
        {"format": "parquet"},
    ],
    ids=str,
)
def test_a_file_gives_the_bytes_of_a_table_in_memory(tmp_path, monkeypatch, way, options):
    path, _ = write(way, tmp_path)
    read, made = read_table, []
    for open_it in (read, lambda *source: read(*source).hold()):
        monkeypatch.setattr(plan, "read_table", open_it)
        released = privatize(path, entropy=tv.SeededNotPrivate(5), **{**OPTIONS, **options})
        released = released if isinstance(released, tuple) else [released]
        made.append([release.data.to_bytes() for release in released])
    assert made[0] == made[1]


def test_batches_are_the_rows_in_order(build):
    columns = {"area": list("abcdefg"), "sex": list("fm") * 3 + [""], "cases": list(range(7))}
    source, options = build(columns)
    table = read_table(source, Source(**options))
    for _ in range(2):
        for one, other in zip(table.batches(), table.batches(), strict=True):
            assert one.counts("cases").tolist() == other.counts("cases").tolist()
        batches = list(table.batches())
        for name in table.written_names:
            assert [label for b in batches for label in b.labels(name)] == table.labels(name)
        assert [n for b in batches for n in b.counts("cases").tolist()] == columns["cases"]
        for batch in batches:
            assert (batch.kind, batch.format) == (table.kind, table.format)
            assert (batch.names, batch.index_names) == (table.names, table.index_names)


def _double(path):
    path.write_bytes(path.read_bytes() * 2)


def _change_bytes(path):
    path.write_bytes(path.read_bytes()[::-1])


def _replace(path):
    (path.parent / "other").write_bytes(path.read_bytes())
    (path.parent / "other").replace(path)


@pytest.mark.parametrize("spoil", [_double, _change_bytes, _replace, lambda path: path.unlink()])
@pytest.mark.parametrize("when", ["planning", "reserving room", "debiting the ledger", "packing"])
@pytest.mark.parametrize("way", FILES)
def test_a_file_that_changes_between_passes_is_refused(tmp_path, monkeypatch, way, spoil, when):
    """Whenever it changes nothing is published; noticed before the debit, it costs nothing."""
    path, _ = write(way, tmp_path)
    out, book = tmp_path / "out", tv.Ledger.create(tmp_path / "budget.db")
    book.open("cases", 1)

    def change(step):
        if step == when:
            spoil(path)

    def read_and_change(*arguments):
        columns = read_columns(*arguments)
        change("planning")
        return columns

    read_columns = plan.read_columns
    monkeypatch.setattr(plan, "read_columns", read_and_change)
    options = make_options(**OPTIONS, out=str(out), ledger=book, dataset="cases")
    with pytest.raises(tv.TableError, match="changed while it was read") as noticed:
        publish_table(path, options, command="", progress=change)
    assert not out.exists()
    assert list(tmp_path.glob(".out*")) == []
    is_early = when in ("planning", "reserving room")
    assert len(book.history("cases")) == (0 if is_early else 1)
    assert ("The budget was spent before that" in str(noticed.value)) != is_early


@pytest.mark.parametrize("way", FILES)
def test_a_link_that_leads_elsewhere_for_a_moment_is_noticed(tmp_path, monkeypatch, way):
    path, _ = write(way, tmp_path)
    other, _ = write(way, tmp_path, [line.replace("Köln", "Bonn") for line in LINES], name="other")
    link = tmp_path / f"link{path.suffix}"
    link.symlink_to(path)
    table = read_table(link)

    def turn(place, opener):
        link.unlink()
        link.symlink_to(other)
        try:
            return opener(place)
        finally:
            link.unlink()
            link.symlink_to(path)

    for module, name in ((text, "open_file"), (pa, "OSFile")):
        monkeypatch.setattr(module, name, partial(turn, opener=getattr(module, name)))
    for read in (lambda: table.labels("area"), lambda: read_table(link)):
        with pytest.raises(tv.TableError, match="changed while it was read"):
            read()


def test_rows_that_pack_well_are_published_whatever_room_a_stranger_has(tmp_path, monkeypatch):
    """What a small file may hold bounds tables that come in, never the one that was just paid."""
    path, _ = write("parquet", tmp_path)
    monkeypatch.setattr(columnar, "SMALL", path.stat().st_size - 1)
    monkeypatch.setattr(columnar, "MOST_ROWS", 10)
    release = privatize(path, **{**OPTIONS, "keep": []}, out=tmp_path / "out")
    data = tmp_path / "out" / "data.parquet"
    assert data.stat().st_size < columnar.SMALL
    assert release.table.num_rows == ROWS
    with pytest.raises(tv.TableError, match="unpacks to far more"):
        read_table(data)


@pytest.mark.parametrize("way", ["plain", "parquet"])
def test_numbers_and_text_need_no_pandas(tmp_path, way):
    """pyarrow's own conversions would import it, which takes longer than the table.

    The folder that is written without it checks.
    """
    path, _ = write(way, tmp_path)
    program = (
        "import sys, tallyveil as tv\n"
        f"tv.privatize({str(path)!r}, out={str(tmp_path / 'out')!r}, **{OPTIONS!r})\n"
        "assert 'pandas' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert all(finding.ok for finding in tv.check_package(tmp_path / "out"))


@pytest.mark.parametrize("way", FILES)
@pytest.mark.parametrize("most_held", [1 << 24, 1000])
@pytest.mark.parametrize("row", [1, 1_700, ROWS - 1])
def test_a_repeated_row_is_named(tmp_path, monkeypatch, way, most_held, row):
    monkeypatch.setattr(duplicates, "MOST_HELD", most_held)
    lines = list(LINES)
    lines[row] = lines[row - 1]
    path, _ = write(way, tmp_path, lines)
    with pytest.raises(tv.TableError, match=f"Row {row + 1} repeats"):
        privatize(path, **OPTIONS)


@pytest.mark.parametrize("most_held", [1 << 24, 1000])
@pytest.mark.parametrize("share", [2, ROWS // 3, ROWS])
def test_some_of_many_repeated_rows_is_named(monkeypatch, most_held, share):
    """Where as many rows as `share` repeat others, or parts are searched, any may be named."""
    monkeypatch.setattr(duplicates, "MOST_HELD", most_held)
    generator = np.random.default_rng(share)
    codes = np.arange(ROWS)
    codes[generator.integers(0, ROWS, share)] = generator.integers(0, ROWS, share)
    seen = set()
    repeats = [row for row, code in enumerate(codes) if code in seen or seen.add(code)]
    with pytest.raises(tv.TableError, match="repeats") as refused:
        privatize(pa.table({"code": codes, "cases": codes % 4}), **OPTIONS)
    named = int(str(refused.value).split()[1]) - 1
    assert named == repeats[0] if share == 2 and most_held > ROWS else named in repeats


@pytest.mark.parametrize("most_held", [1 << 24, 1000])
@pytest.mark.parametrize("last", [7, None])
def test_a_repeated_number_is_named_beside_missing_ones(monkeypatch, most_held, last):
    """Batches with a missing number and batches without one hash numbers alike."""
    monkeypatch.setattr(duplicates, "MOST_HELD", most_held)
    codes = [7, *range(9, ROWS), None, last]
    with pytest.raises(tv.TableError, match=f"Row {len(codes)} repeats"):
        privatize(pa.table({"code": codes, "cases": [1] * len(codes)}), **OPTIONS)


def test_equal_hashes_of_different_labels_are_no_repetition(monkeypatch):
    zeros = lambda column: np.zeros(len(column), np.uint64)  # noqa: E731
    monkeypatch.setattr(duplicates, "_hash_column", zeros)
    privatize(pa.table({"area": list("abc"), "cases": [1, 2, 3]}), **OPTIONS)
    with pytest.raises(tv.TableError, match="Row 3 repeats"):
        privatize(pa.table({"area": ["", "a", None], "cases": [1, 2, 3]}), **OPTIONS)


@pytest.mark.parametrize("way", FILES)
@pytest.mark.parametrize("row", [0, ROWS - 1])
@pytest.mark.parametrize("label", ["Total", " total", "GRAND TOTAL: x", "all ages", "ÖSSZESEN"])
def test_totals_and_formulas_are_found_wherever_they_are(tmp_path, way, row, label):
    lines = [f"small total area {i},0,-0.5" for i in range(ROWS)]
    lines[row] = f"{label},@sum,0"
    opened = open_way(way, tmp_path, lines, "area,note,cases")
    assert find_totals(opened, ["area"])["area"][0] == label.strip()
    assert find_formulas(opened, opened.names) == ([] if way == "parquet" else ["note"])


def peak_and_seconds(opened):
    """Peak memory and processor time of reading counts and labels once."""
    tracemalloc.start()
    before, peak, start = pa.total_allocated_bytes(), 0, time.process_time()
    for batch in opened.rows_in.scan(opened.names):
        peak = max(peak, pa.total_allocated_bytes() - before)
        del batch
    seconds = time.process_time() - start
    peak += tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, seconds


def test_no_way_of_writing_costs_much_more_than_another(tmp_path, monkeypatch):
    """Neither memory nor time has a cliff, such as for one quoted cell among a million."""
    set_batches(monkeypatch, 1 << 14, 1 << 18)
    lines = [f"area {i},{i % 1009},{i % 9},x" for i in range(300_000)]
    costs = {}
    for way in (*ways.TEXTS, *ways.MIXED):
        opened = open_way(way, tmp_path, lines)
        costs[way] = peak_and_seconds(opened)
        assert int(np.count_nonzero(read_counts(opened, "cases", 9).values == 5)) == 33_333
    memory, seconds = costs["plain"]
    most = 2 * memory + 3_000_000, 3 * seconds + 0.1
    assert {
        way: cost for way, cost in costs.items() if cost[0] > most[0] or cost[1] > most[1]
    } == {}
    assert memory < 4_000_000


def test_memory_does_not_grow_with_wide_rows(tmp_path):
    """A table that takes 264 MB in memory is released with less than that beside the imports."""
    script = """
import resource, sys
import tallyveil as tv
tv.privatize([3, 1, 2] * 40, upper=5, epsilon=1).files
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
tv.privatize(sys.argv[1], "cases", upper=20, epsilon=1, keep="all", out=sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    path, writer = tmp_path / "wide.parquet", None
    for start in range(0, 1_500_000, 100_000):
        at = np.arange(start, start + 100_000)
        wide = {f"column {k}": at * (k + 3) % 1_000_003 for k in range(20)}
        piece = pa.table({"id": at, **wide, "cases": at % 17})
        writer = writer or pq.ParquetWriter(path, piece.schema)
        writer.write_table(piece)
    writer.close()
    words = [sys.executable, "-c", script, str(path), str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert int(done.stdout) * 1024 < 220_000_000


RELEASES = {
    "preserve": {},
    "geometric": {"method": "geometric"},
    "fair": {"method": "fair"},
    "wide": {"upper": 10**5, "method": "geometric", "epsilon": 0.01},
    "open": {"upper": None},
    "unbiased": {"unbiased": True},
    "hierarchy": {"hierarchy": ["region"]},
    "zeros": {"structural_zeros": "region == r3"},
}
QUESTIONS = [
    {},
    {"by": "region"},
    {"by": ["region", "half"]},
    {"by": "code"},
    {"where": "half == a"},
    {"by": "half", "where": ["id < 1200", "region != r7"]},
    {"by": "region", "where": "code >= 3"},
    {"where": "id == north"},
    {"where": "region > 3"},
    {"by": "half", "where": "id > 10000000"},
    {"by": "cases"},
    {"where": "cases == 3"},
]


def make_groups():
    """Regions in blocks, last first; codes without a value now and then."""
    random = np.random.default_rng(5)
    regions = np.sort(random.integers(0, 9, ROWS))[::-1]
    halves, codes = random.integers(0, 2, ROWS), random.integers(0, 6, ROWS)
    cases = np.where(regions == 3, 0, random.integers(0, 10, ROWS))
    return [
        f"{i},r{regions[i]},{'ab'[halves[i]]},{codes[i] if i % 997 else ''},{cases[i]}"
        for i in range(ROWS)
    ]


def ask(folder, options):
    try:
        totals = tv.estimate_total(folder, **options)
    except tv.TallyveilError as problem:
        return str(problem)
    return totals if isinstance(totals, dict) else {"": totals}


@pytest.mark.parametrize("kind", RELEASES)
@pytest.mark.parametrize("way", ["plain", "parquet"])
def test_totals_are_those_of_the_whole_table(tmp_path, monkeypatch, way, kind):
    path, _ = write(way, tmp_path, make_groups(), "id,region,half,code,cases")
    folder = tmp_path / "release"
    privatize(path, **{**OPTIONS, "upper": 9, **RELEASES[kind]}, out=folder)
    answers = []
    monkeypatch.setattr(groups, "FEW_PAIRS", 100)  # pairs are joined on the way
    for most in (0, 10**9):
        monkeypatch.setattr(groups, "MOST_AT_ONCE", most)
        answers.append([ask(folder, question) for question in QUESTIONS])
    for long, short in zip(*answers, strict=True):
        if isinstance(long, str):
            assert long == short
            continue
        assert list(long) == list(short)
        for group, total in long.items():
            other = short[group]
            same = replace(total, low=other.low, high=other.high)
            assert astuple(same) == pytest.approx(astuple(other), rel=1e-9, nan_ok=True)
            # an end that is whole but for the last digits of a sum is rounded either way
            ends = other.low, other.high
            assert (total.low, total.high) == pytest.approx(ends, abs=1)
