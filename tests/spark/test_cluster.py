"""The same on a real standalone cluster: a master and two workers, whose executors may die."""

import tempfile
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import chi2
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil import spark
from tallyveil.check.package import check_package
from tallyveil.cli.app import app
from tallyveil.errors import TableError
from tallyveil.publish.reopen import read_receipt
from tallyveil.publish.transaction import publish_table
from tallyveil.request.options import ReleaseOptions
from tallyveil.tables import spark_jobs, spark_staging

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.usefixtures("collect_sockets"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Spark leaves sockets to the collector
]

SECRET = "Anna-Schmidt"
ROWS, FILES, UPPER, PARTITIONS = 100_000, 6, 40, 16
OPTIONS = {
    "count": "cases",
    "keep": ["id", "ward"],
    "drop": "note",
    "upper": UPPER,
    "epsilon": 1,
}


def make_table(start, stop, seed):
    random = np.random.default_rng(seed)
    rows = stop - start
    return pa.table(
        {
            "id": np.arange(start, stop),
            "ward": [f"ward {number}" for number in range(start, stop)],
            "cases": np.minimum(random.geometric(0.15, rows) - 1, 50),
            "note": [f"{SECRET} {number}" for number in range(rows)],
        }
    )


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    """A folder of files of different sizes, and its true counts by id."""
    folder = tmp_path_factory.mktemp("table") / "wards.parquet"
    folder.mkdir()
    cuts = np.linspace(0, 1, FILES + 1) ** 1.5 * ROWS
    truth = []
    for number in range(FILES):
        table = make_table(int(cuts[number]), int(cuts[number + 1]), number)
        pq.write_table(table, folder / f"{number}.parquet")
        truth.append(table["cases"].to_numpy())
    return folder, np.concatenate(truth).clip(0, UPPER)


def read(out):
    data = out / "data.parquet"
    files = sorted(data.iterdir()) if data.is_dir() else [data]
    return pa.concat_tables([pq.read_table(file) for file in files])


def failures(out):
    return [found for found in check_package(out) if not found.ok]


@pytest.fixture(scope="module")
def released(session, parquet, tmp_path_factory):
    """A release with the default method, by the command line, and its ledger."""
    folder, _ = parquet
    root = tmp_path_factory.mktemp("released")
    book = tv.Ledger.create(root / "budget.db")
    book.open("wards", epsilon=1)
    words = ["privatize", str(folder), "--engine", "spark", "--count", "cases", "--keep", "id"]
    words += ["--keep", "ward", "--drop", "note", "--upper", str(UPPER), "--epsilon", "1"]
    words += ["--ledger", str(root / "budget.db"), "--dataset", "wards", "--out"]
    done = CliRunner().invoke(app, [*words, str(root / "release")])
    assert done.exit_code == 0, done.output
    again = CliRunner().invoke(app, [*words, str(root / "again")])
    assert again.exit_code != 0
    assert sorted(path.name for path in root.iterdir()) == ["budget.db", "release"]
    return root / "release", book


def test_a_release_by_the_command_line_is_whole(released, parquet):
    out, book = released
    assert failures(out) == []
    assert book.account("wards").spent_epsilon == 1
    published, truth = read(out), parquet[1]
    assert sorted(published["id"].to_pylist()) == list(range(ROWS))
    found = published["cases"].to_numpy()[np.argsort(published["id"].to_numpy())]
    assert 0.7 < np.corrcoef(found, truth)[0, 1] < 0.999


def test_spark_is_told_nothing(cluster, released):
    """No event and no log of an executor has a row in it, or a key."""
    files = (*cluster.events.rglob("*"), *cluster.root.rglob("std*"), *cluster.root.glob("*.log"))
    said = "".join(path.read_text(errors="replace") for path in files if path.is_file())
    assert "tallyveil_task" in said
    assert SECRET not in said
    assert "ward 77" not in said
    assert "Entropy" not in said


