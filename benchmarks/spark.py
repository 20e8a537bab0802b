"""A release on Spark in ratio to Spark's own copy of the same table.

    python -m benchmarks spark [--quick] [--rows N] [--scratch DIR]

One session with two cores on this machine. The table is a folder of Parquet files: an identifier
that is not sorted and a count in 0..80. Spark copies it, and `tallyveil.spark.privatize` releases
it with the default method; then Spark counts the rows of every number of cases, and `privatize`
does, with and without a bound on the rows of a person. All in turns, after a round that does not
count. Processor time is that of Java and Python together; of each the shortest run is compared.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness import Result, Settings, Table, Target
from benchmarks.scale import write_table

FILES, ROUNDS, MOST = 8, 4, 2.5
TICKS = os.sysconf("SC_CLK_TCK")
COPY, RELEASE, DERIVED = "Spark copies", "release", "release of a computed column"
GROUPS, COUNTED, PERSONS = "Spark groups", "count records", "count one record per person"
CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "3g",
    "spark.driver.host": "127.0.0.1",
    "spark.io.encryption.enabled": "true",
    "spark.sql.shuffle.partitions": "4",
    "spark.log.level": "ERROR",
}


def read_processor_time() -> float:
    """Give the seconds that this process, and all that it started, have worked."""
    parents, worked = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                facts = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(facts[1])
            worked[int(entry.name)] = sum(map(int, facts[11:15]))
    total = 0
    for process, ticks in worked.items():
        at: int | None = process
        while at is not None and at != os.getpid():
            at = parents.get(at)
        total += ticks if at is not None else 0
    return total / TICKS


def start_session() -> Any:
    from pyspark.sql import SparkSession

    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    builder = SparkSession.builder.master("local[2]").appName("benchmark")
    for name, value in CONF.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def list_kinds(session: Any, place: Path, rows: int) -> dict[str, Callable[[], object]]:
    """List what is measured."""
    from tallyveil.spark import privatize

    copied, out = str(place / "copy"), place / "release"
    options: dict[str, Any] = {"count": "cases", "keep": "all", "upper": 80, "out": out}
    records: dict[str, Any] = {"by": "cases", "categories": list(range(81)), "upper": rows}

    def read() -> Any:
        return session.read.parquet(str(place / "table"))

    def compute() -> Any:
        return read().selectExpr("id", "abs(cases) as cases")

    person = {"id_column": "id", "contributions": 1}
    return {
        COPY: lambda: read().write.parquet(copied),
        RELEASE: lambda: privatize(read(), epsilon=1, **options),
        DERIVED: lambda: privatize(compute(), epsilon=1, **options),
        GROUPS: lambda: read().groupBy("cases").count().collect(),
        COUNTED: lambda: privatize(read(), epsilon=1, **records),
        PERSONS: lambda: privatize(read(), epsilon=1, unit=person, **records),
    }


def run(settings: Settings) -> Result:
    """Measure every kind in turns."""
    rows = settings.rows or (200_000 if settings.quick else 5_000_000)
    seconds: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory(dir=settings.scratch) as folder:
        place = Path(folder)
        (place / "table").mkdir()
        for part in range(FILES):
            write_table(place / "table" / f"{part}.parquet", rows // FILES, "", part * rows)
        session = start_session()
        for turn in range(1 + ROUNDS):
            for kind, action in list_kinds(session, place, rows).items():
                wall, worked = time.perf_counter(), read_processor_time()
                action()
                spent = read_processor_time() - worked, time.perf_counter() - wall
                seconds.setdefault(kind, []).extend([spent] if turn else [])
                for old in ("copy", "release"):
                    shutil.rmtree(place / old, ignore_errors=True)
        session.stop()
    least = {kind: min(spent) for kind, spent in seconds.items()}
    own = {kind: GROUPS if kind in (GROUPS, COUNTED) else COPY for kind in least}
    ratios = {kind: spent[0] / least[own[kind]][0] for kind, spent in least.items()}
    lines = [
        (kind, f"{spent[0]:.2f}", f"{spent[1]:.2f}", f"{ratios[kind]:.2f}")
        for kind, spent in least.items()
    ]
    size = f"{rows:,} rows"
    targets = [
        Target.at_most(
            f"{size}: {kind} in {MOST:g} times Spark's copy", ratios[kind], MOST, " times"
        )
        for kind in (RELEASE, DERIVED)
    ]
    return Result(
        question="What does a release on Spark cost against Spark's own copy?",
        method=f"{FILES} Parquet files, two cores, in turns; the shortest of {ROUNDS} runs each. "
        "Ratios are to Spark's copy of the table, that of counting records to Spark's groupBy.",
        tables=[
            Table(
                f"{size}, counts in 0..80, epsilon 1", ("", "processor s", "wall s", "ratio"), lines
            )
        ],
        targets=[] if settings.quick else targets,
    )
