"""A table on a Spark cluster, beside Spark's own reading and writing of the same table.

    python -m benchmarks.spark [--quick] [--json FILE] [--rows N] [--folder DIR]

A standalone cluster of one master and two workers with one core each runs on this machine. The
table is a folder of Parquet files, an identifier that is not sorted and a count in 0..80. Spark
reads and writes it; `tallyveil.spark.privatize` releases it at epsilon 1 with the default method:
every count is checked, all rows are compared, kept, drawn, ranked and published. Both run in
turns, after a run of each that is not counted; the shortest of each are compared, for a quarter of
the rows and for all. A DataFrame that is no plain file, whose rows Spark hands to Python, is shown
beside them, for a quarter of the rows, and so is counting: Spark counts the rows of every number
of cases, and `privatize` does that for a public list of these numbers, with and without a bound on
the rows of one person. Processor time is that of all processes of cluster and session together.

Bar: at most 1.5 times Spark's own reading and writing of all rows, by processor time. Exits with 1
where it is missed. Wall time is shown beside it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measure import Bar, Result, Table, compiled_environment, conduct, options
from benchmarks.scale import write_parquet

COPY, RELEASE = "Spark reads and writes", "tallyveil on Spark, Parquet files"
DERIVED, CHECK = "tallyveil on Spark, a DataFrame with an expression", "tallyveil check"
GROUPS, COUNTED = "Spark counts rows in 81 groups", "tallyveil on Spark, rows counted in 81 groups"
BOUNDED = "tallyveil on Spark, one row of each person counted"
MOST = 1.5
FILES, ROUNDS = 8, 3
TICKS = os.sysconf("SC_CLK_TCK")


def load_cluster() -> Any:
    """The cluster that the tests run on."""
    place = Path(__file__).parents[1] / "tests" / "spark" / "cluster.py"
    spec = importlib.util.spec_from_file_location("spark_cluster", place)
    if spec is None or spec.loader is None:
        raise RuntimeError("tests/spark/cluster.py is missing.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_processor_time(roots: list[int]) -> float:
    """Seconds that these processes and all that they started have worked."""
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
        while at is not None and at not in roots:
            at = parents.get(at)
        total += ticks if at is not None else 0
    return total / TICKS


def measure(kind: str, rows: int, action: Callable[[], None], roots: list[int]) -> dict[str, Any]:
    wall, worked = time.perf_counter(), read_processor_time(roots)
    action()
    seconds = read_processor_time(roots) - worked
    return {"kind": kind, "rows": rows, "seconds": seconds, "wall": time.perf_counter() - wall}


def run(rows: int, folder: Path | None) -> Result:
    module = load_cluster()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compiled_environment()
    with tempfile.TemporaryDirectory(dir=folder) as name:
        cluster = module.Cluster(memory="3g")
        try:
            session = cluster.connect(
                **{
                    "spark.executor.memory": "2g",
                    "spark.driver.memory": "1g",
                    "spark.executor.extraJavaOptions": "",  # as Java is without our settings
                    "spark.driver.extraJavaOptions": "",
                    "spark.speculation": "false",
                }
            )
            found = [
                one
                for size in (rows // 4, rows)
                for one in measure_size(session, cluster, Path(name), size, derived=size < rows)
            ]
        finally:
            cluster.stop()
    lines = [
        (row["kind"], f"{row['rows']:,}", f"{row['seconds']:.1f}", f"{row['wall']:.1f}")
        for row in found
    ]
    return Result(
        question="What does a release on a Spark cluster cost beside Spark's own copy?",
        method=f"Tables in {FILES} files, two workers of one core on one machine. In turns; "
        "processor seconds of all processes together, and wall seconds.",
        tables=[
            Table("Counts in 0..80 at epsilon 1", ("", "rows", "processor s", "wall s"), lines)
        ],
        bars=[judge(found, rows)],
        raw=found,
    )


def compare(found: list[dict[str, Any]], rows: int, kind: str, part: str) -> float:
    """How many times the shortest copy the shortest run of this kind took."""
    own, copy = (
        min(row[part] for row in found if (row["kind"], row["rows"]) == (one, rows))
        for one in (kind, COPY)
    )
    return float(own / copy)


def judge(found: list[dict[str, Any]], rows: int) -> Bar:
    ratio, by_wall = (compare(found, rows, RELEASE, part) for part in ("seconds", "wall"))
    fewer = rows // 4
    others = [f"{compare(found, fewer, kind, 'seconds'):.2f}" for kind in (RELEASE, DERIVED)]
    return Bar(
        f"{rows:,} rows: at most {MOST:g} times Spark's own reading and writing",
        f"{ratio:.2f} times by processor time, {by_wall:.2f} by wall time; for {fewer:,} rows "
        f"{others[0]}, and {others[1]} where Spark hands over the rows",
        ratio <= MOST,
    )


def measure_size(
    session: Any, cluster: Any, place: Path, rows: int, *, derived: bool
) -> list[dict[str, Any]]:
    """Copy and release in turns, the first of each thrown away, and one check."""
    from tallyveil.check.package import check_package
    from tallyveil.publish.transaction import publish_table
    from tallyveil.request.options import ReleaseOptions

    table, copied, out = (place / name for name in ("table", "copy", "release"))
    table.mkdir()
    for part in range(FILES):
        write_parquet(table / f"{part}.parquet", rows // FILES, part * rows)
    asked = ReleaseOptions(count="cases", upper=80, epsilon=1, keep="all", out=out)
    roots = [os.getpid(), *(worker.pid for worker in cluster.workers)]

    def copy() -> None:
        session.read.parquet(str(table)).write.parquet(copied.as_uri())

    def release() -> None:
        publish_table(session.read.parquet(str(table)), asked, command="benchmark")

    def release_derived() -> None:
        frame = session.read.parquet(str(table)).selectExpr("id", "abs(cases) as cases")
        publish_table(frame, asked, command="benchmark")

    def count_groups() -> None:
        session.read.parquet(str(table)).groupBy("cases").count().collect()

    def count_rows(**person: Any) -> None:
        known = {"by": "cases", "categories": list(range(81)), "method": "geometric"}
        wish = ReleaseOptions(**known, epsilon=1, upper=rows, out=out, **person)
        publish_table(session.read.parquet(str(table)), wish, command="benchmark")

    def count_persons() -> None:
        count_rows(person="id", rows_per_person=1)

    def check() -> None:
        findings = check_package(out)
        assert all(finding.ok for finding in findings), findings

    kinds = {COPY: copy, RELEASE: release}
    if derived:
        kinds |= {DERIVED: release_derived, GROUPS: count_groups, COUNTED: count_rows}
        kinds |= {BOUNDED: count_persons}
    found = []
    for turn in range(1 + ROUNDS):
        for kind, action in kinds.items():
            for old in (out, copied):
                shutil.rmtree(old, ignore_errors=True)
            one = measure(kind, rows, action, roots)
            found += [one] if turn else []
    found.append(measure(CHECK, rows, check, roots))
    for old in (table, out, copied):
        shutil.rmtree(old, ignore_errors=True)
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = options(__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000, help="rows of the table")
    parser.add_argument("--folder", type=Path, help="where files are made; needs 80 bytes a row")
    given = parser.parse_args(arguments)
    missing = load_cluster().find_missing()
    if missing is not None:
        print(missing)
        return 1
    rows = 1_000_000 if given.quick else given.rows
    return conduct("spark", lambda: run(rows, given.folder), given)


if __name__ == "__main__":
    sys.exit(main())