def test_spark_keeps_no_key_on_disk(cluster, session, tmp_path):
    """What Spark hands to tasks, or gets from them, is written to disks where it is large."""
    words = "id", "cast(id * 7 as long) as cases"
    frame = session.range(0, 90_000, 1, 2).selectExpr(*words)
    seen, counted = [], []

    def look(step):
        if step == "packing":
            places = [*cluster.root.rglob("*"), *Path(tempfile.gettempdir()).glob("spark-*/**/*")]
            held = [path.read_bytes() for path in places if path.is_file()]
            counted.append(len(held))
            assert not any(seen[0].tasks.seal.key in content for content in held)

    asked = {"count": "cases", "keep": "id", "upper": None, "epsilon": 1, "method": "preserve"}
    options = ReleaseOptions(**asked, out=tmp_path / "release")
    publish_table(frame, options, command="test", say=look, remark=seen.append)
    look("packing")
    assert min(counted) > 0
    assert failures(tmp_path / "release") == []


def test_files_that_are_named_twice_are_read_twice(session, parquet, tmp_path):
    file = sorted(parquet[0].iterdir())[0]
    frame = session.read.parquet(str(file), str(file))
    assert spark_jobs.list_files(frame, frame.columns) == []
    out = tmp_path / "release"
    spark.privatize(frame, **OPTIONS, allow_duplicates=True, out=out)
    assert read(out).num_rows == 2 * pq.read_metadata(file).num_rows


def test_what_is_nothing_but_files_is_told_from_what_is_not(session, parquet):
    """Expressions, filters, limits, partitions and cached rows are Spark's to read."""
    folder, _ = parquet
    frame = session.read.parquet(str(folder))
    plain = sorted(folder.iterdir())

    def list_files(frame):
        return spark_jobs.list_files(frame, frame.columns)

    assert list_files(frame) == plain
    assert list_files(frame.select("id", "cases")) == plain
    assert spark_jobs.list_files(frame.withColumn("more", frame["id"] + 1), ["id"]) == plain
    others = [
        frame.where("id < 5"),
        frame.limit(5),
        frame.selectExpr("id", "cases + 1 as cases"),
        frame.withColumnRenamed("cases", "counts"),
        frame.union(frame),
        frame.distinct(),
        frame.orderBy("id"),
        session.range(5).selectExpr("id", "id as cases"),
    ]
    assert [list_files(other) for other in others] == [[]] * len(others)
    cached = frame.select("id").cache()
    assert list_files(cached) == []
    cached.unpersist()
    split = folder.parent / "split"
    session.range(4).selectExpr("id", "id % 2 as half").write.partitionBy("half").parquet(
        str(split)
    )
    assert list_files(session.read.parquet(str(split))) == []


def test_draws_have_the_certified_distribution(session, parquet, tmp_path):
    """Geometric draws of the cluster against the mechanism, by true count.

    Pearson's statistic over the cells (true, published) at the level 1e-4. A mechanism for epsilon
    1.05 in place of 1 has a noncentrality of 237 on 252 degrees of freedom: power 0.9999.
    """
    folder, truth = parquet
    out = tmp_path / "release"
    frame = session.read.parquet(str(folder))
    release = spark.privatize(frame, **OPTIONS, method="geometric", out=out)
    assert failures(out) == []
    assert release.table.count() == ROWS
    published = read(out)
    drawn = published["cases"].to_numpy()[np.argsort(published["id"].to_numpy())]
    statistic, freedom = compare(truth, drawn, 1)
    assert statistic < chi2.ppf(1 - 1e-4, freedom)
    wrong, freedom = compare(truth, drawn, 1.05)
    assert wrong > chi2.ppf(1 - 1e-4, freedom), "the test has no power"


def compare(truth, drawn, epsilon):
    """Pearson's statistic and its degrees of freedom; cells of fewer than 5 rows are one."""
    rows = np.bincount(truth, minlength=UPPER + 1)
    matrix = tv.geometric(tv.Query.count(UPPER), epsilon=epsilon).matrix
    expected = (rows[:, None] * matrix).ravel()
    observed = np.bincount(truth * (UPPER + 1) + drawn, minlength=(UPPER + 1) ** 2)
    large = expected >= 5
    expected = np.append(expected[large], expected[~large].sum())
    observed = np.append(observed[large], observed[~large].sum())
    return ((observed - expected) ** 2 / expected).sum(), len(expected) - 1 - len(np.unique(truth))


