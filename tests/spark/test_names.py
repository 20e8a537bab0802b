"""Odd names of folders, files and columns on a real cluster, and tables that Spark cannot read."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallyveil as tv
from tallyveil import spark
from tallyveil.check.package import check_package
from tallyveil.errors import TableError

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.usefixtures("collect_sockets"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

ODD = "a b, 10:30 \u00fc 50% %25 # ? [c] {d,e} * 'f' \\g ; & `h`"
"""All at once: none may be escaped on the way, none may stand for others."""

OPTIONS = {"count": "cases", "keep": "id", "upper": 9, "epsilon": 1}


@pytest.fixture
def book(tmp_path_factory):
    ledger = tv.Ledger.create(tmp_path_factory.mktemp("ledger") / "budget.db")
    ledger.open("wards", epsilon=9)
    return ledger


def failures(out):
    return [found for found in check_package(out) if not found.ok]


def make_table(rows=1000):
    return pa.table({"id": list(range(rows)), "cases": [number % 7 for number in range(rows)]})


@pytest.mark.parametrize("parent", ["plain", ODD])
def test_a_release_folder_of_any_name(session, book, tmp_path, parent):
    """The counts are written, nothing is left, and Spark reads the published folder again."""
    frame = session.range(0, 1000, 1, 2).selectExpr("id", "id % 7 as cases")
    out = tmp_path / parent / ODD
    release = spark.privatize(frame, **OPTIONS, ledger=book, dataset="wards", out=out)
    assert failures(out) == []
    assert release.table.count() == 1000
    assert [path.name for path in tmp_path.iterdir()] == [parent]
    assert [path.name for path in out.parent.iterdir()] == [ODD]
    assert book.account("wards").spent_epsilon == 1


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_an_input_of_any_name(session, tmp_path, kind):
    path = tmp_path / ODD / "wards.parquet"
    path.parent.mkdir()
    if kind == "folder":
        path.mkdir()
    pq.write_table(make_table(), path / "part-0.parquet" if kind == "folder" else path)
    spark.privatize(path, **OPTIONS, out=tmp_path / "release")
    assert failures(tmp_path / "release") == []
    spark.privatize(str(path), **OPTIONS, out=tmp_path / "again")


def test_marks_still_stand_for_several_files(session, tmp_path):
    for number in range(2):
        pq.write_table(make_table().slice(500 * number, 500), tmp_path / f"{number}.parquet")
    release = spark.privatize(f"{tmp_path}/*.parquet", **OPTIONS, out=tmp_path / "release")
    assert release.data.rows == 1000


def test_columns_of_any_name(session, tmp_path):
    """A dot is no field of a struct, and a backtick no end of a name."""
    names = "a.b", "n.cases", "x`y", "A.B", "`", "drop.me"
    frame = session.range(0, 1000, 1, 2).selectExpr(
        "id", "id % 7", "concat('x', id)", "id + 1", "id + 2", "id * 2"
    )
    out = tmp_path / "release"
    keep = ["a.b", "x`y", "A.B", "`"]
    options = {"count": "n.cases", "keep": keep, "drop": "drop.me", "upper": 9, "epsilon": 1}
    spark.privatize(frame.toDF(*names), **options, out=out)
    assert failures(out) == []
    (file,) = (out / "data.parquet").iterdir()
    table = pq.read_table(file)
    assert table.column_names == ["a.b", "n.cases", "x`y", "A.B", "`"]
    assert sorted(table["a.b"].to_pylist()) == list(range(1000))
    assert [a + 1 for a in table["a.b"].to_pylist()] == table["A.B"].to_pylist()


def find_level(session):
    return session._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString()


def test_the_log_level_is_given_back(session, tmp_path):
    before = find_level(session)
    assert before != "OFF"
    with pytest.raises(TableError, match="Spark cannot read"):
        spark.privatize(str(tmp_path / "none.parquet"), **OPTIONS, out=tmp_path / "release")
    assert find_level(session) == before


READ = """
import json, sys
from tallyveil import spark
from tallyveil.errors import TableError

said = []
for source in sys.argv[2:]:
    try:
        spark.privatize(source, count="cases", keep="id", upper=9, epsilon=1, out=sys.argv[1])
    except TableError as problem:
        said.append(str(problem))
print(json.dumps(said))
"""


def test_what_spark_cannot_read_is_not_shown(cluster, tmp_path):
    """Neither the message nor the screen has a word of the file, or a stack of Java."""
    text = "name,cases\nAnna-Schmidt,4,1,2\n"
    (tmp_path / "text.parquet").write_text(text)
    for folder in ("only", "mixed"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "1.parquet").write_text(text)
    pq.write_table(make_table(), tmp_path / "mixed" / "0.parquet")
    pq.write_table(make_table(), tmp_path / "10:30.parquet")
    sources = [f"{tmp_path}/{name}" for name in ("text.parquet", "only", "mixed", "10:30.parquet")]
    sources.append("s3a://a/b")
    master = "--master local[1] --conf spark.ui.enabled=false --conf spark.driver.memory=512m"
    env = os.environ | {
        "PYSPARK_SUBMIT_ARGS": f"{master} pyspark-shell",
        "PYTHONPATH": str(Path(tv.__file__).parents[1]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    words = [sys.executable, "-c", READ, str(tmp_path / "release"), *sources]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout)
    assert len(said) == len(sources)
    assert all("cannot read" in one and "as Parquet" in one for one in said)
    assert "no colon" in said[3]
    assert not any("Anna" in one for one in said)
    for word in ("Exception", "\tat ", "magic number", "49, 44", "Anna"):
        assert word not in done.stderr
    assert "release" not in os.listdir(tmp_path)
