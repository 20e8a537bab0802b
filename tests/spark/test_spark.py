"""Releases from Spark: the guarantee and refusals of one machine, and no trace of counts."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import tallyveil as tv
from tallyveil import spark
from tallyveil.check.package import check_package
from tallyveil.errors import ArgumentError, BudgetError, TableError, UsageError
from tallyveil.release.plan import Rows, open_table
from tallyveil.sampling.entropy import SeededNotPrivate
from tests.asking import join

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]
OPTIONS = {"count": "cases", "upper": 50, "epsilon": 1, "keep": ["id", "ward"]}
RECORDS = {"by": "sex", "categories": ["f", "m"], "upper": 10_000, "epsilon": 1}


def release(frame, out, **keys):
    return spark.privatize(frame, **join(**(OPTIONS | keys), out=out))


METHODS = {
    "auto": {},
    "geometric": {"method": "geometric"},
    "unbiased": {"method": "geometric", "unbiased": True},
    "signed": {"upper": None, "signed": True},
    "wide": {"upper": None},
    "balanced": {"priority": "balanced"},
    "two columns": {"count": ["cases", "deaths"], "upper": [50, 4], "epsilon": [1, 1]},
    "csv": {"format": "csv"},
    "no labels": {"keep": ()},
}


@pytest.mark.parametrize("keys", METHODS.values(), ids=METHODS)
def test_a_release_checks_and_keeps_labels_in_the_order_of_the_files(frame, table, tmp_path, keys):
    made = release(frame, tmp_path / "out", **keys)
    assert all(finding.ok for finding in check_package(tmp_path / "out"))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    released = pq.read_table if made.data.format == "parquet" else csv.read_csv
    released = released(tmp_path / "out" / f"data.{made.data.format}")
    if keys.get("keep") != ():
        assert released.select(["id", "ward"]).equals(table.select(["id", "ward"]))
    errors = released["cases"].to_numpy() - table["cases"].to_numpy()
    assert 0.5 < abs(errors).mean() < 1.5
    here = tv.privatize(table, **join(**(OPTIONS | keys)))
    assert made.receipt.epsilon == here.receipt.epsilon
    assert released.column_names == here.table.column_names
    assert [c.method for c in made.receipt.columns] == [c.method for c in here.receipt.columns]


def test_draws_have_their_certified_distribution_in_every_file(frame, table, tmp_path):
    made = release(frame, tmp_path / "out", upper=None, signed=True)
    noise = made.table["cases"].to_numpy() - table["cases"].to_numpy()
    a = np.exp(-1)
    share = (1 - a) / (1 + a) * a ** abs(np.arange(-6, 7))
    parts = np.split(noise, np.cumsum([500, 3000, 1500]))
    for part in parts:
        drawn = np.array([(part == k).sum() for k in range(-6, 7)])
        assert ((drawn - len(part) * share) ** 2 / (len(part) * share)).sum() < 45
    first, second = (part[:500] for part in parts[:2])
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.25


def test_a_seed_repeats_a_release_and_marks_it(frame, tmp_path):
    first, second, other = (
        release(frame, tmp_path / str(number), entropy=SeededNotPrivate(seed))
        for number, seed in enumerate((7, 7, 8))
    )
    assert first.table["cases"].equals(second.table["cases"])
    assert not first.table["cases"].equals(other.table["cases"])
    assert not first.receipt.private


def test_what_is_staged_tells_nothing_and_goes(session, tmp_path):
    """Distinct large counts would be found in a file that is not encrypted."""
    counts = np.arange(77_000_001, 77_000_001 + 9 * 200, 9, dtype=np.uint32)
    np.random.default_rng(0).shuffle(counts)
    pq.write_table(pa.table({"id": range(200), "cases": counts}), tmp_path / "in.parquet")
    frame = session.read.parquet(str(tmp_path / "in.parquet"))
    staged = {}

    def look(plan):
        (folder,) = tmp_path.glob(".tallyveil-rows-*")
        assert folder.stat().st_mode & 0o777 == 0o700
        staged.update((path.name, path.read_bytes()) for path in folder.iterdir())
        assert plan.home.vault.key not in b"".join(staged.values())
        assert repr(plan.home.vault.key) not in repr(plan.home.vault)

    options = tv.ReleaseOptions(count="cases", epsilon=1, keep="id", out=tmp_path / "out")
    spark.publish_frame(frame, options, command="test", show_plan=look)
    assert len(staged) == 2
    for content in staged.values():
        for count in counts:
            for kind in (np.uint32, np.int64):
                assert count.astype(kind).tobytes() not in content
    assert not list(tmp_path.glob(".tallyveil*"))
    local = Path(session.conf.get("spark.local.dir"))
    for path in local.rglob("*"):
        assert not path.is_file() or counts[0].tobytes() not in path.read_bytes()


REFUSED = {
    "hierarchy": ({"hierarchy": "sex,ward"}, UsageError, "hierarchy needs all rows in one place"),
    "strata": ({"strata": "sex"}, UsageError, "strata needs all rows in one place"),
    "nested": (
        {"count": ["deaths", "cases"], "nested": ["deaths", "cases"]},
        UsageError,
        "counts.nested.* needs all rows in one place. Count the rows on the cluster",
    ),
    "missing": ({"na_values": "*"}, UsageError, "source.na_values.* needs all rows"),
    "report": ({"confidential_report": "r.txt"}, UsageError, "confidential_report.* needs all"),
    "no folder": ({"out": None}, UsageError, "give 'out'"),
    "levels": ({"method": {"name": "ladder", "epsilons": [2, 1]}}, UsageError, "privatize_levels"),
    "misspelt": ({"uper": 3}, UsageError, "uper"),
    "no column": ({"count": "case"}, TableError, "No column named 'case'"),
    "unnamed": ({"keep": None}, TableError, "Name the public columns"),
    "duplicates": ({"keep": "sex"}, TableError, "repeats the category of an earlier row"),
    "text": ({"count": "note"}, TableError, "A row of count column 'note' has text"),
}


@pytest.mark.parametrize(("keys", "error", "words"), REFUSED.values(), ids=REFUSED)
def test_refusals_are_those_of_one_machine_or_give_advice(frame, tmp_path, keys, error, words):
    with pytest.raises(error, match=words) as caught:
        spark.privatize(
            frame, **(join(**(OPTIONS | keys)) | {"out": keys.get("out", tmp_path / "o")})
        )
    assert "Anna" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_frame_or_session_that_does_not_suit_is_refused(frame, table, tmp_path, monkeypatch):
    with pytest.raises(ArgumentError, match="be a Spark DataFrame"):
        release(table, tmp_path / "out")
    with pytest.raises(TableError, match="has no rows"):
        release(frame.where("id < 0"), tmp_path / "out")
    with pytest.raises(TableError, match=r"A Spark job failed") as caught:
        release(frame.selectExpr("id", "ward", "int(note) as cases"), tmp_path / "out")
    assert "Anna" not in f"{caught.value}{caught.value.__cause__}"
    monkeypatch.setattr("tallyveil.spark.rows.fingerprint", lambda: "another")
    with pytest.raises(UsageError, match="another version of Tallyveil"):
        release(frame, tmp_path / "out")
    monkeypatch.setattr("tallyveil.spark.jobs.ENCRYPTED", "spark.none")
    with pytest.raises(UsageError, match=r"start the session with spark.none=true"):
        release(frame, tmp_path / "out")


def test_nothing_is_drawn_that_the_ledger_does_not_cover(frame, tmp_path, monkeypatch):
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("wards", 1.5)
    account = {"ledger": book, "dataset": "wards"}
    release(frame, tmp_path / "first", **account)
    monkeypatch.setattr("tallyveil.spark.jobs.run_numbered", lambda *_: pytest.fail("drawn"))
    with pytest.raises(BudgetError):
        release(frame, tmp_path / "second", **account)
    assert len(book.history("wards")) == 1
    assert not (tmp_path / "second").exists()


def test_rows_in_the_order_of_counts_are_warned_of(frame, tmp_path):
    with pytest.warns(UserWarning, match="order of 'cases'"):
        release(frame.orderBy("cases"), tmp_path / "out")


@pytest.mark.parametrize("method", ["auto", "geometric"])
def test_records_are_counted_as_on_one_machine(frame, table, monkeypatch, method):
    keys = {
        "by": ["sex", "id"],
        "categories": {"sex": ["m"]},
        "bins": {"id": [0, 1000, 6000]},
        "where": ["cases >= 3", "ward != 'ward 7'"],
        "other": "rest",
        "method": method,
        **{"upper": 10_000, "epsilon": 1},
    }
    counts = []
    from tallyveil.spark.rows import ClusterRows

    read = ClusterRows.read
    monkeypatch.setattr(ClusterRows, "read", lambda *a: counts.append(read(*a)) or counts[-1])
    made = spark.privatize(frame, **join(**keys))
    here = Rows().read(open_table(table, tv.ReleaseOptions(**join(**keys))), tv.Entropy())
    assert counts[0].counts["count"].values.tolist() == here.counts["count"].values.tolist()
    assert made.table.num_rows == len(here.counts["count"].values)
    with pytest.raises(TableError, match="A row has a category that is not in the public list"):
        spark.privatize(frame, **RECORDS | {"categories": ["f", "x"]})


def test_a_person_counts_at_most_so_often(session, table):
    """200 persons of 35 records each, named in three spellings; one record of each stays."""
    names = [("{}", "{}.0", " {} ")[i % 3].format(i % 200 + 1) for i in range(table.num_rows)]
    frame = session.createDataFrame(
        table.append_column("person", pa.array(names)).to_pandas()
    ).repartition(5)
    keys = RECORDS | {"epsilon": 20, "method": "geometric"}
    unit = {"id_column": "person", "contributions": 2}
    with pytest.warns(UserWarning, match="protects little"):
        made = spark.privatize(frame, **keys, unit=unit)
    counted = made.table["count"].to_numpy()
    assert abs(counted.sum() - 400) < 20
    assert 90 < counted[1] < 180  # a third of the records
    frame = frame.selectExpr("sex", "if(person = '3', null, person) as person")
    with pytest.raises(TableError, match="A row has no value in 'person'"):
        spark.privatize(frame, **keys, unit=unit)


def test_records_take_what_needs_all_rows(frame):
    made = spark.privatize(
        frame,
        by=["sex", "deaths"],
        categories={"sex": ["f", "m"], "deaths": range(5)},
        method={"name": "margins", "columns": "sex,deaths"},
        upper=10_000,
        epsilon=1,
    )
    assert made.table.num_rows == 10
    assert made.sums


@pytest.mark.slow
def test_the_command_releases_a_folder_of_files(files, tmp_path):
    words = ["--count", "cases", "--keep", "id", "--upper", "50", "--epsilon", "1", "--json"]
    program = [sys.executable, "-m", "tallyveil.spark", str(files), *words]
    done = subprocess.run(
        [*program, "--out", tmp_path / "out"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert all(finding.ok for finding in check_package(tmp_path / "out"))
    done = subprocess.run([*program, "--uper", "1"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--upper" in done.stderr


@pytest.mark.slow
def test_twenty_killed_executors_change_no_byte(files, tmp_path):
    script = Path(__file__).with_name("kill_executors.py")
    done = subprocess.run(
        [sys.executable, script, files, tmp_path],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    calm, killed = (tmp_path / name / "data.parquet" for name in ("calm", "killed"))
    assert calm.read_bytes() == killed.read_bytes()
    assert int(done.stdout.split()[-1]) >= 20
    assert not list(tmp_path.glob(".tallyveil*"))