def test_ties_are_broken_without_regard_to_place(session, tmp_path):
    """All rows have one true count: neither partition nor position tells what they are given.

    Pearson's statistic of (eighth of the table) x (published count) at the level 1e-4. Each eighth
    has 12,500 rows: 3 % of one of them moved by one count is a noncentrality of 60 or more on 63
    degrees of freedom, found with power 0.9.
    """
    rows = 100_000
    frame = session.range(0, rows, 1, 4).selectExpr("id", "cast(3 as long) as cases")
    out = tmp_path / "release"
    spark.privatize(frame, count="cases", keep="id", upper=9, epsilon=1, method="preserve", out=out)
    published = read(out)
    eighth = published["id"].to_numpy() * 8 // rows
    table = np.bincount(eighth * 10 + published["cases"].to_numpy(), minlength=80).reshape(8, 10)
    table = table[:, table.sum(axis=0) >= 100]
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / rows
    statistic = ((table - expected) ** 2 / expected).sum()
    assert statistic < chi2.ppf(1 - 1e-4, 7 * max(table.shape[1] - 1, 1))


def test_preserve_gives_what_one_machine_gives(released, parquet):
    """The published distribution is one that a single machine could have given.

    Its cumulative sums are compared with those of 12 releases of one machine, in their standard
    deviations; a t of 11 degrees of freedom passes 8 with a chance of 1e-5, and an error of 11
    deviations is found with power above 0.99.
    """
    out, truth = released[0], parquet[1]
    (column,) = read_receipt(out).columns
    many = np.cumsum(column.histogram.spread_out(UPPER + 1)) / ROWS
    options = {"upper": UPPER, "epsilon": 1, "method": "preserve"}
    ones = [tv.privatize(truth, **options) for _ in range(12)]
    sums = np.array([np.cumsum(one.distribution) for one in ones])
    spread = sums.std(axis=0, ddof=1)[:-1]
    assert (spread > 0).all()
    assert (np.abs(many - sums.mean(axis=0))[:-1] / spread).max() < 8 * np.sqrt(1 + 1 / 12)
    stages = [stage.sha256 for stage in column.stages]
    assert stages == [stage.sha256 for stage in ones[0].receipt.columns[0].stages]


def test_what_is_refused_costs_nothing_and_quotes_nothing(session, released, parquet, tmp_path):
    frame, book = session.read.parquet(str(parquet[0])), released[1]
    asked = {**OPTIONS, "ledger": book, "dataset": "wards", "out": tmp_path / "three"}
    before = len(book.history())
    with pytest.raises(TableError, match="repeats the category"):
        spark.privatize(frame.union(frame.where("id between 7 and 9")), **asked)
    with pytest.raises(TableError, match="other rows whenever"):
        spark.privatize(frame.selectExpr("id", "ward", "note", "cases + rand() as cases"), **asked)
    with pytest.raises(TableError, match="A row holds a negative number"):
        spark.privatize(frame.selectExpr("id", "ward", "note", "cases - 1 as cases"), **asked)
    failing = frame.limit(10).selectExpr("id", "ward", "note", "cast(note as long) as cases")
    with pytest.raises(TableError, match="may quote data") as refused:
        spark.privatize(failing, **asked)
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None
    with pytest.raises(TableError, match="Spark cannot read"):
        spark.privatize("no_such_table", **asked)
    assert len(book.history()) == before
    assert not any(tmp_path.iterdir())


class Killer:
    """Kills executors whenever one of them has drawn rows that are not committed yet."""

    def __init__(self, cluster, most):
        self.cluster, self.most, self.kills = cluster, most, 0
        self.prepared = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._work)

    def count_files(self):
        return len(list(self.prepared[0].tasks.folder.glob("draws-*")))

    def _work(self):
        seen = 0
        while not self.stop.wait(0.02) and self.kills < self.most:
            if self.count_files() > seen:
                self.kills += self.cluster.kill_executors()
                seen = self.count_files()

    def say(self, step):
        if step == "drawing":
            self.thread.start()
        if step == "packing":
            self.stop.set()
            self.thread.join()


