"""The whole road of a table on many machines, its tasks run in this process."""

import importlib
import json
import os
import pickle
import shutil
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil import spark
from tallyveil.check.package import check_package
from tallyveil.cli.app import app
from tallyveil.errors import ArgumentError, LedgerError, PackageError, TableError, UsageError
from tallyveil.plans import apart
from tallyveil.publish.transaction import publish_table
from tallyveil.request.options import ReleaseOptions
from tallyveil.tables import (
    distributed,
    spark_files,
    spark_jobs,
    spark_parquet,
    spark_staging,
    spark_tasks,
)
from tallyveil.tables import spark as engine
from tallyveil.tables.parts import describe_parts

OPTIONS = {
    "count": ["cases", "deaths"],
    "keep": ["id", "ward"],
    "drop": "note",
    "upper": [40, 6],
    "epsilon": 1,
}


def publish(frame, out, **options):
    return spark.privatize(frame, **(OPTIONS | options), out=out)


def read(out):
    files = sorted((out / "data.parquet").iterdir())
    return pa.concat_tables([pq.read_table(file) for file in files])


def failures(out):
    return [found for found in check_package(out) if not found.ok]


@pytest.mark.parametrize("method", ["preserve", "geometric"])
def test_a_release_is_whole_and_checks(frame, table, tmp_path, method):
    out = tmp_path / "release"
    release = publish(frame, out, method=method)
    assert failures(out) == []
    published = read(out)
    assert published.column_names == ["id", "ward", "cases", "deaths"]
    assert published["id"].to_pylist() == table["id"].to_pylist()
    assert published["ward"].to_pylist() == table["ward"].to_pylist()
    for name, upper in (("cases", 40), ("deaths", 6)):
        truth, found = table[name].to_numpy().clip(0, upper), published[name].to_numpy()
        assert 0 <= found.min() <= found.max() <= upper
        assert (found != truth).any()
        assert np.corrcoef(found, truth)[0, 1] > 0.67  # at least 0.71, standard error 0.005
    assert release.data.rows == 10_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["release"]
    package = json.loads((out / "datapackage.json").read_bytes())
    assert package["resources"][0]["path"] == ["data.parquet/part-00000.parquet"]


def test_the_folder_has_the_documents_of_one_machine(frame, table, tmp_path):
    """The same files, and receipts that differ only where the draws, the time and the data do."""
    publish(frame, tmp_path / "many")
    tv.privatize(table, **OPTIONS, out=tmp_path / "one", format="parquet")
    assert sorted(os.listdir(tmp_path / "many")) == sorted(os.listdir(tmp_path / "one"))
    many, one = (
        json.loads((tmp_path / name / "receipt.json").read_bytes()) for name in ("many", "one")
    )
    assert many.keys() == one.keys()
    own = many["table"].pop("parts"), many["table"].pop("row_order"), one["table"].pop("row_order")
    assert own == (1, "that of the partitions of the input", "that of the input")
    assert many["table"].pop("kind") == "parquet"
    one["table"].pop("kind")
    assert many["table"] == one["table"]
    for here, there in zip(many["columns"], one["columns"], strict=True):
        assert here.keys() == there.keys()
        for key in ("name", "upper", "method", "epsilon", "stages"):
            assert here[key] == there[key]


def test_rows_are_cut_into_parts_by_their_number_alone(frame, tmp_path, monkeypatch):
    """The files do not tell how the rows were spread."""
    monkeypatch.setattr(distributed, "PART_ROWS", 1024)
    out = tmp_path / "release"
    publish(frame, out)
    assert failures(out) == []
    sizes = [pq.read_metadata(file).num_rows for file in sorted((out / "data.parquet").iterdir())]
    assert sizes == [1024] * 9 + [10_000 - 9 * 1024]


