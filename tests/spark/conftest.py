"""One Spark session with two cores for all tests of the folder, and a table of wards in files."""

import gc
import os
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallyveil

NEEDED = "TALLYVEIL_NEED_SERVERS"
"""Set where a missing Java is a failure and not a reason to skip."""

SIZES = (500, 3000, 1500, 2000)
"""Rows of each file: Spark reads the largest first."""

CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.io.encryption.enabled": "true",
    "spark.log.level": "OFF",
}


def make_table(rows, start=0):
    random = np.random.default_rng(start)
    cases = np.minimum(random.geometric(0.15, rows) - 1, 50)
    numbers = np.arange(start, start + rows)
    return pa.table(
        {
            "id": numbers,
            "ward": [f"ward {number}" for number in numbers],
            "cases": cases,
            "deaths": random.integers(0, 5, rows),
            "sex": np.where(numbers % 3, "f", "m"),
            "note": ["Anna-Schmidt"] * rows,
        }
    )


@pytest.fixture(scope="session")
def session(tmp_path_factory):
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        (pytest.fail if os.environ.get(NEEDED) else pytest.skip)("Java is missing")
    source = str(Path(tallyveil.__file__).parents[1])
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    os.environ["PYTHONPATH"] = source
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("tests")
    local = {"spark.local.dir": str(tmp_path_factory.mktemp("spark"))}
    for name, value in (CONF | local).items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = builder.getOrCreate()
        yield session
        session.stop()
        gc.collect()


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Four files whose sizes are in another order than their names."""
    folder = tmp_path_factory.mktemp("wards")
    for number, rows in enumerate(SIZES):
        table = make_table(rows, sum(SIZES[:number]))
        pq.write_table(table, folder / f"part-{number}.parquet")
    return folder


@pytest.fixture
def frame(session, files):
    return session.read.parquet(str(files))


@pytest.fixture
def table(files):
    return pa.concat_tables(pq.read_table(path) for path in sorted(files.iterdir()))