def release_with_kills(cluster, frame, out, most):
    """Release a table while executors die: rows staged by id, files with draws, and kills."""
    killer, staged, files = Killer(cluster, most), Counter(), []

    def say(step):
        killer.say(step)
        if step == "packing":
            files.append(killer.count_files())
            for file in killer.prepared[0].tasks.staged.files:
                for labels, batch in zip(file.read_labels(), file.read_draws(), strict=True):
                    ((drawn, words),) = batch
                    assert len(drawn) == len(words) == labels.num_rows
                    staged.update(labels["id"].to_pylist())

    options = ReleaseOptions(**OPTIONS, allow_duplicates=True, out=out)
    publish_table(frame, options, command="test", say=say, remark=killer.prepared.append)
    return staged, files[0], killer.kills


def make_slow_draw():
    """The task that draws, with a pause between the draws of a partition and their commit."""

    class SlowDraw(spark_staging.Draw):
        def run(self, batches, partition):
            import time

            for row in draw.run(self, batches, partition):
                time.sleep(0.4)
                yield row

    draw = spark_staging.Draw
    return SlowDraw


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_every_row_has_one_draw_though_executors_die(
    cluster, session, tmp_path, monkeypatch, kills
):
    monkeypatch.setattr(spark_staging, "Draw", make_slow_draw())
    words = "id", "concat('ward ', id) as ward", "cast(id % 9 as long) as cases", "'' as note"
    frame = session.range(0, ROWS, 1, PARTITIONS).selectExpr(*words)
    out = tmp_path / "release"
    staged, files, killed = release_with_kills(cluster, frame, out, kills)
    assert killed >= kills
    assert files > PARTITIONS, "no attempt died after it had drawn: the test proves nothing"
    assert len(staged) == ROWS
    assert set(staged.values()) == {1}
    assert failures(out) == []
    assert sorted(read(out)["id"].to_pylist()) == list(range(ROWS))


@pytest.mark.parametrize(
    "asked",
    [
        {"upper": None},
        {"upper": None, "method": "geometric", "unbiased": True},
        {"upper": "auto", "upper_epsilon": "0.5", "best": True},
        {"method": "fair"},
        {"order": "sorted"},
    ],
    ids=["open", "unbiased", "private bound", "fair", "brought"],
)
def test_options_of_one_machine_are_taken(session, parquet, tmp_path, asked):
    folder, truth = parquet
    out = tmp_path / "release"
    spark.privatize(session.read.parquet(str(folder)), **(OPTIONS | asked), out=out)
    assert failures(out) == []
    published = read(out)
    found = published["cases"].to_numpy()[np.argsort(published["id"].to_numpy())]
    assert np.abs(found.clip(0, UPPER) - truth).mean() < 3


def test_microdata_are_counted_on_the_cluster(session, tmp_path):
    """At epsilon 10 for each of three rows, one of seven counts is not exact at 6e-4."""
    rows = session.range(0, 40_000, 1, 7).selectExpr(
        "concat('p', id % 9001) as person", "id % 7 as ward", "id % 90 as age"
    )
    asked = {"by": "ward", "categories": list(range(7)), "upper": 9000, "method": "geometric"}
    asked |= {"person": "person", "rows_per_person": 3, "epsilon": 10}
    out = tmp_path / "release"
    spark.privatize(rows, **asked, where="age >= 18", out=out)
    assert failures(out) == []
    numbers = np.arange(40_000)
    persons = np.bincount(numbers[numbers % 90 >= 18] % 9001)
    found = pq.read_table(out / "data.parquet")
    assert found["ward"].to_pylist() == list(range(7))
    assert abs(sum(found["count"].to_pylist()) - np.minimum(persons, 3).sum()) <= 1