def test_what_is_published_is_what_was_matched(frame, table, tmp_path):
    """Counts have exactly the histogram of the receipt, and a larger draw never a smaller count."""
    release = publish(frame, tmp_path / "release", count="cases", upper=40, drop=["note", "deaths"])
    (column,) = release.receipt.columns
    published = read(tmp_path / "release")["cases"].to_numpy()
    counted = np.bincount(published, minlength=41)
    assert np.array_equal(counted, column.histogram.spread_out(41))
    matching = column.matching
    assert matching.is_of(column.histogram)
    lowest, highest = matching.find_range(np.arange(41), np.arange(41))
    assert (highest[:-1] <= lowest[1:]).all() or (np.diff(lowest) >= 0).all()
    assert isinstance(release.figures[0].accuracy.to_dict(), dict)


def test_tasks_that_run_twice_change_nothing(table, tmp_path, make_frame):
    """Parts are the same bytes whoever writes them; of two draws one is committed."""
    parts = [table.slice(start, 2500) for start in range(0, 10_000, 2500)]
    frame = make_frame(parts, repeats={0, 2})
    out = tmp_path / "release"
    publish(frame, out)
    assert failures(out) == []
    assert read(out)["id"].to_pylist() == list(range(10_000))


def test_the_ledger_is_debited_once_and_before_anything_is_drawn(frame, tmp_path, monkeypatch):
    ledger = tv.Ledger.create(tmp_path / "budget.db")
    ledger.open("wards", epsilon=10)
    steps = []
    options = ReleaseOptions(**OPTIONS, out=tmp_path / "release", ledger=ledger, dataset="wards")

    def stage(self, *given):
        steps.append(ledger.account("wards").spent_epsilon)
        return staged(self, *given)

    staged = engine.SparkTable.stage
    monkeypatch.setattr(engine.SparkTable, "stage", stage)
    publish_table(frame, options, command="test")
    assert steps == [2]
    assert ledger.account("wards").spent_epsilon == 2


def test_out_is_needed(frame):
    with pytest.raises(ArgumentError, match="'out'"):
        spark.privatize(frame, **OPTIONS)


@pytest.mark.parametrize("out", ["hdfs://a/b", "file:///tmp/x", "s3a://a/b", "DBFS:/x"])
@pytest.mark.parametrize("kind", [str, Path])
def test_an_address_is_no_release_folder(tmp_path, monkeypatch, out, kind):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match="'out' must be a path under which all machines see"):
        publish("not-opened.parquet", kind(out))
    assert not any(tmp_path.iterdir())


def _refuse_to_open(_):
    raise AssertionError("Spark was started")


def test_what_needs_no_table_is_refused_before_spark_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(spark, "open_frame", _refuse_to_open)
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("wards", epsilon=1)
    with pytest.raises(AssertionError, match="Spark was started"):
        publish("x.parquet", tmp_path / "release", ledger=book, dataset="wards")
    with pytest.raises(LedgerError, match="no-such"):
        publish("x.parquet", tmp_path / "release", ledger=tmp_path / "no-such.db", dataset="wards")
    with pytest.raises(LedgerError, match="others"):
        publish("x.parquet", tmp_path / "release", ledger=book, dataset="others")
    with pytest.raises(PackageError, match="exists already"):
        publish("x.parquet", tmp_path)
    with pytest.raises(ArgumentError, match="epsilon"):
        publish("x.parquet", tmp_path / "release", epsilon=-1)


def test_a_dry_run_needs_no_folder_and_no_spark(monkeypatch):
    monkeypatch.setattr(spark, "open_frame", _refuse_to_open)
    words = ["privatize", "x.parquet", "--engine", "spark", "--count", "cases", "--keep", "all"]
    words += ["--upper", "9", "--epsilon", "1"]
    done = CliRunner().invoke(app, [*words, "--dry-run", "--rows", "1000"])
    assert done.exit_code == 0, done.output
    assert "Dry run" in done.output
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, ArgumentError)
    assert "'out'" in str(done.exception)


def test_the_command_tells_paths_names_and_addresses_apart(tmp_path, monkeypatch):
    """An address that is taken for a path loses a stroke, and a name of a table is no path."""
    given = []
    monkeypatch.setattr(spark, "open_frame", given.append)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wards").mkdir()
    words = ["--engine", "spark", "--count", "cases", "--keep", "all", "--upper", "9"]
    words += ["--epsilon", "1", "--out", "release"]
    for source in (["wards"], ["db.wards"], ["--from", "s3a://a/b"]):
        CliRunner().invoke(app, ["privatize", *source, *words])
    assert given == [Path("wards"), "db.wards", "s3a://a/b"]
    done = CliRunner().invoke(app, ["privatize", "s3a://a/b", *words])
    assert "with --from" in str(done.exception)
    assert len(given) == 3


@pytest.mark.parametrize("name", ["", "probe-elsewhere"])
def test_a_folder_where_executors_cannot_draw_costs_nothing(frame, tmp_path, monkeypatch, name):
    """They saw where rows are kept, and cannot write under the name of the release."""

    def run(self, batches, _):
        for _number in spark_tasks.list_numbers(batches):
            yield {"result": pickle.dumps(name)}

    monkeypatch.setattr(spark_tasks.WriteFile, "run", run)
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("wards", epsilon=9)
    with pytest.raises(UsageError, match="executors do not see"):
        publish(frame, tmp_path / "release", ledger=book, dataset="wards")
    assert book.account("wards").spent_epsilon == 0
    assert [path.name for path in tmp_path.iterdir()] == ["budget.db"]


def test_a_file_that_is_no_parquet_is_named_and_not_quoted(frame, files, tmp_path, monkeypatch):
    """Spark would quote its last bytes."""
    files[1].write_bytes(b"name,cases\nAnna,7")
    monkeypatch.setattr(spark_jobs, "list_files", lambda *_: files)
    with pytest.raises(TableError, match=r"cannot read '.*1\.parquet' as Parquet\.$"):
        publish(frame, tmp_path / "release")
    spark_jobs.require_parquet([files[0], tmp_path / "not there"])
    files[1].write_bytes(b"7")
    with pytest.raises(TableError, match="as Parquet"):
        spark_jobs.require_parquet(files)
    files[1].write_bytes(b"")
    with pytest.raises(TableError, match="as Parquet"):
        spark_jobs.require_parquet(files)


def test_files_on_the_way_are_for_their_owner_only(frame, tmp_path):
    """Every file beside the release, while it is made, is in a folder that only its owner opens."""
    seen = []

    def look(step):
        if step in ("drawing", "packing"):
            tops = [path for path in tmp_path.iterdir() if path.name != "release"]
            seen.extend(path.stat().st_mode & 0o777 for path in tops)
            inner = [p for top in tops for p in top.rglob("*") if p.is_file()]
            seen.extend(p.stat().st_mode & 0o777 for p in inner if p.name != "reserve")

    options = ReleaseOptions(**OPTIONS, out=tmp_path / "release")
    publish_table(frame, options, command="test", say=look)
    assert set(seen) == {0o700, 0o600}


def test_inspect_shows_the_columns_of_a_folder_of_parts(frame, tmp_path, monkeypatch):
    monkeypatch.setattr(distributed, "PART_ROWS", 4000)
    publish(frame, tmp_path / "release")
    data = tmp_path / "release" / "data.parquet"
    assert len(list(data.iterdir())) == 3
    done = CliRunner().invoke(app, ["inspect", str(data)])
    assert done.exit_code == 0, done.output
    assert f"{data}: parquet, 10,000 rows, 4 columns" in done.output.replace("\n", "")
    done = CliRunner().invoke(app, ["inspect", str(data), "--json"])
    found = json.loads(done.output)
    assert found["rows"] == 10_000
    assert [column["name"] for column in found["columns"]] == ["id", "ward", "cases", "deaths"]
    with pytest.raises(TableError, match="a folder without Parquet files"):
        describe_parts(tmp_path)
    pq.write_table(pa.table({"other": [1]}), data / "part-00003.parquet")
    with pytest.raises(TableError, match="different columns"):
        describe_parts(data)
    (data / "part-00003.parquet").write_bytes(b"Anna")
    with pytest.raises(TableError, match="cannot be read as Parquet"):
        describe_parts(data)


@pytest.mark.parametrize(
    "broken",
    [
        ("cases", -1, "a negative number"),
        ("cases", None, "no value"),
        ("deaths", 1.5, "a fraction"),
    ],
)
def test_rows_without_a_count_are_refused_without_quoting_them(table, tmp_path, make_frame, broken):
    column, value, words = broken
    values = table[column].to_pylist()
    values[7000] = value
    at = table.column_names.index(column)
    spoilt = table.set_column(at, column, pa.array(values))
    frame = make_frame([spoilt.slice(0, 5000), spoilt.slice(5000)])
    with pytest.raises(TableError, match=f"{column}.*A row holds {words}"):
        publish(frame, tmp_path / "release")
    assert not any(tmp_path.iterdir())


def test_equal_labels_are_found_across_partitions(table, tmp_path, monkeypatch, make_frame):
    monkeypatch.setattr(engine, "BUCKET_BYTES", 10_000)
    frame = make_frame([table.slice(0, 5000), table.slice(4999)])
    with pytest.raises(TableError, match=r"A row repeats the category .*\(id, ward\)"):
        publish(frame, tmp_path / "release")
    publish(frame, tmp_path / "release", allow_duplicates=True)
    assert failures(tmp_path / "release") == []


def test_equal_hashes_of_different_labels_are_no_repeat(frame, tmp_path, monkeypatch):
    whole = spark_tasks.hash_rows
    for module in (spark_tasks, spark_staging):
        monkeypatch.setattr(
            module, "hash_rows", lambda table, names: whole(table, names) >> np.uint64(52)
        )
    assert publish(frame, tmp_path / "release").data.rows == 10_000


@pytest.mark.parametrize("repeated_at_last", [False, True])
def test_rows_are_compared_as_the_attempt_that_counts_saw_them(
    table, tmp_path, make_frame, monkeypatch, repeated_at_last
):
    """A repeated task may see other rows: those that are compared are those that are published."""
    once, attempts = spark_tasks.Survey._work, []

    def work(self, batches, kept):
        attempts.append(kept.name)
        rows = list(batches)
        if (len(attempts) == 2) == repeated_at_last:
            rows.append(rows[0])
        return once(self, rows, kept)

    monkeypatch.setattr(spark_tasks.Survey, "_work", work)
    frame = make_frame([table], repeats=[0])
    if repeated_at_last:
        with pytest.raises(TableError, match="A row repeats the category"):
            publish(frame, tmp_path / "release")
        assert not any(tmp_path.iterdir())
    else:
        assert publish(frame, tmp_path / "release").data.rows == len(table)
    assert len(attempts) == 2


def test_hashes_that_are_lost_or_changed_are_noticed(frame, tmp_path, monkeypatch):
    def lose(self, buckets):
        whole(self, buckets[:-1])

    whole = spark_files.KeptRows.add_hashes
    monkeypatch.setattr(spark_files.KeptRows, "add_hashes", lose)
    with pytest.raises(Exception, match="A task of Tallyveil stopped"):
        publish(frame, tmp_path / "release")
    assert not any(tmp_path.iterdir())


def test_a_task_leaves_no_zip_file_to_be_read_again_by_the_next(tmp_path, monkeypatch):
    """Spark lets Python look for new modules before every task: each costs a reading of the zip."""
    with zipfile.ZipFile(tmp_path / "some.zip", "w") as file:
        file.writestr("zipped_module.py", "number = 7")
    monkeypatch.syspath_prepend(str(tmp_path / "some.zip"))
    import zipped_module

    held = [key for key in sys.path_importer_cache if key.startswith(str(tmp_path))]
    assert held
    list(spark_tasks.FindRepeats((), None)(iter([])))
    assert not any(key in sys.path_importer_cache for key in held)
    assert importlib.reload(zipped_module).number == 7


def test_rows_in_the_order_of_their_counts_are_remarked_on(table, tmp_path, make_frame):
    ordered = table.sort_by("cases")
    frame = make_frame([ordered.slice(5000), ordered.slice(0, 5000)])
    with pytest.warns(UserWarning, match="in the order of 'cases'"):
        publish(frame, tmp_path / "release")


def test_rows_called_total_are_asked_about(table, tmp_path, make_frame):
    wards = table["ward"].to_pylist()
    wards[6000] = "Total"
    asked = table.set_column(1, "ward", pa.array(wards))
    frame = make_frame([asked.slice(0, 5000), asked.slice(5000)])
    with pytest.raises(TableError, match="'Total'"):
        publish(frame, tmp_path / "release")
    publish(frame, tmp_path / "release", allow_totals=True)


def test_the_rows_that_are_drawn_are_those_that_were_checked(frame, table, tmp_path):
    """A table that changes after it was looked at is not looked at again."""

    def change(step):
        if step == "drawing":
            frame.partitions[:] = []

    options = ReleaseOptions(**OPTIONS, out=tmp_path / "release")
    publish_table(frame, options, command="test", say=change)
    assert failures(tmp_path / "release") == []
    assert read(tmp_path / "release")["ward"].to_pylist() == table["ward"].to_pylist()
    assert [path.name for path in tmp_path.iterdir()] == ["release"]


def _lose_files(self, batches):
    return replace(look(self, batches), file="rows-elsewhere")


look = spark_tasks.Survey._look


def _find_no_room(*_):
    raise OSError


@pytest.mark.parametrize(
    "spoil",
    [
        (spark_tasks.Survey, "_look", _lose_files),
        (spark_tasks.KeptRows, "create", _find_no_room),
        (spark_tasks.KeptRows, "add", _find_no_room),
    ],
)
def test_a_folder_that_executors_do_not_see_costs_nothing(frame, tmp_path, monkeypatch, spoil):
    monkeypatch.setattr(*spoil)
    with pytest.raises(UsageError, match="executors do not see"):
        publish(frame, tmp_path / "release")
    assert not any(tmp_path.iterdir())


def test_executors_must_run_this_program(frame, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "fingerprint", lambda: "another")
    with pytest.raises(UsageError, match="another version"):
        publish(frame, tmp_path / "release")
    assert not any(tmp_path.iterdir())


def test_draws_on_disk_are_private_and_encrypted(frame, tmp_path):
    """While rows are staged nobody else may look, and nobody can read them."""
    seen = {}

    def look(step):
        if step == "packing":
            (private,) = tmp_path.glob(".release.draws")
            seen["mode"] = private.stat().st_mode & 0o777
            seen["bytes"] = b"".join(p.read_bytes() for p in private.rglob("*") if p.is_file())

    options = ReleaseOptions(**OPTIONS, out=tmp_path / "release")
    publish_table(frame, options, command="test", say=look)
    assert seen["mode"] == 0o700
    assert len(seen["bytes"]) > 10_000 * 8
    assert b"ward 77" not in seen["bytes"]


def test_what_a_killed_run_left_is_removed_by_the_next(frame, tmp_path):
    left = tmp_path / ".release.draws" / "rows"
    left.mkdir(parents=True)
    (left / "part-00000.parquet").write_bytes(b"old draws")
    publish(frame, tmp_path / "release")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["release"]


def _add(folder):
    (folder / "part-00002.parquet").write_bytes((folder / "part-00001.parquet").read_bytes())


def _take(folder):
    (folder / "part-00001.parquet").unlink()


def _swap(folder):
    one, two = folder / "part-00000.parquet", folder / "part-00001.parquet"
    content = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(content)


def _nest(folder):
    (folder / "more").mkdir()


def _change(folder):
    part = folder / "part-00001.parquet"
    table = pq.read_table(part)
    counts = table["cases"].to_numpy().copy()
    counts[0] += 1
    pq.write_table(table.set_column(2, "cases", pa.array(counts)), part)


@pytest.mark.parametrize("spoil", [_add, _take, _swap, _nest, _change])
def test_check_notices_every_change_of_the_parts(frame, tmp_path, monkeypatch, spoil):
    monkeypatch.setattr(distributed, "PART_ROWS", 5000)
    out = tmp_path / "release"
    publish(frame, out)
    assert failures(out) == []
    spoil(out / "data.parquet")
    assert failures(out)


@pytest.mark.parametrize("spoil", [_take, _change])
def test_new_checksums_do_not_hide_a_change(frame, tmp_path, monkeypatch, spoil):
    import hashlib

    monkeypatch.setattr(distributed, "PART_ROWS", 5000)
    out = tmp_path / "release"
    publish(frame, out)
    spoil(out / "data.parquet")
    sums = out / "SHA256SUMS"
    sums.unlink()
    names = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    lines = (f"{hashlib.sha256((out / name).read_bytes()).hexdigest()}  {name}\n" for name in names)
    sums.write_text("".join(lines))
    assert {found.name for found in failures(out)} >= {"published counts", "data description"}


def test_a_folder_in_place_of_one_file_is_noticed(table, tmp_path):
    out = tmp_path / "release"
    tv.privatize(table, **OPTIONS, out=out, format="parquet")
    content = (out / "data.parquet").read_bytes()
    (out / "data.parquet").unlink()
    (out / "data.parquet").mkdir()
    (out / "data.parquet" / "part-00000.parquet").write_bytes(content)
    assert "data description" in {found.name for found in failures(out)}
    shutil.rmtree(out)


def test_preserve_keeps_its_share_for_the_distribution(frame, tmp_path):
    release = publish(frame, tmp_path / "release", method="preserve")
    for column in release.receipt.columns:
        assert [stage.kind for stage in column.stages] == ["distribution", "counts"]
        assert sum(stage.epsilon for stage in column.stages) == 1


def test_nothing_but_draws_tells_two_neighbours_apart(table, tmp_path, make_frame, monkeypatch):
    """With draws and noise held fixed, two tables that differ by one person give one folder."""

    def draw(self, counts, _):
        rows = len(counts)
        drawn = (np.arange(rows) * 7 % (self.upper + 1)).astype(np.uint8)
        numbers = np.arange(rows, dtype=np.uint64) + np.uint64(1)
        words = SimpleNamespace(words=lambda _: numbers * np.uint64(0x9E3779B97F4A7C15))
        return [self._rank(drawn, words)]

    monkeypatch.setattr(apart._Column, "draw", draw)
    monkeypatch.setattr(apart, "noisy_cumulative", lambda h, *_: np.arange(1, len(h)) * 200)
    counts = table["cases"].to_numpy().copy()
    counts[np.flatnonzero(counts < 40)[5]] += 1
    pair = table, table.set_column(2, "cases", pa.array(counts))
    folders = []
    for number, one in enumerate(pair):
        out = tmp_path / str(number)
        publish(make_frame([one.slice(0, 3000), one.slice(3000)]), out)
        assert failures(out) == []
        files = {p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.is_file()}
        receipt = json.loads(files.pop(Path("receipt.json")))
        receipt = {k: v for k, v in receipt.items() if k not in ("release", "created")}
        data = {name: content for name, content in files.items() if name.suffix == ".parquet"}
        folders.append((sorted(files), data, receipt))
    assert folders[0] == folders[1]


def test_a_missing_library_is_named(monkeypatch):
    import sys

    from tallyveil.errors import MissingExtraError

    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingExtraError, match="extra 'spark'"):
        spark.privatize("cases.parquet", count="cases", upper=9, epsilon=1, keep="all", out="x")


@pytest.fixture
def files(table, tmp_path):
    """The table in two Parquet files, in groups of a few rows."""
    folder = tmp_path / "table"
    folder.mkdir()
    for number, (start, stop) in enumerate(((0, 3000), (3000, 10_000))):
        part = table.slice(start, stop - start)
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=1000)
    return sorted(folder.iterdir())


def test_plain_files_are_read_by_the_tasks_themselves(
    make_frame, table, files, tmp_path, monkeypatch
):
    monkeypatch.setattr(spark_parquet, "PIECE_ROWS", 2000)
    monkeypatch.setattr(spark_jobs, "list_files", lambda *_: files)
    out = tmp_path / "release"
    publish(make_frame([table.slice(0, 0)]), out)
    assert failures(out) == []
    published = read(out)
    assert published["id"].to_pylist() == table["id"].to_pylist()
    assert published["ward"].to_pylist() == table["ward"].to_pylist()
    assert np.corrcoef(published["cases"], table["cases"].to_numpy().clip(0, 40))[0, 1] > 0.7


def test_pieces_have_every_group_of_rows_once(files, table, monkeypatch):
    monkeypatch.setattr(spark_parquet, "PIECE_ROWS", 2000)
    pieces = spark_parquet.cut_files(files, table.select(["id", "cases"]).schema)
    assert [(Path(p.path).name[0], p.first, p.last, p.rows) for p in pieces] == [
        ("0", 0, 2, 2000),
        ("0", 2, 3, 1000),
        *(("1", at, at + 2, 2000) for at in (0, 2, 4)),
        ("1", 6, 7, 1000),
    ]


@pytest.mark.parametrize(
    "other",
    [
        {"id": pa.array([1], pa.uint32())},
        {"id": pa.array([1], pa.int32())},
        {"ID": pa.array([1], pa.int64())},
        {"id": pa.array(["a"]).dictionary_encode()},
    ],
    ids=["unsigned", "narrow", "another name", "categories"],
)
def test_files_that_spark_may_read_otherwise_are_left_to_it(files, other):
    """Other widths, signs, cases of names and dictionaries."""
    pq.write_table(pa.table(other), files[0])
    assert spark_parquet.cut_files(files, pa.schema([("id", pa.int64())])) is None


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.date32(), pa.decimal128(9, 2), pa.uint8()])
def test_types_that_are_not_read_alike_are_left_to_spark(files, kind):
    assert spark_parquet.cut_files(files, pa.schema([("id", kind)])) is None


def test_files_that_executors_do_not_see_are_read_by_spark(
    frame, files, table, tmp_path, monkeypatch
):
    monkeypatch.setattr(spark_jobs, "list_files", lambda *_: files)
    cut = engine.cut_files

    def cut_and_hide(*given):
        pieces = cut(*given)
        return tuple(replace(piece, path=f"{piece.path}-elsewhere") for piece in pieces)

    monkeypatch.setattr(engine, "cut_files", cut_and_hide)
    publish(frame, tmp_path / "release")
    assert read(tmp_path / "release")["id"].to_pylist() == table["id"].to_pylist()


def test_tasks_on_this_machine_have_this_python(monkeypatch):
    """Spark takes any python3 of the path, which need not have Tallyveil."""
    import pyspark
    from pyspark.sql import SparkSession

    found = []
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setattr(
        SparkSession.Builder,
        "getOrCreate",
        lambda _: found.append(os.environ.get("PYSPARK_PYTHON")),
    )
    for master in ("local[2]", None, "spark://elsewhere:7077"):
        conf = SimpleNamespace(get=lambda _, master=master: master)
        monkeypatch.setattr(pyspark, "SparkConf", lambda conf=conf: conf)
        spark_jobs._start()
    monkeypatch.setenv("PYSPARK_PYTHON", "chosen")
    spark_jobs._start()
    assert found == [sys.executable, sys.executable, None, "chosen"]
    assert os.environ["PYSPARK_PYTHON"] == "chosen"


def test_executors_without_the_program_are_said_to_be_that(frame, tmp_path):
    from pyspark.errors import PySparkException

    def fail(*_):
        raise PySparkException("... ModuleNotFoundError: No module named 'tallyveil' ...")

    frame.toDF = fail
    with pytest.raises(UsageError, match="executors has no Tallyveil: install this version"):
        publish(frame, tmp_path / "release")
    assert not any(tmp_path.iterdir())
